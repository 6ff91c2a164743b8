"""Which contexts are learnt: cells that are frequent enough, and effects of wider contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data.vocabulary import Types
from keydyn.population.cells import Cells
from keydyn.population.learn.groups import Events, Groups
from keydyn.population.learn.map_reduce import Passes
from keydyn.population.learn.stored_arrays import Stored
from keydyn.population.wide_effects import N_CONTEXTS, WideEffects, contexts

# A pair must have been seen this often to be a cell of its own: in small populations, and in others.
LEAST_SEEN_SMALL, LEAST_SEEN, SMALL = 5, 20, 100
# What fewer people have typed is not learnt: it would say something of them alone.
LEAST_PEOPLE = 3
# How many observations of no effect each effect leans on, and where residuals are clipped, in units of y.
WIDE_LEANS, WIDE_CLIP = 30.0, 2.0


@dataclass(frozen=True, eq=False)
class Tally:
    """How often codes occur, and how many people typed them: (k,) each, codes in ascending order."""

    codes: Integers
    counts: Integers
    people: Integers
    sums: Floats

    @classmethod
    def of(cls, codes: Integers, values: Floats, events: Integers, begins: Integers) -> Tally:
        """Of a group's values: their codes, and the number of the event that each belongs to.

        `begins` is the event with which each person begins.
        """
        table, group, counts = np.unique(codes, return_inverse=True, return_counts=True)
        U = len(begins) - 1
        person = np.searchsorted(begins, events, side="right") - 1
        people = np.bincount(np.unique(group * U + person) // U, minlength=len(table))
        sums = np.bincount(group, values, len(table)).astype(np.float64)
        return cls(table, counts.astype(np.int64), people.astype(np.int64), sums)

    @classmethod
    def together(cls, tallies: Sequence[Tally]) -> Tally:
        """Of all groups."""
        table, group = np.unique(np.concatenate([one.codes for one in tallies]), return_inverse=True)
        counts, people, sums = (
            np.bincount(group, np.concatenate([getattr(one, name) for one in tallies]), len(table))
            for name in ("counts", "people", "sums")
        )
        return cls(table, counts.astype(np.int64), people.astype(np.int64), sums.astype(np.float64))

    def often(self, least: int, n_people: int) -> Truths:
        """Which known codes, those from 0 up, are frequent, and typed by several of these people."""
        often: Truths = self.counts >= least
        return often & (self.people >= min(LEAST_PEOPLE, n_people)) & (self.codes >= 0)


def learn_cells(groups: Groups, passes: Passes) -> Cells:
    """Cells of the pairs that were seen often enough."""
    F, none = len(groups.features), np.array([], dtype=np.int64)
    least = LEAST_SEEN_SMALL if groups.n_people < SMALL else LEAST_SEEN
    empty = Cells(groups.vocabulary, F, none, none)
    counted = list(passes.each(partial(_pair_counts, empty), groups.events))
    frequent = []
    for f in range(2):
        tally = Tally.together([one[f] for one in counted])
        frequent.append(tally.codes[tally.often(least, groups.n_people)])
    return Cells(groups.vocabulary, F, *frequent)


def _pair_counts(cells: Cells, events: Events) -> list[Tally]:
    """Of the pairs of intervals and those of holds."""
    seen, begins = events.load()
    found = []
    for f, codes in enumerate(cells.pair_codes(seen.around(cells.vocabulary))):
        there = np.flatnonzero(np.isfinite(seen.values[:, f]))
        found.append(Tally.of(codes[there], np.zeros(len(there)), there, seen.offsets[begins]))
    return found


def learn_wide_effects(residuals: Sequence[Stored], groups: Groups, passes: Passes) -> WideEffects:
    """Shrunken means of clipped within-person residuals, (N, F) of each group, one context after the other.

    A context that is rare, or was typed by one or two people alone, has no effect.
    """
    effects = WideEffects.none(len(groups.features))
    for k in range(N_CONTEXTS):
        task = partial(_context_sums, effects, groups.vocabulary, k)
        tallies = list(passes.each(task, list(zip(residuals, groups.events, strict=True))))
        codes, means = list(effects.codes), list(effects.effects)
        for f in range(2):
            tally = Tally.together([one[f] for one in tallies])
            often = tally.often(LEAST_SEEN_SMALL, groups.n_people)
            codes[f] = (*codes[f], tally.codes[often])
            means[f] = (*means[f], (tally.sums / (tally.counts + WIDE_LEANS))[often])
        effects = WideEffects(tuple(codes), tuple(means))
    return effects


def _context_sums(before: WideEffects, vocabulary: Types, k: int, task: tuple[Stored, Events]) -> list[Tally]:
    """Of intervals and holds: context k, with sums of what the effects before leave."""
    (residuals,), (seen, begins) = task[0].load(), task[1].load()
    around, m = seen.around(vocabulary), len(vocabulary)
    left = np.clip(residuals, -WIDE_CLIP, WIDE_CLIP) - before.of(around, m)
    of_both = contexts(around, m)
    found = []
    for f in range(2):
        there = np.flatnonzero(np.isfinite(left[:, f]))
        found.append(Tally.of(of_both[f][k][there], left[there, f], there, seen.offsets[begins]))
    return found
