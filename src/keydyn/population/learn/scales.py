"""Location and scale of each cell over all people: Student t, shrunk cell → key → feature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.population.cells import Cells
from keydyn.population.learn.map_reduce import Passes
from keydyn.population.learn.stored_arrays import Stored

# How many observations the parent of a cell, and that of a key, counts for.
CELL_LEANS, KEY_LEANS = 5.0, 20.0
ITERATIONS = 20
# No scale is below this share of the feature's.
LEAST_SHARE = 0.01
# Estimation begins with the median of this many values.
FIRST = 100_000

# Location and scale of features, of keys and of cells.
Level = tuple[Floats, Floats]
Levels = tuple[Level, Level, Level]


def locations_and_scales(
    values: Sequence[Stored], cells: Cells, degrees: float, passes: Passes
) -> tuple[Floats, Floats]:
    """(C,) location and (C,) scale; a feature that never varies has scale 1.

    `values` are the values of each group and their cells, (N, F) each.
    """
    location, scale = _start(values, cells.n_features)
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
        sums = passes.sums(partial(_sums, cells, levels, degrees), values)
        found = list(levels)
        for level in range(3):
            above = found[max(level - 1, 0)]
            parent = above[0][parents[level]], above[1][parents[level]]
            found[level] = _improved(levels[level][0], sums[level], parent, leans[level], floors[level])
        levels = (found[0], found[1], found[2])
    return levels[2]


def _start(values: Sequence[Stored], n_features: int) -> tuple[Floats, Floats]:
    """Median and median deviation of each feature's first values."""
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
    """Of each level Σw, Σwd and Σwd², (n, 3); d is the distance from the location."""
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
    """`above` are the key of each cell and the feature of each key."""
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
    """A step of the EM of a Student t in each group, with `leans` pseudo-observations of its parent."""
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
