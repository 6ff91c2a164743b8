"""Learn the contexts of a population: cells, their locations and scales, and effects of wider contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, compiled, inner
from keydyn.population.cells import N_CONTEXTS, Cells, Contexts, WideEffects, context_codes
from keydyn.population.learn.groups import Events, Groups, Passes, Stored

# The least number of times that a pair is seen to be a cell of its own, in populations of fewer people than
# SMALL and in others.
LEAST_SEEN_SMALL, LEAST_SEEN, SMALL = 5, 20, 100
# What fewer people have typed is not learnt, because it would disclose something about them.
LEAST_PEOPLE = 3
# Observations without effect that each effect is shrunk by, and where residuals are clipped, in units of y.
WIDE_LEANS, WIDE_CLIP = 30.0, 2.0
# The number of observations that the parent of a cell, and that of a key, counts for.
CELL_LEANS, KEY_LEANS = 5.0, 20.0
ITERATIONS = 20
# The least scale, as a share of the feature's.
LEAST_SHARE = 0.01
# The number of values whose median estimation starts from.
FIRST = 100_000

# Location and scale of features, of keys and of cells.
Level = tuple[Floats, Floats]
Levels = tuple[Level, Level, Level]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of codes, of the people who typed them, and sums of values: (k,) each, sorted by code."""

    codes: Integers
    counts: Integers
    people: Integers
    sums: Floats

    @classmethod
    def of(cls, codes: Integers, values: Floats, events: Integers, begins: Integers) -> Tally:
        """Count a group's values, from their codes, their events and the event where each person `begins`."""
        table, group, counts = np.unique(codes, return_inverse=True, return_counts=True)
        U = len(begins) - 1
        person = np.searchsorted(begins, events, side="right") - 1
        people = np.bincount(np.unique(group * U + person) // U, minlength=len(table))
        sums = np.bincount(group, values, len(table)).astype(np.float64)
        return cls(table, counts.astype(np.int64), people.astype(np.int64), sums)

    @classmethod
    def together(cls, tallies: Sequence[Tally]) -> Tally:
        """Add up the tallies of all groups."""
        table, group = np.unique(np.concatenate([one.codes for one in tallies]), return_inverse=True)
        counts, people, sums = (
            np.bincount(group, np.concatenate([getattr(one, name) for one in tallies]), len(table))
            for name in ("counts", "people", "sums")
        )
        return cls(table, counts.astype(np.int64), people.astype(np.int64), sums.astype(np.float64))

    def often(self, least: int, n_people: int) -> Truths:
        """Whether each code is known (0 or above), frequent, and typed by enough of these people."""
        often: Truths = self.counts >= least
        return often & (self.people >= min(LEAST_PEOPLE, n_people)) & (self.codes >= 0)


def learn_cells(groups: Groups, passes: Passes) -> Cells:
    """Number the cells of a population, with those of the pairs that were seen often enough."""
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
    """Count the pairs of intervals and those of holds."""
    seen, begins = events.load()
    found = []
    for f, codes in enumerate(cells.pair_codes(seen.around(cells.spaces))):
        there = np.flatnonzero(np.isfinite(seen.values[:, f]))
        found.append(Tally.of(codes[there], np.zeros(len(there)), there, seen.offsets[begins]))
    return found


def learn_wide_effects(residuals: Sequence[Stored], groups: Groups, passes: Passes) -> WideEffects:
    """Shrunken means of clipped within-person residuals, one context after the other, without rare codes."""
    effects, none = WideEffects.none(len(groups.features)), np.array([], dtype=np.int64)
    keys = Cells(groups.vocabulary, len(groups.features), none, none)
    for k in range(N_CONTEXTS):
        task = partial(_context_sums, effects, keys, k)
        tallies = list(passes.each(task, list(zip(residuals, groups.events, strict=True))))
        codes, means = list(effects.codes), list(effects.effects)
        for f in range(2):
            tally = Tally.together([one[f] for one in tallies])
            often = tally.often(LEAST_SEEN_SMALL, groups.n_people)
            codes[f] = (*codes[f], tally.codes[often])
            means[f] = (*means[f], (tally.sums / (tally.counts + WIDE_LEANS))[often])
        effects = WideEffects(tuple(codes), tuple(means))
    return effects


def _context_sums(before: WideEffects, keys: Cells, k: int, task: tuple[Stored, Events]) -> list[Tally]:
    """Tallies of context k of intervals and of holds, with sums of what earlier contexts do not explain."""
    (residuals,), (seen, begins) = task[0].load(), task[1].load()
    around = seen.around(keys.spaces)
    left = Contexts.of(keys, wide=before).standardised(np.clip(residuals, -WIDE_CLIP, WIDE_CLIP), around)[0]
    of_both = context_codes(around, len(keys.vocabulary))
    found = []
    for f in range(2):
        there = np.flatnonzero(np.isfinite(left[:, f]))
        found.append(Tally.of(of_both[f][k][there], left[there, f], there, seen.offsets[begins]))
    return found


def locations_and_scales(
    values: Sequence[Stored], cells: Cells, degrees: float, passes: Passes
) -> tuple[Floats, Floats]:
    """(C,) location and scale of cells, from each group's values and cells, (N, F)."""
    location, scale = _start(values, cells.n_features)
    floor = LEAST_SHARE * scale
    to_keys, to_cells = cells.key_feature, cells.key
    # The parents of features, keys and cells, and what they count for; a feature has none, so that is 0.
    parents = (np.arange(cells.n_features), to_keys, to_cells)
    leans, floors = (0.0, KEY_LEANS, CELL_LEANS), (floor, floor[to_keys], floor[cells.feature])
    levels: Levels = (
        (location, scale),
        (location[to_keys], scale[to_keys]),
        (location[cells.feature], scale[cells.feature]),
    )
    for _ in range(ITERATIONS):
        sums = passes.sums(partial(_sums, cells, levels, degrees), values)
        found = list(levels)
        for level in range(3):
            above = found[max(level - 1, 0)]
            parent = above[0][parents[level]], above[1][parents[level]]
            found[level] = _improved(levels[level][0], sums[level], parent, leans[level], floors[level])
        levels = (found[0], found[1], found[2])
    return levels[2]


def _start(values: Sequence[Stored], n_features: int) -> tuple[Floats, Floats]:
    """Median and scaled median deviation of each feature's first values; scale 1 if they do not vary."""
    first: list[Floats] = []
    for group in values:
        first.append(group.load()[0])
        if sum(map(len, first)) >= FIRST:
            break
    values_of_all = np.concatenate(first)[:FIRST]
    location, scale = np.zeros(n_features), np.ones(n_features)
    for f in range(n_features):
        x = values_of_all[np.isfinite(values_of_all[:, f]), f]
        if len(x) == 0:
            continue
        location[f] = np.median(x)
        deviation = 1.4826 * np.median(np.abs(x - location[f])) or x.std()
        scale[f] = deviation if deviation > 1e-9 * max(1.0, abs(location[f])) else 1.0
    return location, scale


def _sums(cells: Cells, levels: Levels, degrees: float, values: Stored) -> tuple[Floats, Floats, Floats]:
    """Σw, Σwd and Σwd², (n, 3), at each level; d is the distance from the location."""
    x, cell = values.load()
    sizes = (cells.n_features, cells.n_keys, cells.n_cells)
    sums = (np.zeros((sizes[0], 3)), np.zeros((sizes[1], 3)), np.zeros((sizes[2], 3)))
    _add_up(x, cell, (cells.key, cells.key_feature), levels, degrees, sums)
    return sums


@compiled
def _add_up(
    x: Floats,
    cell: Integers,
    above: tuple[Integers, Integers],
    levels: Levels,
    degrees: float,
    sums: tuple[Floats, Floats, Floats],
) -> None:
    """Add values to the sums; `above` holds the key of each cell and the feature of each key."""
    cell_key, key_feature = above
    for n in range(len(x)):
        for f in range(x.shape[1]):
            if not np.isnan(x[n, f]):
                c = cell[n, f]
                key = cell_key[c]
                _add(x[n, f], levels[0], degrees, key_feature[key], sums[0])
                _add(x[n, f], levels[1], degrees, key, sums[1])
                _add(x[n, f], levels[2], degrees, c, sums[2])


@inner
def _add(x: float, level: Level, degrees: float, k: int, sums: Floats) -> None:
    d = x - level[0][k]
    z = d / level[1][k]
    w = (degrees + 1.0) / (degrees + z * z)
    sums[k, 0] += w
    sums[k, 1] += w * d
    sums[k, 2] += w * d * d


def _improved(location: Floats, sums: Floats, parent: Level, leans: float, floor: Floats) -> Level:
    """Take an EM step for the Student t of each group, with `leans` pseudo-observations of its parent."""
    location0, scale0 = parent
    total, first, second = sums.T
    weight = total + leans
    some = weight > 0
    weight = np.where(some, weight, 1.0)
    step = (first + leans * (location0 - location)) / weight
    squares = np.maximum(second - 2 * step * first + step * step * total, 0.0) + leans * scale0**2
    return (
        np.where(some, location + step, location0),
        np.where(some, np.maximum(np.sqrt(squares / weight), floor), scale0),
    )
