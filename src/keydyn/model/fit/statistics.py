"""What an expectation step leaves behind: sums that can be added up over chunks of data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.ask import lattice as lattices
from keydyn.model.ask.lattice import EventIndex
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.sums import first_occurrences, weighted_moments, weighted_sums
from keydyn.model.estimation.indexing import count_events
from keydyn.model.families.family import Family, Stats
from keydyn.model.moments import merge_moments
from keydyn.model.theta.parameters import Parameters


@dataclass(frozen=True)
class Data:
    """Sequences encoded against a model's vocabulary, with weights; built once for a whole fit.

    Attributes
    ----------
    X : (N, K); index : which tables each event uses; weights : (S,) one a sequence
    event_types : (m,) the model's vocabulary; families : the family of each feature
    """

    X: Floats
    index: EventIndex
    weights: Floats
    event_types: Types
    families: list[Family]

    @cached_property
    def event_weights(self) -> Floats:
        """The weight of each event, (N, 1)."""
        return np.repeat(self.weights, np.diff(self.index.offsets))[:, None]

    @cached_property
    def counts(self) -> Counts:
        """How often types, pairs and first types occur, weighted."""
        m, index, known = len(self.event_types), self.index, slice(self.index.n_known)
        types, starts, taken = count_events(
            index.codes, index.offsets, index.trans_index, self.weights, m, len(index.before)
        )
        pairs = np.stack([index.before[known], index.after[known]], axis=1)
        return Counts(self.event_types, pairs, float(self.weights.sum()), types, starts, taken[known])

    @cached_property
    def overall(self) -> list[Stats]:
        """Weight, mean and squared deviations of each feature on its working scale; the largest |x|."""
        everywhere = np.zeros(len(self.X), dtype=np.int64)
        moments = []
        for k, family in enumerate(self.families):
            count, mean, square = weighted_moments(
                everywhere, 1, self.event_weights, family.working(self.X[:, k])
            )
            largest = np.max(np.abs(self.X[:, k]), initial=0.0, where=~np.isnan(self.X[:, k]))
            moments.append({"count": count, "mean": mean, "square": square, "largest": np.array(largest)})
        return moments

    @cached_property
    def first_occurrences(self) -> Integers:
        """Events that are the first of their type in their sequence."""
        return first_occurrences(self.index.codes, self.index.offsets, len(self.event_types))


@dataclass(frozen=True)
class Counts:
    """Weighted frequencies of event types.

    Attributes
    ----------
    event_types : (m,); pairs : (P, 2)
    sequences : number of sequences
    types : (m,) f(ω); starts : (m,) sequences that begin with ω; pair : (P,) f(ψ, ω)
    """

    event_types: Types
    pairs: Integers
    sequences: float
    types: Floats
    starts: Floats
    pair: Floats

    @property
    def leaving(self) -> Floats:
        """f(ψ,·)."""
        return np.bincount(self.pairs[:, 0], self.pair, minlength=len(self.types)).astype(np.float64)

    @property
    def entering(self) -> Floats:
        """f(·,ω)."""
        return np.bincount(self.pairs[:, 1], self.pair, minlength=len(self.types)).astype(np.float64)

    def behind_start(self, start_estimate: str) -> Floats:
        """What the start probabilities of each type rest on, (m,)."""
        return self.starts if start_estimate == "sequence_start" else self.types

    def aligned(self, event_types: Types, pairs: Integers) -> tuple[Counts, Integers]:
        """The same counts in a larger vocabulary, and where the old pairs stand in the new list."""
        m = len(event_types)
        rows = np.searchsorted(pairs[:, 0] * m + pairs[:, 1], self.pairs[:, 0] * m + self.pairs[:, 1])
        pair = np.zeros(len(pairs))
        pair[rows] = self.pair
        return (
            Counts(event_types, pairs, self.sequences, _pad(self.types, m), _pad(self.starts, m), pair),
            rows,
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.event_types,
            self.pairs,
            self.sequences + other.sequences,
            self.types + other.types,
            self.starts + other.starts,
            self.pair + other.pair,
        )


@dataclass(frozen=True)
class Statistics:
    """Expected counts under the current parameters.

    Attributes
    ----------
    counts : observed frequencies
    log_likelihood : weighted, of all sequences
    start : (m, M) Σ γ₁ of the sequences that begin with ω
    start_all : (M,) Σ γ₁ of all sequences, also those whose first event has no type
    first_occurrence : (m, M) Σ γ at the first ω of each sequence (the published settings)
    occupancy : (m, M) Σ γ of the events of type ω, with or without a value
    transitions : (P, M, M) Σ ξ
    emission : the family's statistics of each feature
    overall : moments of each feature over all events, for the scale floor
    """

    counts: Counts
    log_likelihood: float
    start: Floats
    start_all: Floats
    first_occurrence: Floats
    occupancy: Floats
    transitions: Floats
    emission: list[Stats]
    overall: list[Stats]

    def merged(self, other: Statistics, families: list[Family]) -> Statistics:
        """Both together; vocabulary and pairs are those of `other`, which has at least ours."""
        ours = self._aligned(other.counts)
        return Statistics(
            ours.counts + other.counts,
            ours.log_likelihood + other.log_likelihood,
            ours.start + other.start,
            ours.start_all + other.start_all,
            ours.first_occurrence + other.first_occurrence,
            ours.occupancy + other.occupancy,
            ours.transitions + other.transitions,
            [f.merge(a, b) for f, a, b in zip(families, ours.emission, other.emission, strict=True)],
            [
                merge_moments(a, b) | {"largest": np.maximum(a["largest"], b["largest"])}
                for a, b in zip(ours.overall, other.overall, strict=True)
            ],
        )

    def _aligned(self, target: Counts) -> Statistics:
        m = len(target.event_types)
        counts, rows = self.counts.aligned(target.event_types, target.pairs)
        transitions = np.zeros((len(target.pairs), *self.transitions.shape[1:]))
        transitions[rows] = self.transitions
        return replace(
            self,
            counts=counts,
            start=_pad(self.start, m),
            first_occurrence=_pad(self.first_occurrence, m),
            occupancy=_pad(self.occupancy, m),
            transitions=transitions,
            emission=[{name: _pad(values, m) for name, values in stats.items()} for stats in self.emission],
        )

    def reordered(self, order: Integers) -> Statistics:
        """The same with states renumbered."""
        return replace(
            self,
            start=self.start[:, order],
            start_all=self.start_all[order],
            first_occurrence=self.first_occurrence[:, order],
            occupancy=self.occupancy[:, order],
            transitions=self.transitions[:, order[:, None], order],
            emission=[{name: values[:, order] for name, values in stats.items()} for stats in self.emission],
        )


def expectation(parameters: Parameters, data: Data, density_floor: float | None) -> Statistics:
    """The E-step of Algorithm 1: γ and ξ of every event, summed by event type and pair.

    An event without a type uses the marginals and adds to no type's sums; `parameters` lists every type
    and pair of the data.
    """
    m, index = parameters.n_types, data.index
    lattice = lattices.build(parameters, data.X, index, density_floor)
    posterior = lattices.posterior(lattice, data.weights)
    lattices.check_possible(posterior.increments, index.offsets)
    weighted = posterior.states * data.event_weights
    first = weighted[index.offsets[:-1]]
    occurrences = data.first_occurrences
    counts, rows = data.counts.aligned(parameters.event_types, parameters.pairs)
    transitions = np.zeros_like(parameters.transmat)
    transitions[rows] = posterior.transitions[: index.n_known]
    return Statistics(
        counts,
        float(data.weights @ lattices.per_sequence(posterior.increments, index.offsets)),
        weighted_sums(index.start_index, m, first),
        first.sum(axis=0),
        weighted_sums(index.codes[occurrences], m, weighted[occurrences]),
        weighted_sums(index.codes, m, weighted),
        transitions,
        [
            family.statistics(data.X[:, k], weighted, index.codes, m, parameters.emission_tables[k].params)
            for k, family in enumerate(data.families)
        ],
        data.overall,
    )


def _pad(values: Floats, n_rows: int) -> Floats:
    padded = np.zeros((n_rows, *values.shape[1:]))
    padded[: len(values)] = values
    return padded
