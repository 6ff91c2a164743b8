"""Cells: the contexts of keys in which a feature is learnt, and how rare ones back off.

An interval's cell is (previous key, key), a hold's is (key, next key), a further feature's is that of the
interval. A rare pair is the key alone. So is a pair with an unknown key, and all unknown keys are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner, plain
from keydyn.model.data.vocabulary import Types, translation
from keydyn.population.features import Around

LAST_POSITION, LAST_IN_WORD = 40, 15
N_CONTEXTS = 5


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

    def places(self, types: Types) -> Integers:
        """The code of each of these types, and of a missing one."""
        return translation(types, self.vocabulary)

    def of(self, around: Around) -> Integers:
        """(N, F) the cell of each value."""
        cells = np.empty((len(around.key), self.n_features), dtype=np.int64)
        around = Around(*map(plain, around))
        fill_cells(around, len(self.vocabulary), self.before, self.after, self.begins, cells)
        return cells


@inner
def _found(table: Integers, begin: int, end: int, wanted: int) -> int:
    """The place of a code in a sorted part of a table, from its begin to its end; −1 if it is not there."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if table[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and table[low] == wanted else -1


@compiled
def fill_cells(
    around: Around, m: int, ending: Integers, beginning: Integers, begins: Integers, cells: Integers
) -> None:
    """The cell of each event's features: that of its pair of keys or, where there is none, of its key."""
    before, key, after = around.before, around.key, around.after
    for n in range(len(key)):
        k, known = key[n], key[n] < m
        end = _found(ending, 0, len(ending), before[n] * (m + 1) + k) if known and before[n] < m else -1
        begin = _found(beginning, 0, len(beginning), k * (m + 1) + after[n]) if known and after[n] < m else -1
        for f in range(cells.shape[1]):
            place = begin if f == 1 else end
            cells[n, f] = f * (m + 1) + k if place < 0 else begins[f] + place


@dataclass(frozen=True, eq=False)
class WideEffects:
    """For each feature and each of its contexts in turn, (codes, effects), sorted by code."""

    codes: tuple[tuple[Integers, ...], ...]
    effects: tuple[tuple[Floats, ...], ...]

    @classmethod
    def none(cls, n_features: int) -> WideEffects:
        """No effects."""
        return cls(((),) * n_features, ((),) * n_features)

    def of(self, around: Around, m: int) -> Floats:
        """(N, F) the sum of the effects at each value; the vocabulary has m keys."""
        total = np.zeros((len(around.key), len(self.codes)))
        if any(self.codes):
            add_effects(contexts(around, m), *self._flat, total)
        return total

    @cached_property
    def _flat(self) -> tuple[Integers, Integers, Floats]:
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


@compiled
def add_effects(
    contexts: Integers, begins: Integers, codes: Integers, effects: Floats, total: Floats
) -> None:
    """To each total, (N, F), the effects of its contexts, (2, N_CONTEXTS, N), that the tables have."""
    for f in range(len(begins)):
        for k in range(contexts.shape[1]):
            for n in range(len(total)):
                place = _found(codes, begins[f, k], begins[f, k + 1], contexts[f, k, n])
                if place >= 0:
                    total[n, f] += effects[place]


def contexts(around: Around, m: int) -> Integers:
    """(2, N_CONTEXTS, N) the codes of the contexts of intervals, and of holds; −1 where a key is unknown."""
    found = np.empty((2, N_CONTEXTS, len(around.key)), dtype=np.int64)
    fill_contexts(Around(*map(plain, around)), m, found)
    return found


@compiled
def fill_contexts(around: Around, m: int, found: Integers) -> None:
    """Position in the sample and in the word, the key on the other side, three keys, and two with a gap."""
    for n in range(len(around.key)):
        a, b, k, c = around.two_before[n], around.before[n], around.key[n], around.after[n]
        trigram = (b * m + k) * m + c if b < m and k < m and c < m else -1
        skipping = a * m + k if a < m and k < m else -1
        for f in range(2):
            found[f, 0, n] = min(around.position[n], LAST_POSITION)
            found[f, 1, n] = min(around.in_word[n], LAST_IN_WORD)
        found[0, 2, n], found[1, 2, n] = c if c < m else -1, b if b < m else -1
        found[0, 3, n], found[0, 4, n] = skipping, trigram
        found[1, 3, n], found[1, 4, n] = trigram, skipping
