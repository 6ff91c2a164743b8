"""Location and scale of each cell over all people: Student t, shrunk cell → key → feature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from keydyn.arrays import Floats
from keydyn.population.cells import Cells
from keydyn.population.groups import Events
from keydyn.population.passes import Passes

# How many observations the parent of a cell, and that of a key, counts for.
CELL_LEANS, KEY_LEANS = 5.0, 20.0
ITERATIONS = 20
# No scale is below this share of the feature's.
LEAST_SHARE = 0.01
# Estimation begins with the median of so many values.
FIRST = 100_000

# Location and scale of features, of keys and of cells.
Levels = tuple[tuple[Floats, Floats], ...]


def locations_and_scales(
    events: Sequence[Events], cells: Cells, degrees: float, passes: Passes
) -> tuple[Floats, Floats]:
    """(C,) location and (C,) scale; a feature that never varies has scale 1."""
    location, scale = _start(events, cells.n_features)
    floor = LEAST_SHARE * scale
    to_keys, to_cells = cells.key_feature, cells.key
    # What a feature, a key and a cell leans on, and how much; a feature has its start for no weight.
    parents = (np.arange(cells.n_features), to_keys, to_cells)
    leans, floors = (0.0, KEY_LEANS, CELL_LEANS), (floor, floor[to_keys], floor[cells.feature])
    levels: Levels = (
        (location, scale),
        (location[to_keys], scale[to_keys]),
        (location[cells.feature], scale[cells.feature]),
    )
    for _ in range(ITERATIONS):
        sums = passes.sums(partial(_sums, cells, levels, degrees), events)
        found = list(levels)
        for level in range(3):
            total, first, second = sums[3 * level : 3 * level + 3]
            above = found[max(level - 1, 0)]
            location0, scale0 = above[0][parents[level]], above[1][parents[level]]
            found[level] = _improved(
                *levels[level], total, first, second, location0, scale0, leans[level], floors[level]
            )
        levels = tuple(found)
    return levels[2]


def _start(events: Sequence[Events], n_features: int) -> tuple[Floats, Floats]:
    """Median and median deviation of each feature's first values."""
    first: list[Floats] = []
    for group in events:
        first.append(group.load()[0].values)
        if sum(map(len, first)) >= FIRST:
            break
    values = np.concatenate(first)[:FIRST]
    location, scale = np.zeros(n_features), np.ones(n_features)
    for f in range(n_features):
        x = values[np.isfinite(values[:, f]), f]
        if len(x) == 0:
            continue
        location[f] = np.median(x)
        deviation = 1.4826 * np.median(np.abs(x - location[f])) or x.std()
        scale[f] = deviation if deviation > 1e-9 * max(1.0, abs(location[f])) else 1.0
    return location, scale


def _sums(cells: Cells, levels: Levels, degrees: float, events: Events) -> tuple[Floats, ...]:
    """Of each level Σw, Σwd and Σwd², d the distance from the location."""
    seen, _ = events.load()
    there = np.isfinite(seen.values)
    x, cell = seen.values[there], cells.of(seen)[there]
    groups = (cells.feature[cell], cells.key[cell], cell)
    sums: list[Floats] = []
    for group, (location, scale) in zip(groups, levels, strict=True):
        d = x - location[group]
        w = (degrees + 1) / (degrees + (d / scale[group]) ** 2)
        parts = (np.bincount(group, values, len(location)) for values in (w, w * d, w * d * d))
        sums.extend(part.astype(np.float64) for part in parts)
    return tuple(sums)


def _improved(
    location: Floats,
    scale: Floats,
    total: Floats,
    first: Floats,
    second: Floats,
    location0: Floats,
    scale0: Floats,
    leans: float,
    floor: Floats,
) -> tuple[Floats, Floats]:
    """A step of the EM of a Student t in each group, with `leans` pseudo-observations of its parent."""
    weight = total + leans
    some = weight > 0
    weight = np.where(some, weight, 1.0)
    step = (first + leans * (location0 - location)) / weight
    squares = np.maximum(second - 2 * step * first + step * step * total, 0.0) + leans * scale0**2
    return (
        np.where(some, location + step, location0),
        np.where(some, np.maximum(np.sqrt(squares / weight), floor), scale0),
    )
