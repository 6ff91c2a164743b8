"""Cells: the contexts of keys in which a feature is learnt, and how rare ones back off.

An interval's cell is (previous key, key), a hold's is (key, next key), a further feature's is that of the
interval. A rare pair is the key alone. So is a pair with an unknown key, and all unknown keys are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, compiled
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
        ending, beginning = self.pair_codes(around)
        for f, pairs in enumerate(self.pairs):
            cells[:, f] = f * self.n_codes + around.key
            place, found = located(pairs, beginning if f == 1 else ending)
            cells[found, f] = self.begins[f] + place[found]
        return cells


def located(table: Integers, wanted: Integers) -> tuple[Integers, Truths]:
    """The place of each wanted code in a sorted table, and whether it is there."""
    if len(table) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return place, table[place] == wanted


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
            for f, of_feature in enumerate(contexts(around, m)):
                # While effects are being learnt, the last contexts have none yet.
                for table, effect, context in zip(self.codes[f], self.effects[f], of_feature, strict=False):
                    add_effects(table, effect, context, total[:, f])
        return total


@compiled
def add_effects(table: Integers, effects: Floats, context: Integers, total: Floats) -> None:
    """To each total the effect of its context, if the sorted table has it."""
    for n in range(len(context)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < context[n]:
                low = middle + 1
            else:
                high = middle
        if low < len(table) and table[low] == context[n]:
            total[n] += effects[low]


def contexts(around: Around, m: int) -> tuple[list[Integers], list[Integers]]:
    """The code of each context of intervals, and of holds, at each event; −1 where a key is unknown."""
    before, after = around.before, around.after
    trigram, skipping = _joined((before, around.key, after), m), _joined((around.two_before, around.key), m)
    places = [np.minimum(around.position, LAST_POSITION), np.minimum(around.in_word, LAST_IN_WORD)]
    return (
        [*places, np.where(after < m, after, -1), skipping, trigram],
        [*places, np.where(before < m, before, -1), trigram, skipping],
    )


def _joined(keys: tuple[Integers, ...], m: int) -> Integers:
    code = np.zeros(len(keys[0]), dtype=np.int64)
    known = np.ones(len(code), dtype=bool)
    for key in keys:
        code = code * m + key
        known &= key < m
    return np.where(known, code, -1)
