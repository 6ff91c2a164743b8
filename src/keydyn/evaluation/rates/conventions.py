"""Equal error rates and FNMR at FMR by other definitions, for comparison with published figures.

Our own definitions are in `error_curve`. Those here follow their source even where ours differ on purpose.
"""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.evaluation.rates.error_curve import ErrorCurve


def nearest_eer(genuine: Floats, impostor: Floats) -> float:
    """The equal error rate of the Keystroke Verification Challenge: the mean of FMR and FNMR where closest.

    It is taken at the first corner of the ROC, from strict to lax, at which FMR and FNMR differ least. Points
    within a straight part of the curve are not corners: programs of participants in the challenge (Stragapede
    and others, *KVC-onGoing*, Pattern Recognition 161, 2025) take the points of scikit-learn's `roc_curve`,
    which leaves them out. The organisers' own program could not be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import nearest_eer
    >>> round(nearest_eer(np.array([0.9, 0.8, 0.4, 0.35]), np.array([0.1, 0.2, 0.5])), 3)
    0.417
    """
    fmr, fnmr = corners(genuine, impostor)
    nearest = np.argmin(np.abs(fnmr - fmr))
    return float((fmr[nearest] + fnmr[nearest]) / 2.0)


def nearest_fnmr_at_fmr(genuine: Floats, impostor: Floats, target: float) -> float:
    """FNMR at the first corner of the ROC, from strict to lax, whose FMR is closest to the target.

    This is our reading of the challenge's nearest point, for which no public program was found. Unlike
    `fnmr_at_fmr` it may belong to a threshold whose FMR is above the target.
    """
    fmr, fnmr = corners(genuine, impostor)
    return float(fnmr[np.argmin(np.abs(fmr - target))])


def corners(genuine: Floats, impostor: Floats) -> tuple[Floats, Floats]:
    """FMR and FNMR at the points of scikit-learn's `roc_curve` with its defaults, from strict to lax.

    These are the point that accepts nothing, the next, the last, and those between them at which the step
    from the previous point differs, in counts, from the step to the next.
    """
    thresholds = ErrorCurve.of(genuine, impostor).thresholds
    strangers, friends = (
        len(scores) - np.searchsorted(np.sort(scores), thresholds) for scores in (impostor, genuine)
    )
    kept = np.ones(len(thresholds), dtype=bool)
    kept[2:-1] = (np.diff(strangers[1:], n=2) != 0) | (np.diff(friends[1:], n=2) != 0)
    # 1 − the true match rate, as in those programs: rounding decides between equally close points.
    return strangers[kept] / len(impostor), 1.0 - friends[kept] / len(genuine)
