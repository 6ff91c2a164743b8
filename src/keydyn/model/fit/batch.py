"""The training data of many models, laid out one after the other for Algorithm 1.

Models that share their event sequences (a fixed text, folds, surrogates) form a group; most groups have one
model. Quantities derived from events are laid out by group, those derived from values by model. Everything is
computed for all models at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Array, Floats, Integers, Truths
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import MISSING, SINGLE_TYPE, Types
from keydyn.model.engine.densities import ON_LOG_SCALE
from keydyn.model.engine.layout import FitEvents, TypeChain
from keydyn.model.families.compiled import features_of
from keydyn.model.families.family import Family
from keydyn.model.families.location_scale import LogScale
from keydyn.model.theta.from_data import Moments, TypeCounts, least_scale, moments_by, sums_by, together
from keydyn.model.theta.parameters import EventChain


@dataclass(frozen=True, eq=False)
class Batch:
    """The training data of B models in G groups.

    Attributes
    ----------
    families : one per feature
    values : (V, K) values of all models; event_types : vocabulary of each group
    codes, steps : (N,) the row of each event's type, and of the step to it, in the tables of all groups
    offsets : (S + 1,) bounds of the sequences; weights : (S,) their weights
    pairs : (P, 2) rows of the observed pairs of types; in_order : whether they are sorted
    sequences_of, rows_of, pairs_of : (G + 1,) where the part of each group begins; the last row of a group is
        for unknown types
    type_counts, start_counts : (R,) weighted counts of each type, and of sequences that begin with it
    pair_counts : (P,) weighted count of each pair
    group : (B,) the group of each model
    """

    families: tuple[Family, ...]
    values: Floats
    event_types: list[Types]
    codes: Integers
    steps: Integers
    offsets: Integers
    weights: Floats
    pairs: Integers
    in_order: bool
    sequences_of: Integers
    rows_of: Integers
    pairs_of: Integers
    type_counts: Floats
    start_counts: Floats
    pair_counts: Floats
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
        """A batch in which each item is the training data of one model; weights must not be zero.

        The vocabulary of a model has the types that occur, or a single one if there are none. `known`
        replaces it by a given vocabulary (for a single item).
        """
        n_events = np.array([item.n_events for item in items])
        sequences_of = bounds(np.array([len(item) for item in items]))
        codes, event_types = _encoded(items, n_events, known)
        n_types = np.array([len(types) for types in event_types])
        rows_of = bounds(n_types + 1)
        lengths, weights_of = np.concatenate([item.lengths for item in items]), np.concatenate(weights)
        offsets, of_events = bounds(lengths), _unless_one(weights_of, lengths)
        observed = _observed_pairs(codes, offsets, of_events, n_events, sequences_of, n_types)
        rows, n_rows, unknown = codes + _by_event(rows_of[:-1], n_events), int(rows_of[-1]), rows_of[1:] - 1
        type_counts = sums_by(rows, of_events, n_rows)
        start_counts = sums_by(rows[offsets[:-1]], weights_of, n_rows)
        type_counts[unknown] = start_counts[unknown] = 0.0
        return cls(
            families=families,
            values=np.ascontiguousarray(_joined([item.X for item in items])),
            event_types=event_types,
            codes=rows,
            steps=observed.steps,
            offsets=offsets,
            weights=weights_of,
            pairs=observed.pairs,
            in_order=observed.in_order,
            sequences_of=sequences_of,
            rows_of=rows_of,
            pairs_of=observed.pairs_of,
            type_counts=type_counts,
            start_counts=start_counts,
            pair_counts=observed.counts,
            group=np.arange(len(items)),
        )

    @classmethod
    def shared(cls, items: Sequence[Sequences], families: tuple[Family, ...]) -> Batch:
        """A batch of models that share their event sequences, which are taken from the first item."""
        first = cls.of(items[:1], [np.ones(len(items[0]))], families)
        values = np.ascontiguousarray(np.concatenate([item.X for item in items]))
        return replace(first, values=values, group=np.zeros(len(items), dtype=np.int64))

    def alone(self, b: int) -> Batch:
        """Model `b` of a batch whose models share their events."""
        n = len(self.codes)
        return replace(self, values=self.values[b * n : (b + 1) * n], group=np.zeros(1, dtype=np.int64))

    def without_data(self) -> Batch:
        """The batch with counts and overall moments only."""
        nothing = np.empty(0, dtype=np.int64)
        values = np.empty((0, len(self.families)))
        counts = replace(self, values=values, codes=nothing, steps=nothing, offsets=nothing)
        vars(counts)["overall"] = self.overall
        return counts

    def with_pairs(self, pairs: Integers) -> Batch:
        """The batch of a single model with a longer, sorted list of pairs that includes those of the data."""
        m, n_new = int(self.n_types[0]), len(pairs)
        place = np.searchsorted(pairs[:, 0] * m + pairs[:, 1], self.pairs[:, 0] * m + self.pairs[:, 1])
        pair_counts = np.zeros(n_new)
        pair_counts[place] = self.pair_counts
        steps = np.concatenate([place, n_new + np.arange(2 * m + 1)])[self.steps]
        pairs_of = np.array([0, n_new])
        return replace(
            self, pairs=pairs, in_order=True, steps=steps, pairs_of=pairs_of, pair_counts=pair_counts
        )

    @cached_property
    def n_types(self) -> Integers:
        """The number of event types of each group, (G,)."""
        return sizes(self.rows_of) - 1

    @cached_property
    def steps_of(self) -> Integers:
        """Where each group's transition table (pairs, marginals by type, marginal) begins, (G + 1,)."""
        return bounds(sizes(self.pairs_of) + 2 * self.n_types + 1)

    @cached_property
    def n_events(self) -> Integers:
        """The number of events of each group, (G,)."""
        return sizes(self.offsets[self.sequences_of])

    @cached_property
    def n_rows(self) -> Integers:
        """The number of rows of each model's tables, (B,)."""
        return sizes(self.rows_of)[self.group]

    @property
    def is_shared(self) -> bool:
        """Whether the models share their events."""
        return len(self.n_types) < len(self)

    @cached_property
    def spans(self) -> Integers:
        """The part of all arrays that belongs to each group, (G, 7); see `engine.layout`."""
        parts = (self.sequences_of, self.rows_of, self.pairs_of)
        spans = np.empty((len(self.n_types), 7), dtype=np.int64)
        for k, part in enumerate(parts):
            spans[:, 2 * k], spans[:, 2 * k + 1] = part[:-1], part[1:]
        spans[:, -1] = self.steps_of[:-1]
        return spans

    @cached_property
    def events(self) -> FitEvents:
        """The events in the form that the engine takes."""
        start_rows, nothing_given = self.codes[self.offsets[:-1]], np.empty((0, 0, 1))
        x = self.engine_values[: len(self.codes)]
        return FitEvents(x, self.codes, self.steps, self.offsets, self.weights, start_rows, nothing_given)

    @cached_property
    def engine_values(self) -> Floats:
        """The values on the scale on which the engine computes densities, (V, K, 1)."""
        logs = features_of(self.families)[:, ON_LOG_SCALE] > 0
        if logs.all():
            return np.log(self.values)[..., None]
        taken = self.values.copy()
        taken[:, logs] = np.log(taken[:, logs])
        return taken[..., None]

    def counts(self, g: int) -> TypeCounts:
        """The counts of types and pairs of group `g`."""
        first, row = int(self.rows_of[g]), slice(self.rows_of[g], self.rows_of[g + 1] - 1)
        own = slice(*self.pairs_of[g : g + 2])
        weight = float(self.weights[self.sequences_of[g] : self.sequences_of[g + 1]].sum())
        return TypeCounts(
            event_types=self.event_types[g],
            pairs=self.pairs[own] - first,
            sequences=weight,
            type_counts=self.type_counts[row],
            start_counts=self.start_counts[row],
            pair_counts=self.pair_counts[own],
        )

    def type_chain(self, settings: FitSettings) -> TypeChain:
        """The event chains of all groups, and the weights of estimates in smoothing, for the engine."""
        nothing: Types = np.array([])
        of_all = TypeCounts(nothing, self.pairs, 0.0, self.type_counts, self.start_counts, self.pair_counts)
        return of_all.type_chain(self._steps_between_types, settings)

    @cached_property
    def event_chain(self) -> EventChain:
        """The event chains of all groups, one after the other."""
        return replace(self._steps_between_types, startprob=self._shares(self.start_counts))

    @cached_property
    def _steps_between_types(self) -> EventChain:
        """The event chains without start probabilities, which a fit does not need."""
        n_rows, (before, after) = int(self.rows_of[-1]), self.pairs.T
        counts, nothing = self.pair_counts, np.zeros(len(self.pairs))
        leaving, entering = sums_by(before, counts, n_rows), sums_by(after, counts, n_rows)
        pair_prob = np.divide(counts, leaving[before], out=nothing, where=counts > 0.0)
        return EventChain(self._shares(self.type_counts), leaving, entering, None, pair_prob)

    def _shares(self, counts: Floats) -> Floats:
        """Counts divided by their group's sum; equal shares if the sum is zero."""
        total = np.add.reduceat(counts, self.rows_of[:-1])
        nothing, divisor = total == 0.0, np.where(total == 0.0, self.n_types, total)
        if len(total) > 1:
            nothing, divisor = (np.repeat(of, sizes(self.rows_of)) for of in (nothing, divisor))
        shares: Floats = (counts + nothing) / divisor
        return shares

    @cached_property
    def overall(self) -> tuple[Moments, Floats]:
        """Moments over all events of each model, (B, K), and the largest |x| of linear-scale features."""
        largest = np.zeros((len(self), len(self.families)))
        for k, family in enumerate(self.families):
            if not family.on_log_scale:
                first_value = bounds(self.n_events[self.group])[:-1]
                largest[:, k] = np.fmax.reduceat(np.abs(self.values[:, k]), first_value)
        return together(self.by_type, bounds(self.n_rows)), largest

    @cached_property
    def by_type(self) -> Moments:
        """Moments of each feature by type, (R, K), for one model after the other."""
        values, rows, n_rows = self.engine_values[..., 0].T, self.codes, int(self.n_rows.sum())
        weights = _unless_one(self.weights, sizes(self.offsets))
        if self.is_shared:
            rows = (bounds(self.n_rows)[:-1, None] + rows).ravel()
            weights = None if weights is None else np.tile(weights, len(self))
        found = np.empty((3, n_rows, len(self.families)))
        for k, family in enumerate(self.families):
            column = values[k]
            if family.on_log_scale and not isinstance(family, LogScale):
                column = family.working(self.values[:, k])
            found[..., k] = moments_by(rows, n_rows, weights, np.ascontiguousarray(column))
        return Moments(*found)

    def least_scales(self, settings: FitSettings) -> Floats:
        """The scale floor of each feature for each row of the models' tables, (R, K, 1).

        A categorical has its pseudocount in this place.
        """
        overall, largest = self.overall
        scales = np.empty((*largest.shape, 1))
        for k, family in enumerate(self.families):
            scales[:, k, 0] = least_scale(family, overall.of(k), largest[:, k], settings.min_scale)
        return np.repeat(scales, self.n_rows, axis=0)


def bounds(sizes: Integers | Truths) -> Integers:
    """Where each of several parts begins, and where the last ends."""
    ends = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def sizes(bounds: Integers) -> Integers:
    """The size of each part between consecutive bounds."""
    return bounds[1:] - bounds[:-1]


def _joined(arrays: Sequence[Array]) -> Array:
    """The concatenated arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _by_event(of_models: Integers, n_events: Integers) -> Integers:
    """Per-model numbers repeated for each event; for a single model, as they are (they broadcast)."""
    return of_models if len(of_models) == 1 else np.repeat(of_models, n_events)


def _unless_one(weights: Floats, lengths: Integers) -> Floats | None:
    """The weight of each event; None if all are one."""
    return None if (weights == 1.0).all() else np.repeat(weights, lengths)


def _encoded(
    items: Sequence[Sequences], n_events: Integers, known: Types | None
) -> tuple[Integers, list[Types]]:
    """The code of each event in its model's vocabulary, m where it has no type, and the vocabularies."""
    if known is not None:
        codes, _ = vocabulary.find(items[0].codes, items[0].event_types, known)
        return codes, [known]
    # Each item has one place for events without a type, then one for each of its types.
    n_places = np.array([1 + len(item.event_types) for item in items])
    places_of = bounds(n_places)
    none = places_of[:-1]
    places = _joined([item.codes for item in items]) + _by_event(none - MISSING, n_events)
    seen = np.bincount(places, minlength=int(places_of[-1])) > 0
    seen[none] = False
    before = bounds(seen)
    n_types = sizes(before[places_of])
    code = before[:-1] - np.repeat(before[none], n_places)
    code[none] = n_types
    codes, events_of, event_types = code[places], bounds(n_events), []
    for b, item in enumerate(items):
        types = item.event_types[seen[places_of[b] + 1 : places_of[b + 1]]]
        if len(types) == 0 or vocabulary.is_single(types):
            # To a model without event types all events have the same type.
            types = np.array([SINGLE_TYPE])
            codes[events_of[b] : events_of[b + 1]] = 0
        event_types.append(types)
    return codes, event_types


class _ObservedPairs(NamedTuple):
    """The observed pairs of types of all models, and the step to each event.

    The attributes are those of `Batch`; `counts` are its `pair_counts`.
    """

    pairs_of: Integers
    pairs: Integers
    counts: Floats
    steps: Integers
    in_order: bool


def _observed_pairs(
    codes: Integers,
    offsets: Integers,
    weights: Floats | None,
    n_events: Integers,
    sequences_of: Integers,
    n_types: Integers,
) -> _ObservedPairs:
    """Find the observed pairs of types, and for each event the row of the transition table that leads to it.

    If few pairs are possible, the observed ones are sorted. Otherwise they stay in the order of the data, so
    that a pass over the events walks along their table instead of jumping in it. `weights` are those of the
    events, None if all are one.
    """
    m, first, keys_of = _by_event(n_types, n_events), offsets[:-1], bounds(n_types * n_types)
    unknown = np.flatnonzero(codes == m)
    # The events whose step starts or ends at an unknown type.
    apart = np.concatenate([unknown, unknown[unknown < len(codes) - 1] + 1])
    # Each possible pair of a model has a number, its key; n_keys marks events without such a pair, the first
    # of a sequence among them.
    keys, n_keys = np.concatenate([[0], codes[:-1]]) * m + codes, int(keys_of[-1])
    if len(n_types) > 1:
        keys += _by_event(keys_of[:-1], n_events)
    keys[first] = keys[apart] = n_keys
    in_order = n_keys <= 4 * len(codes) + 4096
    if in_order:
        counts = sums_by(keys, weights, n_keys + 1)[:-1]
        distinct = np.flatnonzero(counts > 0.0)
        number, counts = np.zeros(n_keys + 1, dtype=np.int64), counts[distinct]
        number[distinct] = np.arange(len(distinct))
        taken = number[keys]
    else:
        among, taken = keys < n_keys, np.zeros(len(codes), dtype=np.int64)
        taken[among], distinct = pd.factorize(keys[among])
        counts = sums_by(taken[among], None if weights is None else weights[among], len(distinct))
    owner = np.searchsorted(keys_of, distinct, side="right") - 1
    pairs = np.empty((len(distinct), 2), dtype=np.int64)
    np.divmod(distinct - keys_of[owner], n_types[owner], out=(pairs[:, 0], pairs[:, 1]))
    pairs += bounds(n_types + 1)[owner][:, None]
    pairs_of = np.searchsorted(owner, np.arange(len(n_types) + 1))
    n_pairs = sizes(pairs_of)
    steps_of = bounds(n_pairs + 2 * n_types + 1)
    steps = taken + _by_event(steps_of[:-1] - pairs_of[:-1], n_events)
    if len(apart):
        model = np.searchsorted(bounds(n_events), apart, side="right") - 1
        earlier, n_known = codes[apart - 1], n_types[model]
        steps[apart] = (steps_of[:-1] + n_pairs)[model] + np.where(
            earlier < n_known, earlier, n_known + codes[apart]
        )
    # The first event of a sequence has no step; any valid row will do.
    steps[first] = np.repeat(steps_of[:-1], sizes(sequences_of))
    return _ObservedPairs(pairs_of, pairs, counts, steps, in_order)
