"""Counts, moments and starting parameters, which a fit computes from the data before its first iteration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.fit_settings import FitSettings, kept_shares
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.layout import (
    KEEP_EMISSION,
    KEEP_START,
    LEAVING,
    OF_PAIRS,
    OF_TYPES,
    PAIR_PROB,
    PROB,
    WEIGHT_AFTER,
    WEIGHT_BEFORE,
    TypeChain,
)
from keydyn.model.families.categorical import Categorical
from keydyn.model.families.family import Family, Params
from keydyn.model.theta.parameters import EventChain

# A relative spread below this is rounding error: the values are equal.
NO_SPREAD = 1e-12


@dataclass(frozen=True)
class TypeCounts:
    """Weighted frequencies of event types, of pairs of successive types, and of first types.

    Attributes
    ----------
    event_types : (m,); pairs : (P, 2)
    sequences : weighted number of sequences
    type_counts : (m,) f(ω); start_counts : (m,) sequences that begin with ω
    pair_counts : (P,) f(ψ, ω)
    """

    event_types: Types
    pairs: Integers
    sequences: float
    type_counts: Floats
    start_counts: Floats
    pair_counts: Floats

    def chain(self) -> EventChain:
        """The event chain π[ω], a[ψ, ω] and Π[ω] (Eq. 30) as observed."""
        leaving, entering = (sums_by(end, self.pair_counts, len(self.type_counts)) for end in self.pairs.T)
        of_pairs = leaving[self.pairs[:, 0]]
        nothing = np.zeros(len(self.pairs))
        pair_prob = np.divide(self.pair_counts, of_pairs, out=nothing, where=self.pair_counts > 0.0)
        return EventChain(shares(self.type_counts), leaving, entering, shares(self.start_counts), pair_prob)

    def type_chain(self, chain: EventChain, settings: FitSettings) -> TypeChain:
        """The event chain and the weights of estimates in smoothing, in the form that the engine takes."""
        smoothing, (before, after) = settings.smoothing, self.pairs.T
        starts = self.start_counts if settings.start_estimate == "sequence_start" else self.type_counts
        of_pairs = np.empty((len(self.pairs), OF_PAIRS))
        of_types = np.empty((len(self.type_counts), OF_TYPES))
        of_pairs[:, PAIR_PROB] = chain.pair_prob
        of_pairs[:, WEIGHT_BEFORE], of_pairs[:, WEIGHT_AFTER] = smoothing.transition_weights(
            self.pair_counts, chain.leaving[before], chain.entering[after]
        )
        of_types[:, PROB], of_types[:, LEAVING] = chain.prob, chain.leaving
        of_types[:, KEEP_START] = kept_shares(smoothing.start, starts)
        of_types[:, KEEP_EMISSION] = kept_shares(smoothing.emission, self.type_counts)
        return TypeChain(np.ascontiguousarray(self.pairs), of_pairs, of_types)

    def aligned(self, event_types: Types, pairs: Integers) -> tuple[TypeCounts, Integers]:
        """The counts in a larger vocabulary, and the places of the old pairs in the new list."""
        m = len(event_types)
        rows = np.searchsorted(pairs[:, 0] * m + pairs[:, 1], self.pairs[:, 0] * m + self.pairs[:, 1])
        pair = np.zeros(len(pairs))
        pair[rows] = self.pair_counts
        more = np.zeros(m - len(self.type_counts))
        types, starts = np.concatenate([self.type_counts, more]), np.concatenate([self.start_counts, more])
        return TypeCounts(event_types, pairs, self.sequences, types, starts, pair), rows

    def __add__(self, other: TypeCounts) -> TypeCounts:
        return TypeCounts(
            self.event_types,
            self.pairs,
            self.sequences + other.sequences,
            self.type_counts + other.type_counts,
            self.start_counts + other.start_counts,
            self.pair_counts + other.pair_counts,
        )


def shares(counts: Floats) -> Floats:
    """Counts divided by their sum; equal shares if the sum is zero."""
    total = counts.sum()
    return counts / total if total > 0.0 else np.full(len(counts), 1.0 / len(counts))


class Moments(NamedTuple):
    """Weight, mean and sum of squared deviations of values on their working scale, one row per group."""

    weight: Floats
    mean: Floats
    square: Floats

    def of(self, feature: int) -> Moments:
        """The moments of one feature, from arrays (groups, K)."""
        return Moments(self.weight[:, feature], self.mean[:, feature], self.square[:, feature])

    @property
    def deviation(self) -> Floats:
        """The standard deviation; 0 for a group without values."""
        return np.sqrt(self.square / np.where(self.weight > 0.0, self.weight, 1.0))


def sums_by(groups: Integers, weights: Floats | None, n_groups: int) -> Floats:
    """The sums of weights by group; without weights, the counts."""
    return np.bincount(groups, weights, n_groups).astype(np.float64, copy=False)


def moments_by(groups: Integers, n_groups: int, weights: Floats | None, values: Floats) -> Moments:
    """The moments of values by group, in two passes; NaN values have no weight."""
    total = sums_by(groups, values if weights is None else weights * values, n_groups)
    if np.isnan(total).any():
        there = ~np.isnan(values)
        of_those = None if weights is None else weights[there]
        return moments_by(groups[there], n_groups, of_those, values[there])
    weight = sums_by(groups, weights, n_groups)
    mean = np.divide(total, weight, out=np.zeros(n_groups), where=weight > 0.0)
    apart = values - mean.take(groups)
    apart *= apart if weights is None else weights * apart
    return Moments(weight, mean, sums_by(groups, apart, n_groups))


def together(moments: Moments, bounds: Integers) -> Moments:
    """The pooled moments of each run of groups between two bounds."""
    first = bounds[:-1]
    weight = np.add.reduceat(moments.weight, first)
    total = np.add.reduceat(moments.weight * moments.mean, first)
    mean = np.divide(total, weight, out=np.zeros(total.shape), where=weight > 0.0)
    apart = moments.mean - np.repeat(mean, bounds[1:] - first, axis=0)
    return Moments(weight, mean, np.add.reduceat(moments.square + moments.weight * apart * apart, first))


def least_scale(family: Family, overall: Moments, largest: Floats, min_scale: float | None) -> Floats:
    """The scale floor of a feature (docs/decisions/0008) in each of several sets of data.

    It is `min_scale`, or by default a thousandth of the spread of the data. Data without spread have an
    absolute floor: 1e-3 on the log scale, 1e-6·max(1, |x|) on the linear scale. For a categorical, which has
    no scale, it is the pseudocount, which the engine expects in this place.
    """
    if isinstance(family, Categorical):
        return np.full(len(overall.weight), float(family.pseudocount))
    if min_scale is not None:
        return np.full(len(overall.weight), min_scale)
    spread, logs = overall.deviation, family.on_log_scale
    absolute = np.full(len(spread), 1e-3) if logs else 1e-6 * np.maximum(1.0, largest)
    size = np.maximum(np.abs(overall.mean), 1.0 if logs else 0.0)
    return np.where(spread > NO_SPREAD * size, 1e-3 * spread, absolute)


def displacements(feature: int, settings: FitSettings, jitter: np.random.Generator | None) -> Floats:
    """The start locations of a feature's states relative to the mean, in units of the spread, (M,).

    With `jitter` a standard normal number is added for each state, the same for all event types, so that a
    state has the same meaning for all of them.
    """
    shift = spread_out(settings.n_states, settings.spread)
    if feature != settings.leading_feature and settings.spread_features == "leading":
        shift = np.zeros(settings.n_states)
    return shift if jitter is None else shift + jitter.standard_normal(settings.n_states)


@lru_cache(maxsize=64)
def spread_out(n_states: int, spread: float) -> Floats:
    """2h(j − 1)/(M − 1) − h of Eq. 23; a single state is in the middle."""
    return np.linspace(-spread, spread, n_states) if n_states > 1 else np.zeros(1)


def start_emission(
    family: Family, by_type: Moments, of_all: Moments, floor: Floats, shift: Floats, settings: FitSettings
) -> Params:
    """Emissions spread around each type's own mean (Section 3.5, Eqs. 23–24), parameters (R, M).

    `of_all` and `floor` are for all events, repeated for each row; a type without values starts there.
    """
    seen = by_type.weight > 0.0
    middle = np.where(seen, by_type.mean, of_all.mean)
    deviation = np.where(seen, by_type.deviation, of_all.deviation)
    unit = deviation if settings.spread_scale == "type" else of_all.deviation
    return family.start(middle[:, None], np.maximum(deviation, floor)[:, None], unit[:, None] * shift)
