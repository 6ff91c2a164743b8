"""Effects of wider contexts that people share: position, position in the word, keys around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.population.features import Around

LAST_POSITION, LAST_IN_WORD = 40, 15
N_CONTEXTS = 5


@dataclass(frozen=True, eq=False)
class WideEffects:
    """For each feature and each of its contexts in turn, (codes, effects), sorted by code.

    A further feature has none: its lists are empty.
    """

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
    """The code of each context of intervals, and of holds, at each event, in the order of their effects.

    It is −1 where a key is unknown or beyond the sample.
    """
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
