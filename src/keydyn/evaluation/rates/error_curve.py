"""Error rates from genuine and impostor scores; a higher score is more genuine.

In the vocabulary of ISO/IEC 19795-1 the errors of comparisons are the false match rate (FMR, impostors
accepted) and the false non-match rate (FNMR, genuine samples rejected). If every sample is one attempt, these
are also the rates of false acceptance and false rejection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

from keydyn.arrays import Floats, Integers
from keydyn.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Both error rates at every distinct score, from strict to lax: the points of ROC and DET curves.

    A sample is accepted if its score is at least the threshold; the first threshold, +∞, accepts none.

    Attributes
    ----------
    thresholds, fmr, fnmr : (P,); FMR rises from 0 to 1, FNMR falls from 1 to 0

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import ErrorCurve
    >>> curve = ErrorCurve.of(np.array([0.9, 0.8, 0.4, 0.35]), np.array([0.1, 0.2, 0.5]))
    >>> round(curve.eer, 3), round(curve.fnmr_at_fmr(0.0), 3)
    (0.333, 0.5)
    """

    thresholds: Floats
    fmr: Floats
    fnmr: Floats

    __repr__ = short_repr

    @classmethod
    def of(cls, genuine: Floats, impostor: Floats) -> ErrorCurve:
        """The curve of genuine and impostor scores, (G,) and (I,)."""
        check_scores(genuine, impostor)
        # A stable sort only merges runs that are already sorted, as the scores of several users often are.
        genuine, impostor = np.sort(genuine, kind="stable"), np.sort(impostor, kind="stable")
        merged = np.sort(np.concatenate([genuine, impostor]), kind="stable")
        thresholds = merged[np.append(True, merged[1:] != merged[:-1])][::-1]
        # Whole numbers are divided once, so that 100 of 10,000 is not above 1 %.
        accepted = len(impostor) - np.searchsorted(impostor, thresholds, side="left")
        rejected = np.searchsorted(genuine, thresholds, side="left")
        return cls(
            np.concatenate([[np.inf], thresholds]),
            np.concatenate([[0.0], accepted / len(impostor)]),
            np.concatenate([[1.0], rejected / len(genuine)]),
        )

    @property
    def eer(self) -> float:
        """The equal error rate, at which both rates cross, on straight lines between adjacent points."""
        return float(crossing(self.fmr[None], self.fnmr[None])[0])

    def fnmr_at_fmr(self, target: float) -> float:
        """The smallest FNMR among thresholds whose FMR is not above the target."""
        return float(self.fnmr[np.searchsorted(self.fmr, target, side="right") - 1])

    def fmr_at_fnmr(self, target: float) -> float:
        """The smallest FMR among thresholds whose FNMR is not above the target."""
        return float(self.fmr[np.argmax(self.fnmr <= target)])

    @property
    def hull(self) -> ErrorCurve:
        """The lower convex hull of the curve: the errors reached by random choice between two thresholds.

        Its `eer` is the equal error rate of the convex hull: the largest expected error over all priors, with
        the best threshold for each (Brümmer and de Villiers, *The BOSARIS Toolkit*, 2013). It is never above
        the usual one.
        """
        points = hull_points(self.fmr, self.fnmr)
        return ErrorCurve(self.thresholds[points], self.fmr[points], self.fnmr[points])

    def fnmr_on(self, grid: Floats) -> Floats:
        """FNMR at each FMR of the grid, on lines between points, at the lower end of vertical ones."""
        before = np.searchsorted(self.fmr, grid, side="right") - 1
        after = np.minimum(before + 1, len(self.fmr) - 1)
        width = self.fmr[after] - self.fmr[before]
        share = np.divide(grid - self.fmr[before], width, out=np.zeros(len(grid)), where=width > 0)
        on_lines: Floats = self.fnmr[before] + share * (self.fnmr[after] - self.fnmr[before])
        return on_lines


def check_scores(genuine: Floats, impostor: Floats) -> None:
    """Raise a `ValueError` if there are no scores of one kind, or one of them is NaN."""
    for name, scores in (("genuine", genuine), ("impostor", impostor)):
        if len(scores) == 0:
            raise ValueError(f"there are no {name} scores")
        if np.isnan(scores).any():
            raise ValueError(f"{name} score {int(np.argmax(np.isnan(scores)))} is NaN")


def hull_points(fmr: Floats, fnmr: Floats) -> Integers:
    """The indices of the corners of a curve's lower convex hull; the curve runs from strict to lax, (P,).

    They are the edges of the blocks of the pool-adjacent-violators algorithm.
    """
    impostors, genuine = np.diff(fmr), -np.diff(fnmr)
    weight = impostors + genuine
    # Of points that coincide, the last represents all.
    steps = np.flatnonzero(weight > 0)
    share = isotonic_regression(genuine[steps] / weight[steps], sample_weight=weight[steps], increasing=False)
    last = np.append(share[1:] != share[:-1], True)
    return np.concatenate([[0], steps[last] + 1])


def crossing(fmr: Floats, fnmr: Floats) -> Floats:
    """The rate at which each pair of curves crosses, (B, P) → (B,); FMR rises from 0, FNMR falls from 1."""
    rows = np.arange(len(fmr))
    after = np.argmax(fmr >= fnmr, axis=1)
    gap_before = fnmr[rows, after - 1] - fmr[rows, after - 1]
    gap_after = fmr[rows, after] - fnmr[rows, after]
    share = gap_before / (gap_before + gap_after)
    start = fmr[rows, after - 1]
    rates: Floats = start + share * (fmr[rows, after] - start)
    return rates


def equal_error_rate(genuine: Floats, impostor: Floats) -> float:
    """The rate at which FMR and FNMR cross, on straight lines between adjacent points."""
    return ErrorCurve.of(genuine, impostor).eer


def zero_miss_rate(genuine: Floats, impostor: Floats) -> float:
    """FNMR at the laxest threshold that accepts no impostor: FNMR at FMR 0.

    This is Killourhy and Maxion's zero-miss rate: they call an accepted impostor a miss and a rejected
    genuine sample a false alarm, so it is their false-alarm rate when no impostor is missed.
    """
    return ErrorCurve.of(genuine, impostor).fnmr_at_fmr(0.0)


def common_grid() -> Floats:
    """A grid of FMR from 0 to 1 for curves of several users: 201 even steps and 201 logarithmic ones."""
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, 201), np.geomspace(1e-4, 1.0, 201)]))


def curves_on(curves: Sequence[ErrorCurve], grid: ArrayLike) -> Floats:
    """FNMR of several curves at the same FMR, (curves, grid)."""
    places = np.asarray(grid, dtype=np.float64)
    if ((places < 0) | (places > 1)).any():
        raise ValueError("the grid must hold rates from 0 to 1")
    return np.stack([curve.fnmr_on(places) for curve in curves])
