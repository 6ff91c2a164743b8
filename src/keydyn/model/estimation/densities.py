"""Densities of the location-scale families, compiled.

A density is taken relative to the largest of its event, which is one exponential less than there are states.
"""

from __future__ import annotations

import math

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.estimation.exponential import exponential
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.tables import Density

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
# A square above this is beyond all densities; it keeps the logarithm finite.
LARGEST = 1e300
# Places in a row of `cells`: location, 1 / scale, ln f at the location.
LOC, INVERSE, HEIGHT = 0, 1, 2


@compiled
def standard_height(df: float) -> float:
    """ln f at the location, of scale one; ν = inf is the normal."""
    if math.isinf(df):
        return -HALF_LOG_TAU
    half = 0.5 * df
    return math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(math.pi * df)


@compiled
def prepare_cells(loc: Floats, scale: Floats, df: Floats, cells: Floats) -> None:
    """What the densities of each feature and type need, side by side."""
    n_features, n_types, n_states = scale.shape
    for k in range(n_features):
        height = standard_height(df[k])
        for row in range(n_types):
            for j in range(n_states):
                cells[k, row, LOC, j] = loc[k, row, j]
                cells[k, row, INVERSE, j] = 1.0 / scale[k, row, j]
                cells[k, row, HEIGHT, j] = height - logarithm(scale[k, row, j])


@compiled
def log_density(value: float, df: float, loc: float, inverse: float, height: float) -> float:
    """ln f of a value on the working scale."""
    standard = (value - loc) * inverse
    if math.isinf(df):
        return height - 0.5 * standard * standard
    return height - 0.5 * (df + 1.0) * logarithm(1.0 + min(standard * standard / df, LARGEST))


@compiled
def log_densities(
    first: int, last: int, codes: Integers, x: Floats, family: Density, cells: Floats, rows: Floats
) -> None:
    """ln f(x_n; b[j | Ω_n]) of events `first` … `last` − 1 into `rows`, features multiplied.

    A missing value drops its factor. No single feature's density is less than the floor.
    """
    n_features, n_states = x.shape[1], cells.shape[3]
    for n in range(first, last):
        code = codes[n]
        for j in range(n_states):
            total = 0.0
            for k in range(n_features):
                value = x[n, k]
                if value == value:
                    loc, inverse = cells[k, code, LOC, j], cells[k, code, INVERSE, j]
                    of_feature = log_density(value, family.df[k], loc, inverse, cells[k, code, HEIGHT, j])
                    total += max(of_feature - family.log_scale[k] * value, family.log_floor)
            rows[n - first, j] = total


@compiled
def relative_densities(
    codes: Integers, x: Floats, family: Density, cells: Floats, density: Floats, largest: Floats
) -> None:
    """Densities of all events divided by each event's largest, and the logarithm of that."""
    n_events, n_states = density.shape
    log_densities(0, n_events, codes, x, family, cells, density)
    for n in range(n_events):
        top = density[n, 0]
        for j in range(1, n_states):
            top = max(top, density[n, j])
        largest[n] = top
        for j in range(n_states):
            density[n, j] = exponential(density[n, j] - top)


@compiled
def relative_densities_two(
    codes: Integers, x: Floats, family: Density, cells: Floats, ratio: Floats, largest: Floats
) -> None:
    """The same for two states: the smaller density divided by the larger, negative if state 0's is larger."""
    n_events, n_features = x.shape
    for n in range(n_events):
        code = codes[n]
        total0, total1 = 0.0, 0.0
        for k in range(n_features):
            value = x[n, k]
            if value == value:
                loc0, loc1 = cells[k, code, LOC, 0], cells[k, code, LOC, 1]
                inverse0, inverse1 = cells[k, code, INVERSE, 0], cells[k, code, INVERSE, 1]
                height0, height1 = cells[k, code, HEIGHT, 0], cells[k, code, HEIGHT, 1]
                log_x = family.log_scale[k] * value
                of_feature0 = log_density(value, family.df[k], loc0, inverse0, height0) - log_x
                of_feature1 = log_density(value, family.df[k], loc1, inverse1, height1) - log_x
                total0 += max(of_feature0, family.log_floor)
                total1 += max(of_feature1, family.log_floor)
        largest[n] = max(total0, total1)
        ratio[n] = total1 - total0
    for n in range(n_events):
        ratio[n] = math.copysign(exponential(-abs(ratio[n])), ratio[n])
