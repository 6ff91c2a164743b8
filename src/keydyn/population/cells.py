"""Cells: the contexts of keys in which a feature is learnt, and how rare ones back off.

An interval's cell is (previous key, key), a hold's is (key, next key), a further feature's is that of the
interval. A rare pair is the key alone. So is a pair with an unknown key, and all unknown keys are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keydyn.arrays import Integers, Truths
from keydyn.model.data.vocabulary import Types, translation
from keydyn.population.features import Around


@dataclass(frozen=True, eq=False)
class Cells:
    """The numbering of cells: first each feature's keys, the unknown key last, then each feature's pairs.

    Attributes
    ----------
    vocabulary : (m,) the known keys
    n_features : F
    before : sorted codes previous · (m + 1) + key of the pairs that have cells
    after : the same, key · (m + 1) + next
    """

    vocabulary: Types
    n_features: int
    before: Integers
    after: Integers

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
