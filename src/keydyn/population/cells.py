"""Samples in the form that the model takes: logarithms of times, codes of keys, and the cells of values.

The cell of an interval is (previous key, key), that of a hold (key, next key), that of a further feature the
interval's. For a rare pair, or one with an unknown key, the cell is the key alone. All unknown keys count as
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, merged, plain, within, without_counting
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types, places_of
from keydyn.population.features import HOLD, INTERVAL, Around, spaces_of

LAST_POSITION, LAST_IN_WORD = 40, 15
N_CONTEXTS = 5
NO_EFFECTS: Floats = np.empty((0, 2, N_CONTEXTS))


@dataclass(frozen=True, eq=False)
class Observations:
    """The events of all samples, one after the other."""

    values: Floats  # (N, F) interval, hold, then further features; logarithms of times; NaN where missing
    codes: Integers  # (N,) place of the key in the vocabulary, len(vocabulary) if it is not there
    offsets: Integers  # (n + 1,) where samples begin, then N
    logs: Truths  # (F,) whether each feature is a logarithm

    def around(self, spaces: Integers) -> Around:
        """The keys and positions around each event; `spaces` are those of the cells."""
        around = Around(*np.empty((len(Around._fields), len(self.codes)), dtype=np.int64))
        look_around(self.codes, self.offsets, spaces, around)
        return around


@without_counting
def look_around(codes: Integers, offsets: Integers, spaces: Integers, around: Around) -> None:
    """Fill in the keys and positions around events with codes (N,) of samples that begin at `offsets`."""
    none = len(spaces) - 1
    for q in range(len(offsets) - 1):
        first, end, in_word = offsets[q], offsets[q + 1], -1
        for n in range(first, end):
            around.two_before[n] = codes[n - 2] if n > first + 1 else none
            around.before[n] = codes[n - 1] if n > first else none
            around.key[n] = codes[n]
            around.after[n] = codes[n + 1] if n + 1 < end else none
            around.position[n] = n - first
            in_word = place_in_word(in_word, n == first, around.before[n], spaces)
            around.in_word[n] = in_word


@merged
def place_in_word(last: int, begins: bool, before: int, spaces: Integers) -> int:
    """The place of a key in its word, given the place and the code of the key before it."""
    return -1 if spaces[before] < 0 else 0 if begins or spaces[before] == 1 else last + 1


def feature_order(samples: Samples) -> tuple[str, ...]:
    """The features in the model's order: interval, hold, then the others in the order of the samples."""
    names = samples.sequences.feature_names or ()
    absent = [name for name in (INTERVAL, HOLD) if name not in names]
    if absent:
        raise ValueError(f"the samples have no feature {absent[0]!r}; the population model needs it")
    return (INTERVAL, HOLD, *(name for name in names if name not in (INTERVAL, HOLD)))


def observations(samples: Samples, features: tuple[str, ...], places: Integers) -> Observations:
    """Convert samples to the model's form; a time of 0, which has no logarithm, counts as missing.

    `places` holds the code of each type of key, then that of a missing one.
    """
    if len(samples) == 0:
        raise ValueError("there are no samples")
    if feature_order(samples) != features:
        raise ValueError(
            f"the model knows the features {', '.join(features)}; the samples have "
            f"{', '.join(feature_order(samples))}"
        )
    sequences = samples.sequences
    columns, logs = _columns(sequences.feature_names or (), samples.emission, features)
    x = sequences.X.take(columns, axis=1)
    values = np.where(logs, np.nan, x)
    np.log(x, out=values, where=logs & (x > 0))
    # A sample's first interval is unknown, whatever value stands there.
    values[sequences.offsets[:-1], 0] = np.nan
    return Observations(values, places[sequences.codes], np.array(sequences.offsets), logs)


@lru_cache(maxsize=16)
def _columns(
    names: tuple[str, ...], emission: tuple[str, ...], features: tuple[str, ...]
) -> tuple[Integers, Truths]:
    """The column of each feature, and whether its logarithm is to be taken."""
    columns = [names.index(name) for name in features]
    return np.array(columns), np.array([emission[column] == "lognormal" for column in columns])


@dataclass(frozen=True, eq=False)
class Cells:
    """The numbering of cells: each feature's keys, the unknown key last, then each feature's pairs."""

    vocabulary: Types  # (m,) the known keys
    n_features: int  # F
    # Sorted codes of the pairs that have cells
    before: Integers  # previous · (m + 1) + key
    after: Integers  # key · (m + 1) + next

    @property
    def n_codes(self) -> int:
        """The number of codes of keys, the unknown key included."""
        return len(self.vocabulary) + 1

    @property
    def n_keys(self) -> int:
        """The number of keys of all features together, G."""
        return self.n_features * self.n_codes

    @property
    def pairs(self) -> list[Integers]:
        """The pairs that have cells of their own, for each feature."""
        return [self.after if f == 1 else self.before for f in range(self.n_features)]

    @cached_property
    def begins(self) -> Integers:
        """(F + 1,) the first cell of each feature's pairs, then the number of cells, C."""
        sizes = [len(pairs) for pairs in self.pairs]
        begins: Integers = self.n_keys + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return begins

    @property
    def n_cells(self) -> int:
        return int(self.begins[-1])

    @cached_property
    def key(self) -> Integers:
        """(C,) the key of each cell; keys are numbered through all features."""
        parts = [np.arange(self.n_keys)]
        for f, pairs in enumerate(self.pairs):
            code = pairs // self.n_codes if f == 1 else pairs % self.n_codes
            parts.append(f * self.n_codes + code)
        key: Integers = np.concatenate(parts).astype(np.int64)
        return key

    @cached_property
    def key_feature(self) -> Integers:
        """(G,) the feature of each key."""
        return np.repeat(np.arange(self.n_features), self.n_codes)

    @property
    def feature(self) -> Integers:
        """(C,) the feature of each cell."""
        feature: Integers = self.key_feature[self.key]
        return feature

    def pair_codes(self, around: Around) -> tuple[Integers, Integers]:
        """The codes of the pairs that end and that begin with each event; −1 if a key of it is unknown."""
        m, key = len(self.vocabulary), around.key
        ending = np.where((around.before < m) & (key < m), around.before * (m + 1) + key, -1)
        beginning = np.where((around.after < m) & (key < m), key * (m + 1) + around.after, -1)
        return ending, beginning

    @cached_property
    def spaces(self) -> Integers:
        """(m + 1,) whether a code's key ends a word, 1 or 0; all −1 if no key does, so there are no words."""
        ends = np.zeros(self.n_codes, dtype=np.int64)
        ends[spaces_of(self.vocabulary)] = 1
        return ends if ends.any() else ends - 1

    @cached_property
    def _place(self) -> dict[Any, int]:
        return places_of(self.vocabulary)

    def places(self, types: Types) -> Integers:
        """The codes of these types, then that of a missing one."""
        m = len(self.vocabulary)
        return np.array([*(self._place.get(label, m) for label in types.tolist()), m], dtype=np.int64)

    def of(self, around: Around) -> Integers:
        """(N, F) the cell of each value."""
        return Contexts.of(self).standardised(np.zeros((len(around.key), self.n_features)), around)[1]


@within
def _found(table: Integers, begin: int, end: int, wanted: int) -> int:
    """The index of a code in the sorted part of a table from `begin` to `end`; −1 if it is absent."""
    # Without a branch that depends on what is compared, which the machine would guess wrongly half the time.
    low, size = begin, end - begin
    while size > 1:
        half = size // 2
        low += half * (table[low + half] <= wanted)
        size -= half
    return low if size == 1 and table[low] == wanted else -1


@dataclass(frozen=True, eq=False)
class WideEffects:
    """The effects of wider contexts, by feature and then by context, sorted by the context's code."""

    codes: tuple[tuple[Integers, ...], ...]
    effects: tuple[tuple[Floats, ...], ...]

    @classmethod
    def none(cls, n_features: int) -> WideEffects:
        """No effects."""
        return cls(((),) * n_features, ((),) * n_features)

    @cached_property
    def flat(self) -> tuple[Integers, Integers, Floats]:
        """(2, N_CONTEXTS + 1) bounds of the contexts of intervals and holds, all codes, and all effects."""
        # While effects are being learnt, later contexts have none yet.
        sizes = np.array(
            [[len(one) for one in own] + [0] * (N_CONTEXTS - len(own)) for own in self.codes[:2]]
        )
        ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
        begins = np.column_stack([ends[:, :1] - sizes[:, :1], ends]).astype(np.int64)
        none: tuple[Any, ...] = (np.zeros(0),)
        codes, effects = (
            np.concatenate([one for own in both[:2] for one in own] or none)
            for both in (self.codes, self.effects)
        )
        return begins, codes.astype(np.int64), effects.astype(np.float64)


class Contexts(NamedTuple):
    """What people share in each context: the cells, and the effects of wider ones."""

    n_codes: int
    # Pairs of keys that have cells, and the first cell of each feature's pairs, as in `Cells`
    ending: Integers
    beginning: Integers
    begins: Integers
    # (C,) location and scale of the values in each cell
    location: Floats
    scale: Floats
    log_scale: Floats
    # As in `WideEffects.flat`
    effects_begin: Integers
    codes: Integers
    effects: Floats

    @classmethod
    def of(
        cls, cells: Cells, in_cells: tuple[Floats, Floats] | None = None, wide: WideEffects | None = None
    ) -> Contexts:
        """The contexts of these cells; by default location is 0, scale is 1, and there are no effects."""
        location, scale = in_cells or (np.zeros(cells.n_cells), np.ones(cells.n_cells))
        pairs, own = (plain(cells.before), plain(cells.after)), (plain(location), plain(scale), np.log(scale))
        begin, codes, effects = (wide or WideEffects.none(cells.n_features)).flat
        return cls(cells.n_codes, *pairs, cells.begins, *own, begin, codes, effects)

    def standardised(
        self,
        values: Floats,
        around: Around,
        logs: Truths | bool = False,
        effects: Floats = NO_EFFECTS,
    ) -> tuple[Floats, Integers, Floats]:
        """Standardised values y, their cells and their shifts, (N, F) each.

        y is the value without what people share. The shift, added to the log-density of y, gives that of the
        measurement, of which the value is the logarithm if `logs`; it is 0 where a value is missing. Unless
        it is empty, `effects` (N, 2, `N_CONTEXTS`) is filled with the effect of each wider context on each
        interval and hold.
        """
        y, cell = np.empty(values.shape), np.empty(values.shape, dtype=np.int64)
        shift = np.where(logs, -values, 0.0)
        standardise(np.ascontiguousarray(values), around, self, y, cell, shift, effects)
        return y, cell, shift


@without_counting
def standardise(
    values: Floats,
    around: Around,
    contexts: Contexts,
    y: Floats,
    cell: Integers,
    shift: Floats,
    effects: Floats,
) -> None:
    """Fill in y and the cell of each value, and subtract the logarithm of its scale from the shift.

    The cell is that of the pair of keys or, if the pair has none, of the key. `effects` may be empty.
    """
    n_codes, codes = contexts.n_codes, contexts.codes
    m = n_codes - 1
    for n in range(len(values)):
        key = around.key[n]
        ending = beginning = -1
        if key < m and around.before[n] < m:
            code = around.before[n] * n_codes + key
            ending = _found(contexts.ending, 0, len(contexts.ending), code)
        if key < m and around.after[n] < m:
            code = key * n_codes + around.after[n]
            beginning = _found(contexts.beginning, 0, len(contexts.beginning), code)
        for f in range(values.shape[1]):
            place = beginning if f == 1 else ending
            c = f * n_codes + key if place < 0 else contexts.begins[f] + place
            total = 0.0
            for k in range(N_CONTEXTS if f < 2 else 0):
                effect = _effect(around, contexts, n, f, k) if len(codes) > 0 else 0.0
                total += effect
                if len(effects) > 0:
                    effects[n, f, k] = effect
            cell[n, f] = c
            shift[n, f] = 0.0 if np.isnan(values[n, f]) else shift[n, f] - contexts.log_scale[c]
            y[n, f] = (values[n, f] - contexts.location[c]) / contexts.scale[c] - total


@within
def _effect(around: Around, contexts: Contexts, n: int, f: int, k: int) -> float:
    """The effect of context k on feature f of event n; 0 if it is not known."""
    begin, end = contexts.effects_begin[f, k], contexts.effects_begin[f, k + 1]
    at = _found(contexts.codes, begin, end, _context(around, contexts.n_codes - 1, n, f, k))
    return contexts.effects[at] if at >= 0 else 0.0


def context_codes(around: Around, m: int) -> Integers:
    """(2, N_CONTEXTS, N) codes of the contexts of intervals and of holds; −1 where a key is unknown."""
    found = np.empty((2, N_CONTEXTS, len(around.key)), dtype=np.int64)
    fill_contexts(around, m, found)
    return found


@without_counting
def fill_contexts(around: Around, m: int, found: Integers) -> None:
    """Fill an array with `context_codes`."""
    for n in range(len(around.key)):
        for f in range(2):
            for k in range(N_CONTEXTS):
                found[f, k, n] = _context(around, m, n, f, k)


@within
def _context(around: Around, m: int, n: int, f: int, k: int) -> int:
    """The code of context k of feature f of event n; −1 if a key is unknown.

    The contexts are the position in the sample and in the word, the key on the other side, then three keys
    and two keys with a gap, which are in reverse order for intervals.
    """
    a, b, key, c = around.two_before[n], around.before[n], around.key[n], around.after[n]
    code = -1
    if k == 0:
        code = min(around.position[n], LAST_POSITION)
    elif k == 1:
        code = min(around.in_word[n], LAST_IN_WORD)
    elif k == 2:
        other = b if f == 1 else c
        code = other if other < m else -1
    elif (k == 4) != (f == 1):
        code = (b * m + key) * m + c if b < m and key < m and c < m else -1
    elif a < m and key < m:
        code = a * m + key
    return code
