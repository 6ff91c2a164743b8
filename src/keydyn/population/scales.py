"""Location and scale of each cell over all people: Student t, shrunk cell → key → feature."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.population.cells import Cells

DEGREES = 4.0
# How many observations the parent of a cell, and that of a key, counts for.
CELL_LEANS, KEY_LEANS = 5.0, 20.0
ITERATIONS = 15
# No scale is below this share of the feature's.
LEAST_SHARE = 0.01


def locations_and_scales(values: Floats, cell: Integers, cells: Cells) -> tuple[Floats, Floats]:
    """(C,) location and (C,) scale; a feature that never varies has scale 1."""
    there = np.isfinite(values)
    x, where = values[there], cell[there]
    key, feature = cells.key[where], cells.feature[where]
    centre = np.zeros(cells.n_features)
    spread = np.ones(cells.n_features)
    for f in np.unique(feature):
        of_feature = x[feature == f]
        centre[f] = np.median(of_feature)
        deviation = 1.4826 * np.median(np.abs(of_feature - centre[f])) or of_feature.std()
        spread[f] = deviation if deviation > 1e-9 * max(1.0, abs(centre[f])) else 1.0
    floor = LEAST_SHARE * spread
    centre, spread = _climbed(x, feature, (centre, spread), 0.0, floor)
    per_key = (centre[cells.key_feature], spread[cells.key_feature])
    per_key = _climbed(x, key, per_key, KEY_LEANS, floor[cells.key_feature])
    per_cell = (per_key[0][cells.key], per_key[1][cells.key])
    return _climbed(x, where, per_cell, CELL_LEANS, floor[cells.feature])


def _climbed(
    x: Floats, group: Integers, start: tuple[Floats, Floats], leans: float, floor: Floats
) -> tuple[Floats, Floats]:
    """EM of a Student t in each group, with `leans` pseudo-observations of its start values."""
    location0, scale0 = start
    location, scale = location0, scale0
    n = len(location)
    for _ in range(ITERATIONS):
        z = (x - location[group]) / scale[group]
        w = (DEGREES + 1) / (DEGREES + z * z)
        total = np.bincount(group, w, n) + leans
        some = total > 0
        total = np.where(some, total, 1.0)
        location = np.where(some, (np.bincount(group, w * x, n) + leans * location0) / total, location0)
        squares = np.bincount(group, w * (x - location[group]) ** 2, n) + leans * scale0**2
        scale = np.where(some, np.maximum(np.sqrt(squares / total), floor), scale0)
    return location, scale
