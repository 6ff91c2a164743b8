"""Samples as the model sees them: logarithms of times, keys as codes, and the cells in which they are learnt.

An interval's cell is (previous key, key), a hold's is (key, next key), a further feature's is that of the
interval. A rare pair is the key alone. So is a pair with an unknown key, and all unknown keys are one.
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
    """The events of samples, one after the other."""

    values: Floats  # (N, F) interval, hold, then further features; logarithms of times; NaN where missing
    codes: Integers  # (N,) place of the key in the vocabulary, len(vocabulary) if it is not there
    offsets: Integers  # (n + 1,) where samples begin
    logs: Truths  # (F,) which features are logarithms

    def around(self, spaces: Integers) -> Around:
        """What stands around each event; `spaces` are those of the cells."""
        around = Around(*np.empty((len(Around._fields), len(self.codes)), dtype=np.int64))
        look_around(self.codes, self.offsets, spaces, around)
        return around


@without_counting
def look_around(codes: Integers, offsets: Integers, spaces: Integers, around: Around) -> None:
    """Fill in what stands around events with these codes, (N,), of samples that begin at `offsets`."""
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
    """The place of a key in its word, given the place of the last key and which that was."""
    return -1 if spaces[before] < 0 else 0 if begins or spaces[before] == 1 else last + 1


def feature_order(samples: Samples) -> tuple[str, ...]:
    """The features in the model's order: interval, hold, then the others as the samples have them."""
    names = samples.sequences.feature_names or ()
    absent = [name for name in (INTERVAL, HOLD) if name not in names]
    if absent:
        raise ValueError(f"the samples have no feature {absent[0]!r}; the population model needs it")
    return (INTERVAL, HOLD, *(name for name in names if name not in (INTERVAL, HOLD)))


def observations(samples: Samples, features: tuple[str, ...], places: Integers) -> Observations:
    """The samples as the model sees them, with the code in `places` of each type of key, a missing one last.

    A time of 0, which has no logarithm, is missing.
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
    # A sample's first interval is unknown, whatever stands in for it.
    values[sequences.offsets[:-1], 0] = np.nan
    return Observations(values, places[sequences.codes], np.array(sequences.offsets), logs)


@lru_cache(maxsize=16)
def _columns(
    names: tuple[str, ...], emission: tuple[str, ...], features: tuple[str, ...]
) -> tuple[Integers, Truths]:
    """The column of each feature, and which are to be logarithms."""
    columns = [names.index(name) for name in features]
    return np.array(columns), np.array([emission[column] == "lognormal" for column in columns])


@dataclass(frozen=True, eq=False)
class Cells:
    """The numbering of cells: first each feature's keys, the unknown key last, then each feature's pairs."""

    vocabulary: Types  # (m,) the known keys
    n_features: int  # F
    before: Integers  # sorted codes previous · (m + 1) + key of the pairs that have cells
    after: Integers  # the same, key · (m + 1) + next

    @property
    def n_codes(self) -> int:
        """Codes of keys, the unknown one included."""
        return len(self.vocabulary) + 1

    @property
    def n_keys(self) -> int:
        """Keys of all features together, G."""
        return self.n_features * self.n_codes

    @property
    def pairs(self) -> list[Integers]:
        """The pairs of each feature that have cells of their own."""
        return [self.after if f == 1 else self.before for f in range(self.n_features)]

    @cached_property
    def begins(self) -> Integers:
        """(F + 1,) where each feature's pairs begin; the last is the number of cells, C."""
        sizes = [len(pairs) for pairs in self.pairs]
        begins: Integers = self.n_keys + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return begins

    @property
    def n_cells(self) -> int:
        return int(self.begins[-1])

    @cached_property
    def key(self) -> Integers:
        """(C,) the key of each cell, numbered over all features."""
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
        """The pair that ends and the pair that begins with each event; −1 if a key of it is unknown."""
        m, key = len(self.vocabulary), around.key
        ending = np.where((around.before < m) & (key < m), around.before * (m + 1) + key, -1)
        beginning = np.where((around.after < m) & (key < m), key * (m + 1) + around.after, -1)
        return ending, beginning

    @cached_property
    def spaces(self) -> Integers:
        """(m + 1,) whether a code's key ends a word, 1 or 0; −1 if none does, so that there are no words."""
        ends = np.zeros(self.n_codes, dtype=np.int64)
        ends[spaces_of(self.vocabulary)] = 1
        return ends if ends.any() else ends - 1

    @cached_property
    def _place(self) -> dict[Any, int]:
        return places_of(self.vocabulary)

    def places(self, types: Types) -> Integers:
        """The code of each of these types, and of a missing one."""
        m = len(self.vocabulary)
        return np.array([*(self._place.get(label, m) for label in types.tolist()), m], dtype=np.int64)

    def of(self, around: Around) -> Integers:
        """(N, F) the cell of each value."""
        return Contexts.of(self).standardised(np.zeros((len(around.key), self.n_features)), around)[1]


@within
def _found(table: Integers, begin: int, end: int, wanted: int) -> int:
    """The place of a code in a sorted part of a table, from its begin to its end; −1 if it is not there."""
    # Without a branch that depends on what is compared, which the machine would guess wrongly half the time.
    low, size = begin, end - begin
    while size > 1:
        half = size // 2
        low += half * (table[low + half] <= wanted)
        size -= half
    return low if size == 1 and table[low] == wanted else -1


@dataclass(frozen=True, eq=False)
class WideEffects:
    """For each feature and each of its contexts in turn, (codes, effects), sorted by code."""

    codes: tuple[tuple[Integers, ...], ...]
    effects: tuple[tuple[Floats, ...], ...]

    @classmethod
    def none(cls, n_features: int) -> WideEffects:
        """No effects."""
        return cls(((),) * n_features, ((),) * n_features)

    @cached_property
    def flat(self) -> tuple[Integers, Integers, Floats]:
        """(2, N_CONTEXTS + 1) where the effects of each context of intervals and of holds begin, and all."""
        # While effects are being learnt, the last contexts have none yet.
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
    # Pairs of keys that have cells, and where the cells of each feature's pairs begin: as of `Cells`
    ending: Integers
    beginning: Integers
    begins: Integers
    # (C,) of values in each cell
    location: Floats
    scale: Floats
    log_scale: Floats
    # As of `WideEffects.flat`
    effects_begin: Integers
    codes: Integers
    effects: Floats

    @classmethod
    def of(
        cls, cells: Cells, in_cells: tuple[Floats, Floats] | None = None, wide: WideEffects | None = None
    ) -> Contexts:
        """Of these cells; location and scale are 0 and 1, and effects are none, unless given."""
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
        """y, which is a value without what people share, its cell, and its shift, (N, F) each.

        The shift makes the log-density of y that of what was measured, of which `logs` says whether values
        are the logarithms; it is 0 where a value is missing. `effects`, (N, 2, `N_CONTEXTS`), is filled with
        what each wider context adds to an interval and to a hold, unless it is empty.
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
    """Fill in y and the cell of each value, and take the logarithm of its scale from the shift.

    The cell is that of the pair of keys or, where it has none, of the key. `effects` may be empty.
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
    """What context k adds to a feature of event n; 0 where it is not known."""
    begin, end = contexts.effects_begin[f, k], contexts.effects_begin[f, k + 1]
    at = _found(contexts.codes, begin, end, _context(around, contexts.n_codes - 1, n, f, k))
    return contexts.effects[at] if at >= 0 else 0.0


def context_codes(around: Around, m: int) -> Integers:
    """(2, N_CONTEXTS, N) the codes of the contexts of intervals, and of holds; −1 where a key is unknown."""
    found = np.empty((2, N_CONTEXTS, len(around.key)), dtype=np.int64)
    fill_contexts(around, m, found)
    return found


@without_counting
def fill_contexts(around: Around, m: int, found: Integers) -> None:
    """`context_codes` in an array."""
    for n in range(len(around.key)):
        for f in range(2):
            for k in range(N_CONTEXTS):
                found[f, k, n] = _context(around, m, n, f, k)


@within
def _context(around: Around, m: int, n: int, f: int, k: int) -> int:
    """The code of context k of event n: position in the sample and in the word, the key on the other side,
    three keys, and two with a gap.
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
