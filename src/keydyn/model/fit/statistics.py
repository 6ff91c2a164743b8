"""What an expectation step leaves behind: sums that can be added up over chunks of data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.densities import NORMAL, STUDENT
from keydyn.model.engine.expectation import MASS, NOTHING, PRECISION, SQUARE, SUM
from keydyn.model.families.compiled import kind_of
from keydyn.model.families.family import Family, Stats
from keydyn.model.theta.event_chain import Counts
from keydyn.model.theta.marginals import normalised
from keydyn.model.theta.start_values import Moments

# What stands in the place of a sum.
MEAN = SUM


@dataclass(frozen=True)
class Statistics:
    """Expected counts under the current parameters.

    Attributes
    ----------
    counts : observed frequencies
    log_likelihood : weighted, of all sequences
    start : (m + 1, M) Σ γ₁ of the sequences that begin with ω, then of all sequences
    first_seen : (m + 1, M) Σ γ at the first ω of each sequence (the published settings)
    occupancy : (m, M) Σ γ of the events of type ω, with or without a value
    transitions : (P, M, M) Σ ξ
    moments : (m + 1, K, W, M) of the families that the engine knows, see `engine.expectation`; those of the
        normal and t families with the mean in place of a sum, and squares around it
    custom : the statistics of the other families by feature, as the family keeps them
    overall : moments of each feature over all events, and the largest |x|, for the scale floor
    """

    counts: Counts
    log_likelihood: float
    start: Floats
    first_seen: Floats
    occupancy: Floats
    transitions: Floats
    moments: Floats
    custom: dict[int, Stats]
    overall: list[tuple[Moments, Floats]]

    def merged(self, other: Statistics, families: tuple[Family, ...]) -> Statistics:
        """Both together; vocabulary and pairs are those of `other`, which has at least ours."""
        ours = self._aligned(other.counts)
        moments = ours.moments + other.moments
        for k, family in enumerate(families):
            if kind_of(family) in (NORMAL, STUDENT):
                _merge_moments(_divisor(family), ours.moments[:, k], other.moments[:, k], moments[:, k])
        return Statistics(
            ours.counts + other.counts,
            ours.log_likelihood + other.log_likelihood,
            ours.start + other.start,
            ours.first_seen + other.first_seen,
            ours.occupancy + other.occupancy,
            ours.transitions + other.transitions,
            moments,
            {k: families[k].merge(stats, other.custom[k]) for k, stats in ours.custom.items()},
            [_merged_overall(a, b) for a, b in zip(ours.overall, other.overall, strict=True)],
        )

    def _aligned(self, target: Counts) -> Statistics:
        m = len(target.event_types)
        counts, rows = self.counts.aligned(target.event_types, target.pairs)
        transitions = np.zeros((len(target.pairs), *self.transitions.shape[1:]))
        transitions[rows] = self.transitions
        return replace(
            self,
            counts=counts,
            start=_with_rows(self.start, m),
            first_seen=_with_rows(self.first_seen, m),
            occupancy=_padded(self.occupancy, m),
            transitions=transitions,
            moments=_with_rows(self.moments, m),
            custom={
                k: {name: _padded(values, m) for name, values in stats.items()}
                for k, stats in self.custom.items()
            },
        )

    def reordered(self, order: Integers) -> Statistics:
        """These statistics with states renumbered."""
        return replace(
            self,
            start=self.start[:, order],
            first_seen=self.first_seen[:, order],
            occupancy=self.occupancy[:, order],
            transitions=self.transitions[:, order[:, None], order],
            moments=self.moments[..., order],
            custom={
                k: {name: values[:, order] for name, values in stats.items()}
                for k, stats in self.custom.items()
            },
        )

    def shares(self) -> Floats:
        """The posterior share of each state among the events of a type, (m, M)."""
        return normalised(self.occupancy)


def around_means(families: tuple[Family, ...], sums: Floats, locations: list[Floats]) -> Floats:
    """Sums (R, K, W, M) of deviations from the current locations, (R, M) of each feature, as statistics."""
    moments = sums.copy()
    for k, family in enumerate(families):
        if kind_of(family) in (NORMAL, STUDENT):
            weight, total = sums[:, k, _divisor(family)], sums[:, k, SUM]
            apart = np.divide(total, weight, out=np.zeros_like(total), where=weight > NOTHING)
            moments[:, k, MEAN] = locations[k] + apart
            moments[:, k, SQUARE] = np.maximum(sums[:, k, SQUARE] - apart * total, 0.0)
    return moments


def around_locations(families: tuple[Family, ...], moments: Floats, locations: list[Floats]) -> Floats:
    """The other way round: sums of deviations from locations, which become the means to that end."""
    sums = moments.copy()
    for k, family in enumerate(families):
        if kind_of(family) in (NORMAL, STUDENT):
            known = moments[:, k, _divisor(family)] > NOTHING
            locations[k][known] = moments[:, k, MEAN][known]
            sums[:, k, SUM] = 0.0
    return sums


def _divisor(family: Family) -> int:
    """What the mean of a feature was divided by."""
    return PRECISION if kind_of(family) == STUDENT else MASS


def _merge_moments(weight: int, a: Floats, b: Floats, together: Floats) -> None:
    """Weights, means and squared deviations of two sets together (Chan, Golub and LeVeque)."""
    total = a[:, weight] + b[:, weight]
    share = np.divide(b[:, weight], total, out=np.zeros_like(total), where=total > 0.0)
    difference = b[:, MEAN] - a[:, MEAN]
    together[:, MEAN] = a[:, MEAN] + difference * share
    together[:, SQUARE] = a[:, SQUARE] + b[:, SQUARE] + difference**2 * a[:, weight] * share


def _merged_overall(a: tuple[Moments, Floats], b: tuple[Moments, Floats]) -> tuple[Moments, Floats]:
    (first, largest), (second, also) = a, b
    total = first.weight + second.weight
    share = np.divide(second.weight, total, out=np.zeros_like(total), where=total > 0.0)
    apart = second.mean - first.mean
    square = first.square + second.square + apart**2 * first.weight * share
    return Moments(total, first.mean + apart * share, square), np.maximum(largest, also)


def _padded(values: Floats, n_rows: int) -> Floats:
    padded = np.zeros((n_rows, *values.shape[1:]))
    padded[: len(values)] = values
    return padded


def _with_rows(values: Floats, m: int) -> Floats:
    """A table whose last row is that of unknown types, with rows for more types before it."""
    padded = _padded(values[:-1], m + 1)
    padded[-1] = values[-1]
    return padded
