"""Which detectors are not significantly worse than the best: the bold entries of the published tables.

Each detector is tested against the best by the Wilcoxon signed-rank test over users, two-sided. Differences
of zero are left out, ties share ranks. The error rate of all tests of a row together is kept at 5 % by
Bonferroni's correction: with k detectors there are k − 1 tests, each at 0.05 / (k − 1).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from keydyn.arrays import Floats

LEVEL = 0.05
# Rates are quotients of counts; a difference below this is rounding and must not break a tie.
DIGITS = 12


def signed_rank_p(one: Floats, other: Floats) -> float:
    """p-value of the signed-rank test of paired figures (U,); 1 where no pair differs.

    Fewer than 6 differing pairs can never reach 0.05 two-sided; the p-value says so by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation.rates.significance import signed_rank_p
    >>> figures = np.linspace(0.1, 0.5, 20)
    >>> signed_rank_p(figures, figures), signed_rank_p(figures, figures + 0.1) < 0.001
    (1.0, True)
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    if len(difference) == 0:
        raise ValueError("there are no users to compare over")
    if np.isnan(difference).any():
        raise ValueError(f"user {int(np.argmax(np.isnan(difference)))} has no figure: it is NaN")
    rounded = np.round(difference, DIGITS)
    differing = rounded[rounded != 0.0]
    if len(differing) == 0:
        return 1.0
    return float(wilcoxon(differing).pvalue)


def compare_with_best(figures: pd.DataFrame, higher_is_better: bool, level: float = LEVEL) -> pd.DataFrame:
    """Each detector against the one with the best mean.

    `figures` has a row for each user and a column for each detector. The result has a row for each detector:
    mean, best (whether it is the one that others are tested against), p (1 for the best), level (corrected)
    and bold, true where p is above the level. Of detectors with the same mean the first is the best.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from keydyn.evaluation.rates.significance import compare_with_best
    >>> good = np.linspace(0.8, 0.9, 20)
    >>> table = compare_with_best(pd.DataFrame({"good": good, "poor": good - 0.2}), higher_is_better=True)
    >>> table["bold"].tolist()
    [True, False]
    """
    if figures.shape[0] == 0 or figures.shape[1] == 0:
        raise ValueError("there is nothing to compare: figures need users and detectors")
    missing = figures.isna().to_numpy()
    if missing.any():
        u, d = (int(place) for place in np.argwhere(missing)[0])
        raise ValueError(f"user {figures.index[u]} has no figure of {figures.columns[d]}")
    means = figures.mean()
    best = means.idxmax() if higher_is_better else means.idxmin()
    reference = figures[best].to_numpy()
    p = [1.0 if name == best else signed_rank_p(figures[name].to_numpy(), reference) for name in figures]
    corrected = level / max(len(figures.columns) - 1, 1)
    return pd.DataFrame(
        {
            "mean": means.to_numpy(),
            "best": np.asarray(figures.columns == best),
            "p": p,
            "level": corrected,
            "bold": np.array(p) > corrected,
        },
        index=pd.Index(figures.columns, name="detector"),
    )
