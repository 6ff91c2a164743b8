"""Densities of the seven families (Eq. 16 and its relatives), one value at a time and over a sequence.

What depends on parameters alone is computed once for each iteration and kept in `cells` (m + 1, K, W, M, L):
for every event type, feature and state four coefficients, or the logarithms of a categorical's probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.model.engine.elementary import logarithm
from keydyn.model.engine.layout import Observed, Variant, fits, lanes_of, states_of

NORMAL, STUDENT, GAMMA, EXPONENTIAL, CATEGORICAL, CUSTOM = range(6)
# What stands in the coefficients of a cell: location (or shape), 1 / scale, ln f at the location (or the
# constant of ln f), and for Student's t (ν + 1) / 2.
LOC, INVERSE, HEIGHT, POWER = range(4)
N_COEFFICIENTS = 4

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
# A square above this is beyond all densities; it keeps the logarithm finite.
LARGEST_SQUARE = 1e300
# From this shape on the next term of Stirling's series for the gamma function is below 1e-18.
STIRLING = 1e3


# Columns of `features` (K, 4): the family of each feature, CUSTOM where only its own methods know it; whether
# ln x has the family's distribution; where its parameters begin among those of all features, and where they
# end.
KIND, ON_LOG_SCALE, FIRST, END = range(4)


@inner
def log_density(
    kind: int, value: float, log_value: float, loc: float, inverse: float, height: float, power: float
) -> float:
    """ln f of a value on the family's own scale, for the families with four coefficients.

    `log_value` is ln x for a gamma, for which it is the same in all states.
    """
    if kind == NORMAL:
        standard = (value - loc) * inverse
        return height - 0.5 * standard * standard
    if kind == STUDENT:
        # `inverse` is 1 / (scale √ν)
        standard = (value - loc) * inverse
        return height - power * logarithm(1.0 + min(standard * standard, LARGEST_SQUARE))
    ratio = value * inverse
    if kind == EXPONENTIAL:
        return height - ratio
    # Gamma, with its shape in place of a location. Terms as large as the shape cancel; Stirling's series has
    # them cancelled already.
    if loc > STIRLING:
        relative = ratio / loc
        return height + loc * (logarithm(relative) - (relative - 1.0)) - log_value
    return height + (loc - 1.0) * log_value - ratio


@inner
def prepare_cells(
    variant: Variant, first_row: int, last_row: int, features: Integers, emission: Floats, cells: Floats
) -> None:
    """The coefficients of some rows from the parameters (R, F, M, L)."""
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    if not (fits(n_states, n_lanes, emission.shape[2:]) and fits(n_states, n_lanes, cells.shape[3:])):
        return
    for row in range(first_row, last_row):
        for k in range(len(features)):
            kind, first = features[k, KIND], features[k, FIRST]
            for j in range(n_states):
                for lane in range(n_lanes):
                    if kind == CATEGORICAL:
                        for c in range(features[k, END] - first):
                            p = emission[row, first + c, j, lane]
                            cells[row, k, c, j, lane] = math.log(p) if p > 0.0 else -math.inf
                    elif kind == EXPONENTIAL:
                        scale = emission[row, first, j, lane]
                        cells[row, k, INVERSE, j, lane] = 1.0 / scale
                        cells[row, k, HEIGHT, j, lane] = -logarithm(scale)
                    elif kind != CUSTOM:
                        loc, scale = emission[row, first, j, lane], emission[row, first + 1, j, lane]
                        inverse, height, power = 1.0 / scale, -HALF_LOG_TAU - logarithm(scale), 0.0
                        if kind == STUDENT:
                            df = emission[row, first + 2, j, lane]
                            inverse, power = inverse / math.sqrt(df), 0.5 * (df + 1.0)
                            height = math.lgamma(power) - math.lgamma(0.5 * df)
                            height -= 0.5 * math.log(math.pi * df) + logarithm(scale)
                        elif kind == GAMMA and loc > STIRLING:
                            series = (1.0 / 12.0 - 1.0 / (360.0 * loc * loc)) / loc
                            height = 0.5 * math.log(loc) - series - HALF_LOG_TAU
                        elif kind == GAMMA:
                            height = -math.lgamma(loc) - loc * logarithm(scale)
                        cells[row, k, LOC, j, lane] = loc
                        cells[row, k, INVERSE, j, lane] = inverse
                        cells[row, k, HEIGHT, j, lane] = height
                        cells[row, k, POWER, j, lane] = power


class Densities(NamedTuple):
    """How densities are taken: the features, ln of the least density, and the coefficients."""

    features: Integers
    log_floor: float
    cells: Floats


def _log_densities(
    variant: Variant, first: int, last: int, observed: Observed, how: Densities, density: Floats
) -> None:
    """ln f(x_n; b[j | Ω_n]) of the events `first` … `last` − 1 into `density`, features multiplied.

    A missing value drops its factor; no single feature's density is below the floor.
    """
    x, codes, given = observed
    features, log_floor, cells = how.features, how.log_floor, how.cells
    n_states, n_lanes = states_of(variant, density.shape[1]), lanes_of(variant)
    if not (
        fits(n_states, n_lanes, density.shape[1:])
        and fits(n_states, n_lanes, cells.shape[3:])
        and x.shape[2] == n_lanes
    ):
        return
    for n in range(first, last):
        for j in range(n_states):
            for lane in range(n_lanes):
                density[n - first, j, lane] = given[n, j, lane] if len(given) else 0.0
    for k in range(len(features)):
        kind, on_log_scale = features[k, KIND], float(features[k, ON_LOG_SCALE])
        if kind == NORMAL:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    for j in range(n_states):
                        standard = (value - cells[code, k, LOC, j, lane]) * cells[code, k, INVERSE, j, lane]
                        of_feature = cells[code, k, HEIGHT, j, lane] - 0.5 * standard * standard
                        of_feature = max(of_feature - on_log_scale * value, log_floor)
                        density[n - first, j, lane] += of_feature if value == value else 0.0
        elif kind == CATEGORICAL:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    for j in range(n_states):
                        if value == value:
                            logarithm_of_p = cells[code, k, int(value), j, lane]
                            density[n - first, j, lane] += max(logarithm_of_p, log_floor)
        elif kind != CUSTOM:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    log_value = logarithm(value) if kind == GAMMA else 0.0
                    for j in range(n_states):
                        of_feature = log_density(
                            kind,
                            value,
                            log_value,
                            cells[code, k, LOC, j, lane],
                            cells[code, k, INVERSE, j, lane],
                            cells[code, k, HEIGHT, j, lane],
                            cells[code, k, POWER, j, lane],
                        )
                        of_feature = max(of_feature - on_log_scale * value, log_floor)
                        density[n - first, j, lane] += of_feature if value == value else 0.0


# A product and a sum may be rounded once instead of twice; no NaN or infinity depends on that.
log_densities = inner(_log_densities, fastmath={"contract"})


@compiled
def cells_of(variant: Variant, features: Integers, emission: Floats, cells: Floats) -> None:
    """The coefficients of one model."""
    prepare_cells(variant, len(emission) * 0, len(emission), features, emission, cells)
