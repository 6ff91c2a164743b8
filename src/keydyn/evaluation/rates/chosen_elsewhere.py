"""Errors at thresholds chosen on other people: the half total error rate, and the EPC.

A threshold chosen on the same claims that it is evaluated on makes a system look better than it is. Here
people are dealt into two halves. The threshold for the claims within one half is chosen on those within the
other; claims between the halves are not used. The expected performance curve, EPC (Bengio, Mariéthoz and
Keller, *The expected performance curve*, ICML 2005), does so for every weight of the two errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.rates.confidence import REPLICATES, Rate, interval, user_weights
from keydyn.evaluation.rates.error_curve import ErrorCurve, hull_points
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.short_repr import short_repr

# A function that chooses thresholds (T,) on the error curve of one half of the people.
Choose = Callable[[ErrorCurve], Floats]


@dataclass(frozen=True, eq=False)
class ChosenElsewhere:
    """Both error rates (T,) at thresholds chosen on other people, and replicates of their mean (R, T)."""

    fmr: Floats
    fnmr: Floats
    replicated: Floats
    trials: int

    __repr__ = short_repr

    @property
    def hter(self) -> Floats:
        """The half total error rate, (T,): the mean of both errors."""
        return (self.fmr + self.fnmr) / 2.0

    @property
    def band(self) -> tuple[Floats, Floats]:
        """The 95 % band of the half total error rate over people, (T,) low and (T,) high."""
        return interval(self.replicated)

    def rate(self) -> Rate:
        """The half total error rate at the first threshold."""
        low, high = self.band
        return Rate(float(self.hter[0]), float(low[0]), float(high[0]), self.trials)


def chosen_elsewhere(
    claims: ScoredClaims, choose: Choose, replicates: int = REPLICATES, seed: int = 0
) -> ChosenElsewhere | None:
    """The errors in each half of the people at thresholds chosen on the other half, added up.

    None if a half has no genuine or no impostor claims of its own.
    """
    plain = claims.plain
    people = np.unique(np.concatenate([plain.claimed, plain.typist]))
    half = np.zeros(max(len(claims.people), 1), dtype=np.int64)
    half[np.random.default_rng(seed).permutation(people)[: len(people) // 2]] = 1
    own = half[plain.claimed]
    halves = [plain.where((own == one) & (half[plain.typist] == one)) for one in (0, 1)]
    if any(min(map(len, part.scores)) == 0 for part in halves):
        return None
    thresholds = [choose(ErrorCurve.of(*part.scores)) for part in halves]
    counted = [_counts(part, thresholds[1 - one]) for one, part in enumerate(halves)]
    rejected, friends, accepted, strangers = (np.concatenate(each) for each in zip(*counted, strict=True))
    weights = user_weights(len(friends), replicates, seed)
    some = (weights @ friends > 0) & (weights @ strangers > 0)
    drawn = weights[some]
    fnmr = (drawn @ rejected) / (drawn @ friends)[:, None]
    fmr = (drawn @ accepted) / (drawn @ strangers)[:, None]
    return ChosenElsewhere(
        accepted.sum(axis=0) / strangers.sum(),
        rejected.sum(axis=0) / friends.sum(),
        (fnmr + fmr) / 2.0,
        sum(min(part.trials) for part in halves),
    )


def _counts(part: ScoredClaims, thresholds: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts by user: genuine claims rejected (U, T) of all (U,), impostors' accepted (U, T) of all (U,)."""
    _, genuine, impostor = part.by_user
    rejected = np.stack([np.searchsorted(g, thresholds) for g in genuine]).astype(np.float64)
    friends, strangers = (np.array([len(one) for one in each], float) for each in (genuine, impostor))
    below = np.stack([np.searchsorted(i, thresholds) for i in impostor])
    return rejected, friends, strangers[:, None] - below, strangers


def nearest_threshold(curve: ErrorCurve) -> Floats:
    """The threshold at which both errors are closest, (1,), midway to the next score below."""
    return midway(curve, np.array([np.argmin(np.abs(curve.fmr - curve.fnmr))]))


# Weights of false matches in the EPC.
WEIGHTS: Floats = np.linspace(0.02, 0.98, 49)


def weighted_thresholds(curve: ErrorCurve) -> Floats:
    """The thresholds that minimise w · FMR + (1 − w) · FNMR, one for each w of `WEIGHTS`."""
    points = hull_points(curve.fmr, curve.fnmr)
    errors = WEIGHTS[:, None] * curve.fmr[points] + (1.0 - WEIGHTS[:, None]) * curve.fnmr[points]
    return midway(curve, points[np.argmin(errors, axis=1)])


def midway(curve: ErrorCurve, points: Integers) -> Floats:
    """Thresholds midway between points of the curve and the next below, which decide its claims alike."""
    below = curve.thresholds[np.minimum(points + 1, len(curve.thresholds) - 1)]
    middle: Floats = (curve.thresholds[points] + below) / 2.0
    return middle
