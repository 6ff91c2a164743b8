"""Error curves of bootstrap replicates, which show what would have been measured with other people.

Errors are counted once for each user at several hundred thresholds; a replicate adds up the counts of the
users that it drew. A figure between two thresholds is exact up to their distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import REPLICATES, interval, user_weights
from keydyn.evaluation.rates.error_curve import hull_points

# The number of thresholds from each kind of score at which replicates of the pooled curve are read.
GRID = 192
# The number of users whose extreme scores are thresholds too: a replicate draws none of them with
# probability e^−64.
EXTREMES = 64


@dataclass(frozen=True, eq=False)
class Replicates:
    """Both error rates of every replicate, (R, T), at thresholds from strict to lax (T,); the first is +∞."""

    thresholds: Floats
    fmr: Floats
    fnmr: Floats

    def fnmr_at_fmr(self, target: float) -> Floats:
        """The smallest FNMR among thresholds whose FMR is not above the target, (R,)."""
        at: Floats = self.fnmr[np.arange(len(self.fmr)), (self.fmr <= target).sum(axis=1) - 1]
        return at

    def fmr_at_fnmr(self, target: float) -> Floats:
        """The smallest FMR among thresholds whose FNMR is not above the target, (R,)."""
        at: Floats = self.fmr[np.arange(len(self.fmr)), np.argmax(self.fnmr <= target, axis=1)]
        return at

    @cached_property
    def hulls(self) -> list[tuple[Floats, Floats]]:
        """FMR and FNMR at the corners of each replicate's convex hull."""
        rows = zip(self.fmr, self.fnmr, strict=True)
        return [(fmr[at], fnmr[at]) for fmr, fnmr in rows for at in (hull_points(fmr, fnmr),)]

    def band(self, grid: Floats) -> tuple[Floats, Floats]:
        """The 95 % band of the FNMR at each FMR of the grid, (G,) low and (G,) high."""
        places = np.stack([np.searchsorted(row, grid, side="right") - 1 for row in self.fmr])
        return interval(np.take_along_axis(self.fnmr, places, axis=1))


def replicated_curves(
    genuine: Sequence[Floats],
    impostor: Sequence[Floats],
    replicates: int = REPLICATES,
    seed: int = 0,
    thresholds: Floats | None = None,
) -> Replicates:
    """Compute error curves of users drawn with replacement; the scores of each user must be sorted.

    The curves are read at `thresholds`, from strict to lax, or else at several hundred of the scores.
    Replicates that draw no genuine or no impostor trial are left out.
    """
    if thresholds is None:
        thresholds = _some_thresholds(genuine, impostor)
    # At the first point no sample is accepted.
    accepted = np.stack([[0, *len(i) - np.searchsorted(i, thresholds)] for i in impostor])
    rejected = np.stack([[len(g), *np.searchsorted(g, thresholds)] for g in genuine])
    weights = user_weights(len(genuine), replicates, seed)
    strangers, friends = (weights @ np.array([[len(one)] for one in parts]) for parts in (impostor, genuine))
    there = ((strangers > 0) & (friends > 0))[:, 0]
    return Replicates(
        np.concatenate([[np.inf], thresholds]),
        (weights[there] @ accepted) / strangers[there],
        (weights[there] @ rejected) / friends[there],
    )


def _some_thresholds(genuine: Sequence[Floats], impostor: Sequence[Floats]) -> Floats:
    """Choose thresholds, strict to lax: all scores if few, else quantiles, denser for the highest impostors.

    The users' lowest genuine and highest impostor scores are included, because errors of zero depend on them.
    """
    kept, passed = (np.sort(np.concatenate(parts), kind="stable") for parts in (genuine, impostor))
    even = np.linspace(0, len(kept) - 1, min(GRID, len(kept))).astype(np.int64)
    tail = len(passed) - np.geomspace(1, len(passed), GRID).astype(np.int64)
    if len(passed) <= GRID:
        tail = np.arange(len(passed))
    highest = np.sort([i[-1] for i in impostor if len(i)])[-EXTREMES:]
    lowest = np.sort([g[0] for g in genuine if len(g)])[:EXTREMES]
    strangers = np.concatenate([passed[tail], highest])
    # At a threshold just above an impostor's score that impostor is rejected.
    just_above = np.nextafter(strangers, np.inf)
    friends = np.concatenate([kept[even], lowest])
    least = [min(kept[0], passed[0])]
    return np.unique(np.concatenate([friends, strangers, just_above, least]))[::-1]
