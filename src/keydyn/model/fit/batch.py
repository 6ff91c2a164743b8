"""Training data of many models, laid out one after the other: what Algorithm 1 works on.

Models that share their event sequences (a fixed text, folds, surrogates) form a group; most groups have one
model. Whatever follows from the events is laid out by group, whatever follows from the values by model. All
of it is done for all models at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.settings import Settings
from keydyn.model.data.vocabulary import MISSING, SINGLE_TYPE, Types
from keydyn.model.engine.densities import ON_LOG_SCALE
from keydyn.model.engine.expectation import Events
from keydyn.model.engine.maximisation import (
    KEEP_EMISSION,
    KEEP_START,
    LEAVING,
    PAIR_PROB,
    PROB,
    WEIGHT_AFTER,
    WEIGHT_BEFORE,
    Chain,
)
from keydyn.model.families.compiled import features_of
from keydyn.model.families.family import Family
from keydyn.model.families.log_scale import LogScale
from keydyn.model.theta.counts import Counts
from keydyn.model.theta.smoothing_weights import kept_shares, transition_weights
from keydyn.model.theta.start_values import Moments, least_scale, moments_by, together


@dataclass(frozen=True, eq=False)
class Batch:
    """B models in G groups.

    Attributes
    ----------
    families : one per feature
    values : (V, K) of all models; event_types : of each group
    codes, steps : (N,) the row of each event's type, and of the step to it, in the tables of all groups
    offsets : (S + 1,) sequences; weights : (S,)
    first_seen : events that are the first of their type in their sequence
    pairs : (P, 2) rows of the observed pairs of types; in_order : whether they are sorted
    sequences_of, rows_of, pairs_of, seen_of : (G + 1,) where the part of each group begins; the last row of
        a group is that of unknown types
    types, starts : (R,) weighted events of each type and sequences that begin with it; pair : (P,)
    group : (B,) of each model
    """

    families: tuple[Family, ...]
    values: Floats
    event_types: list[Types]
    codes: Integers
    steps: Integers
    offsets: Integers
    weights: Floats
    first_seen: Integers
    pairs: Integers
    in_order: bool
    sequences_of: Integers
    rows_of: Integers
    pairs_of: Integers
    seen_of: Integers
    types: Floats
    starts: Floats
    pair: Floats
    group: Integers

    def __len__(self) -> int:
        return len(self.group)

    @classmethod
    def of(
        cls,
        items: Sequence[Sequences],
        weights: Sequence[Floats],
        families: tuple[Family, ...],
        known: Types | None = None,
    ) -> Batch:
        """Each item the training data of one model; no weight is zero.

        A vocabulary has the types that occur, or the single one of data without any; `known` is a vocabulary
        that was given.
        """
        n_events = np.array([item.n_events for item in items])
        sequences_of = bounds(np.array([len(item) for item in items]))
        model = np.repeat(np.arange(len(items)), n_events)
        codes, event_types = _encoded(items, model, known)
        n_types = np.array([len(types) for types in event_types])
        rows_of = bounds(n_types + 1)
        lengths = np.concatenate([item.lengths for item in items])
        offsets = bounds(lengths)
        first = np.zeros(len(codes), dtype=bool)
        first[offsets[:-1]] = True
        pairs_of, pairs, steps, taken, in_order = _indexed(codes, first, model, n_types)
        every_weight = np.concatenate(weights)
        of_events = np.repeat(every_weight, lengths)
        rows = rows_of[model] + codes
        known_type = codes < n_types[model]
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        repeated = pd.Index(sequence * (int(n_types.max()) + 1) + codes).duplicated()
        seen = np.flatnonzero(~repeated & known_type)
        events_of = bounds(n_events)
        n_rows = int(rows_of[-1])
        return cls(
            families,
            np.ascontiguousarray(np.concatenate([item.X for item in items])),
            event_types,
            rows,
            steps,
            offsets,
            every_weight,
            seen,
            pairs,
            in_order,
            sequences_of,
            rows_of,
            pairs_of,
            np.searchsorted(seen, events_of),
            np.bincount(rows, of_events * known_type, n_rows).astype(np.float64),
            np.bincount(rows[first], every_weight * known_type[first], n_rows).astype(np.float64),
            np.bincount(taken[taken >= 0], of_events[taken >= 0], int(pairs_of[-1])).astype(np.float64),
            np.arange(len(items)),
        )

    @classmethod
    def shared(cls, items: Sequence[Sequences], families: tuple[Family, ...]) -> Batch:
        """Models over the same event sequences, those of the first item."""
        first = cls.of(items[:1], [np.ones(len(items[0]))], families)
        values = np.ascontiguousarray(np.concatenate([item.X for item in items]))
        return replace(first, values=values, group=np.zeros(len(items), dtype=np.int64))

    def alone(self, b: int) -> Batch:
        """One of several models over the same events."""
        n = len(self.codes)
        return replace(self, values=self.values[b * n : (b + 1) * n], group=np.zeros(1, dtype=np.int64))

    def without_data(self) -> Batch:
        """The counts alone."""
        nothing = np.empty(0, dtype=np.int64)
        values = np.empty((0, len(self.families)))
        return replace(self, values=values, codes=nothing, steps=nothing, offsets=nothing, first_seen=nothing)

    def with_pairs(self, pairs: Integers) -> Batch:
        """A single model with a list of pairs, sorted, that has at least those of the data."""
        m, n_new = int(self.n_types[0]), len(pairs)
        place = np.searchsorted(pairs[:, 0] * m + pairs[:, 1], self.pairs[:, 0] * m + self.pairs[:, 1])
        pair = np.zeros(n_new)
        pair[place] = self.pair
        steps = np.concatenate([place, n_new + np.arange(2 * m + 1)])[self.steps]
        pairs_of = np.array([0, n_new])
        return replace(self, pairs=pairs, in_order=True, steps=steps, pairs_of=pairs_of, pair=pair)

    @cached_property
    def n_types(self) -> Integers:
        """(G,) event types of each group."""
        return np.diff(self.rows_of) - 1

    @cached_property
    def steps_of(self) -> Integers:
        """(G + 1,) where each group's transition table begins: pairs, marginals by type, one for all."""
        return bounds(np.diff(self.pairs_of) + 2 * self.n_types + 1)

    @cached_property
    def n_events(self) -> Integers:
        """(G,) events of each group."""
        return np.diff(self.offsets[self.sequences_of])

    @property
    def is_shared(self) -> bool:
        """Whether all models have the same events."""
        return len(self.n_types) < len(self)

    @cached_property
    def spans(self) -> Integers:
        """The part of all arrays that belongs to each group, (G, 9); see `engine.expectation`."""
        parts = (self.sequences_of, self.rows_of, self.pairs_of, self.seen_of)
        columns = [part[place : place + len(self.n_types)] for part in parts for place in (0, 1)]
        return np.ascontiguousarray(np.stack([*columns, self.steps_of[:-1]], axis=1))

    @cached_property
    def events(self) -> Events:
        """The events as the engine takes them."""
        start_rows = self.codes[self.offsets[:-1]]
        return Events(self.codes, self.steps, self.offsets, self.weights, start_rows, self.first_seen)

    @cached_property
    def engine_values(self) -> Floats:
        """Values on the scale on which the engine takes densities, (V, K, 1)."""
        logs = features_of(self.families)[:, ON_LOG_SCALE] > 0
        if logs.all():
            return np.log(self.values)[..., None]
        taken = self.values.copy()
        taken[:, logs] = np.log(taken[:, logs])
        return taken[..., None]

    def counts(self, g: int) -> Counts:
        """How often types and pairs of a group occur."""
        first, row = int(self.rows_of[g]), slice(self.rows_of[g], self.rows_of[g + 1] - 1)
        pair = slice(*self.pairs_of[g : g + 2])
        weight = float(self.weights[self.sequences_of[g] : self.sequences_of[g + 1]].sum())
        pairs, times = self.pairs[pair] - first, self.pair[pair]
        return Counts(self.event_types[g], pairs, weight, self.types[row], self.starts[row], times)

    def chain(self, settings: Settings) -> Chain:
        """The event chains of all groups, and what estimates weigh in smoothing."""
        smoothing, n_rows = settings.smoothing, int(self.rows_of[-1])
        before, after = self.pairs.T
        leaving = np.bincount(before, self.pair, n_rows).astype(np.float64)
        entering = np.bincount(after, self.pair, n_rows).astype(np.float64)
        starts = self.starts if settings.start_estimate == "sequence_start" else self.types
        of_pairs, of_types = np.zeros((len(self.pairs), 3)), np.empty((n_rows, 4))
        np.divide(self.pair, leaving[before], out=of_pairs[:, PAIR_PROB], where=self.pair > 0.0)
        of_pairs[:, WEIGHT_BEFORE], of_pairs[:, WEIGHT_AFTER] = transition_weights(
            smoothing.transitions, smoothing.published, self.pair, leaving[before], entering[after]
        )
        of_types[:, PROB], of_types[:, LEAVING] = self._shares(self.types), leaving
        of_types[:, KEEP_START] = kept_shares(smoothing.start, starts)
        of_types[:, KEEP_EMISSION] = kept_shares(smoothing.emission, self.types)
        return Chain(self.pairs, of_pairs, of_types)

    def _shares(self, counts: Floats) -> Floats:
        """Counts divided by their group's sum; equal shares if there is nothing to divide."""
        n_rows = np.diff(self.rows_of)
        total = np.repeat(np.add.reduceat(counts, self.rows_of[:-1]), n_rows)
        equal = 1.0 / np.repeat(self.n_types, n_rows)
        shares: Floats = np.divide(counts, total, out=equal, where=total > 0.0)
        return shares

    @cached_property
    def overall(self) -> list[tuple[Moments, Floats]]:
        """Moments of each feature over all events of each model, and its largest |x|."""
        n_rows = int(self.rows_of[-1])
        first_row = np.arange(len(self)) * n_rows if self.is_shared else self.rows_of[:-1]
        first_value = bounds(self.n_events[self.group])[:-1]
        largest = np.fmax.reduceat(np.abs(self.values), first_value, axis=0)
        return [(together(moments, first_row), largest[:, k]) for k, moments in enumerate(self.by_type)]

    @cached_property
    def by_type(self) -> list[Moments]:
        """Moments of each feature by type, one entry per row of the models' tables."""
        weights = np.repeat(self.weights, np.diff(self.offsets))
        moments = []
        for k, family in enumerate(self.families):
            values = self.engine_values[:, k, 0]
            if family.on_log_scale and not isinstance(family, LogScale):
                values = family.working(self.values[:, k])
            if self.is_shared:
                moments.append(self._shared_moments(values.reshape(len(self), -1)))
            else:
                moments.append(moments_by(self.codes, int(self.rows_of[-1]), weights, values))
        return moments

    def _shared_moments(self, values: Floats) -> Moments:
        """The same for models over the same events, values (B, N)."""
        order = np.argsort(self.codes, kind="stable")
        weights = np.repeat(self.weights, np.diff(self.offsets))
        seen, first = np.unique(self.codes[order], return_index=True)
        count, mean, square = (
            np.zeros(int(self.rows_of[-1])),
            *np.zeros((2, len(values), int(self.rows_of[-1]))),
        )
        count[seen] = np.add.reduceat(weights[order], first)
        mean[:, seen] = np.add.reduceat((values * weights)[:, order], first, axis=1) / count[seen]
        apart = (values - mean[:, self.codes]) ** 2 * weights
        square[:, seen] = np.add.reduceat(apart[:, order], first, axis=1)
        return Moments(np.tile(count, len(values)), mean.ravel(), square.ravel())

    def least_scales(self, settings: Settings) -> Floats:
        """The scale floor of each model and feature, (B, K, 1); of a categorical, its pseudocount."""
        columns = [
            least_scale(family, *self.overall[k], settings.min_scale)
            for k, family in enumerate(self.families)
        ]
        return np.stack(columns, axis=1)[..., None]


def bounds(sizes: Integers) -> Integers:
    """Where each of several parts begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _encoded(
    items: Sequence[Sequences], model: Integers, known: Types | None
) -> tuple[Integers, list[Types]]:
    """Codes of all events into the vocabulary of their model, m where there is no type; the vocabularies."""
    if known is not None:
        codes, _ = vocabulary.find(items[0].codes, items[0].event_types, known)
        return codes, [known]
    source = np.concatenate([item.codes for item in items])
    n_source = np.array([len(item.event_types) for item in items])
    source_of = bounds(n_source)
    there = source != MISSING
    keys = source_of[model] + source
    seen = np.bincount(keys[there], minlength=int(source_of[-1])) > 0
    before = np.concatenate([[0], np.cumsum(seen)])
    n_types = before[source_of[1:]] - before[source_of[:-1]]
    place = np.append(before[:-1] - np.repeat(before[source_of[:-1]], n_source), 0)
    codes = np.where(there, place[np.where(there, keys, 0)], n_types[model])
    event_types = []
    for b, item in enumerate(items):
        types = item.event_types[seen[source_of[b] : source_of[b + 1]]]
        if len(types) == 0 or vocabulary.is_single(types):
            # To a model without event types all events are one.
            types = np.array([SINGLE_TYPE])
            codes[model == b] = 0
        event_types.append(types)
    return codes, event_types


def _indexed(
    codes: Integers, first: Truths, model: Integers, n_types: Integers
) -> tuple[Integers, Integers, Integers, Integers, bool]:
    """The observed pairs of types of each model, and the row of the transition tables for each event.

    Few possible pairs are sorted. Many come in the order of the data, so that events walk along a table of
    them instead of jumping in it. Returns where each model's pairs begin, the rows of their types, the rows
    of steps, the number of each event's pair (−1 for none), and whether pairs are sorted.
    """
    m = n_types[model]
    earlier = np.concatenate([[0], codes[:-1]])
    known = ~first & (earlier < m) & (codes < m)
    keys_of = bounds(n_types * n_types)
    keys = (keys_of[model] + earlier * m + codes)[known]
    n_keys, taken = int(keys_of[-1]), np.full(len(codes), -1)
    in_order = n_keys <= 4 * len(codes) + 4096
    if in_order:
        occurs = np.bincount(keys, minlength=n_keys) > 0
        distinct = np.flatnonzero(occurs)
        taken[known] = (np.cumsum(occurs) - 1)[keys]
    else:
        taken[known], distinct = pd.factorize(keys.astype(np.int64))
    owner = np.searchsorted(keys_of, distinct, side="right") - 1
    pairs = np.stack(np.divmod(distinct - keys_of[owner], n_types[owner]), axis=1)
    pairs += bounds(n_types + 1)[owner][:, None]
    pairs_of = np.searchsorted(owner, np.arange(len(n_types) + 1))
    n_pairs = np.diff(pairs_of)
    steps_of = bounds(n_pairs + 2 * n_types + 1)
    marginal = n_pairs[model] + np.where(earlier < m, earlier, m + codes)
    steps = steps_of[model] + np.where(known, taken - pairs_of[model], marginal)
    # The first event of a sequence has no step; any row stands there.
    steps[first] = steps_of[model[first]]
    return pairs_of, pairs, steps, taken, in_order
