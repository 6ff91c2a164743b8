"""Effects of wider contexts that people share: position, position in the word, keys around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.data.vocabulary import Types
from keydyn.population.features import Around
from keydyn.population.learn.groups import Events, Groups, Tally
from keydyn.population.learn.map_reduce import Passes
from keydyn.population.learn.stored_arrays import Stored

# How many observations of no effect each effect leans on, and where residuals are clipped, in units of y.
LEANS, CLIP = 30.0, 2.0
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


def learnt(residuals: Sequence[Stored], groups: Groups, least: int, passes: Passes) -> WideEffects:
    """Shrunken means of clipped within-person residuals, (N, F) of each group, one context after the other.

    A context seen fewer than `least` times, or by one or two people alone, has no effect.
    """
    effects = WideEffects.none(len(groups.features))
    for k in range(N_CONTEXTS):
        task = partial(_context_sums, effects, groups.vocabulary, k)
        tallies = list(passes.each(task, list(zip(residuals, groups.events, strict=True))))
        codes, means = list(effects.codes), list(effects.effects)
        for f in range(2):
            tally = Tally.together([one[f] for one in tallies])
            often = tally.often(least, groups.n_people)
            codes[f] = (*codes[f], tally.codes[often])
            means[f] = (*means[f], (tally.sums / (tally.counts + LEANS))[often])
        effects = WideEffects(tuple(codes), tuple(means))
    return effects


def _context_sums(before: WideEffects, vocabulary: Types, k: int, task: tuple[Stored, Events]) -> list[Tally]:
    """Of intervals and holds: context k, with sums of what the effects before leave."""
    (residuals,), (seen, begins) = task[0].load(), task[1].load()
    around, m = seen.around(vocabulary), len(vocabulary)
    left = np.clip(residuals, -CLIP, CLIP) - before.of(around, m)
    of_both = contexts(around, m)
    found = []
    for f in range(2):
        there = np.flatnonzero(np.isfinite(left[:, f]))
        found.append(Tally.of(of_both[f][k][there], left[there, f], there, seen.offsets[begins]))
    return found


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
