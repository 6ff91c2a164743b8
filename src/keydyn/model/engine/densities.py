"""Densities of the seven families (Eq. 16 and its relatives), with the functions e^y, ln x and ψ they need.

Terms that depend on parameters alone are computed once per iteration and kept in `cells` (m + 1, K, W, M, L):
for each event type, feature and state four coefficients, or the logarithms of a categorical's probabilities.

e^y and ln x are implemented here so that loops over them become vector instructions, which calls of the
mathematical library would prevent. Measurements are in docs/decisions/0024.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.model.engine.layout import ANY_FAMILY, Observed, Variant, fits, lanes_of, states_of

NORMAL, STUDENT, GAMMA, EXPONENTIAL, CATEGORICAL, CUSTOM = range(6)
# The coefficients of a cell: location (or shape), 1 / scale, ln f at the location (or the constant of ln f),
# and for Student's t (ν + 1) / 2.
LOC, INVERSE, HEIGHT, POWER = range(4)
N_COEFFICIENTS = 4

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
# Squared deviations are cut off here, far out in the tails, to keep the logarithm finite.
LARGEST_SQUARE = 1e300
# From this shape on, the next term of Stirling's series for the gamma function is below 1e-18.
STIRLING = 1e3


# Columns of `features` (K, 4): the family of each feature, CUSTOM if it is not compiled; whether ln x has the
# family's distribution; where its parameters begin among those of all features, and where they end.
KIND, ON_LOG_SCALE, FIRST, END = range(4)


# y = k ln 2 + r. ln 2 is split into two parts; the first ends in zero bits, so that k times it is exact.
LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = 1.9082149292705877e-10
# Adding this to a number below 2⁵¹ rounds the number to an integer, which is then in the last bits.
ROUNDS = 1.5 * 2.0**52
MANTISSA_BITS = 52
# e^LEAST is about the smallest number with full precision.
LEAST = -708.0
# 1/2! to 1/13!: the next term is at most (½ ln 2)¹⁴ / 14! = 4e-18.
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(k) for k in range(2, 14))

# The bits of √½: subtracted from those of x they leave the exponent k of x = 2^k m with m in [√½, √2).
ROOT_HALF = np.int64(np.float64(0.5**0.5).view(np.int64))
FULL_PRECISION, FURTHER = 2.0**-1022, 54
ENLARGED = 2.0**FURTHER
# ln m = 2 artanh s = 2s (1 + s²/3 + s⁴/5 + …) with s = (m − 1) / (m + 1), so that s² < 0.0295 and the first
# omitted term is below 1e-18.
T1, T2, T3, T4, T5, T6, T7, T8, T9, T10 = (2.0 / (2 * k + 1) for k in range(1, 11))

# From this argument on, ψ and its derivative are computed by their asymptotic series.
ASYMPTOTIC = 20.0


def _exponential(y: float) -> float:
    """e^y for y ≤ 0, accurate to within the last two bits; e^LEAST for all y below LEAST."""
    value = max(y, LEAST)
    shifted = value * LOG2_E + ROUNDS
    whole = shifted - ROUNDS
    rest = (value - whole * LN2_HIGH) - whole * LN2_LOW
    series = C13
    series = series * rest + C12
    series = series * rest + C11
    series = series * rest + C10
    series = series * rest + C9
    series = series * rest + C8
    series = series * rest + C7
    series = series * rest + C6
    series = series * rest + C5
    series = series * rest + C4
    series = series * rest + C3
    series = series * rest + C2
    series = series * rest * rest + rest + 1.0
    exponent = np.float64(shifted).view(np.int64) << MANTISSA_BITS
    return np.int64(np.float64(series).view(np.int64) + exponent).view(np.float64)


def _logarithm(x: float) -> float:
    """ln x of a positive number, accurate to within the last two bits."""
    # The exponent bits of a subnormal number do not tell its size.
    value = x * ENLARGED if x < FULL_PRECISION else x
    bits = np.float64(value).view(np.int64)
    exponent = (bits - ROOT_HALF) >> MANTISSA_BITS
    above = np.int64(bits - (exponent << MANTISSA_BITS)).view(np.float64) - 1.0
    s = above / (2.0 + above)
    t = s * s
    series = T10
    series = series * t + T9
    series = series * t + T8
    series = series * t + T7
    series = series * t + T6
    series = series * t + T5
    series = series * t + T4
    series = series * t + T3
    series = series * t + T2
    series = series * t + T1
    # 2s = above − s·above, which avoids the rounding error of the quotient.
    whole = np.float64(exponent - FURTHER if x < FULL_PRECISION else exponent)
    return whole * LN2_HIGH + (above - (s * (above - t * series) - whole * LN2_LOW))


# A product and a sum may be fused (rounded once instead of twice), which is safe for NaN and infinity.
exponential = inner(_exponential, fastmath={"contract"})
logarithm = inner(_logarithm, fastmath={"contract"})


@inner
def log_minus_digamma(a: float) -> float:
    """ln a − ψ(a), by the recurrence of ψ up to where its asymptotic series holds.

    The series is for the difference itself, so that nothing cancels for large a.
    """
    recurrence, shifted = 0.0, a
    while shifted < ASYMPTOTIC:
        recurrence += 1.0 / shifted
        shifted += 1.0
    square = 1.0 / (shifted * shifted)
    series = square * (
        1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square / 132.0)))
    )
    return 0.5 / shifted + series + recurrence + math.log(a / shifted)


@inner
def trigamma(a: float) -> float:
    """ψ′(a), by its recurrence and asymptotic series."""
    recurrence, shifted = 0.0, a
    while shifted < ASYMPTOTIC:
        recurrence += 1.0 / (shifted * shifted)
        shifted += 1.0
    square = 1.0 / (shifted * shifted)
    series = 1.0 / 6.0 - square * (
        1.0 / 30.0 - square * (1.0 / 42.0 - square * (1.0 / 30.0 - square * 5.0 / 66.0))
    )
    return recurrence + 1.0 / shifted + 0.5 * square + square / shifted * series


@inner
def log_density(kind: int, value: float, log_value: float, cell: tuple[float, float, float, float]) -> float:
    """ln f of a value on the family's own scale, for the families with four coefficients.

    `log_value` is ln x, used for a gamma only; the caller computes it once for all states.
    """
    loc, inverse, height, power = cell
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
    # Gamma, with its shape in place of a location. Terms as large as the shape cancel in the direct formula;
    # Stirling's series is free of them.
    if loc > STIRLING:
        relative = ratio / loc
        return height + loc * (logarithm(relative) - (relative - 1.0)) - log_value
    return height + (loc - 1.0) * log_value - ratio


@inner
def prepare_cells(
    variant: Variant, first_row: int, last_row: int, features: Integers, emission: Floats, cells: Floats
) -> None:
    """Compute the coefficients of some rows from the parameters (R, F, M, L)."""
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    if not (fits(n_states, n_lanes, emission.shape[2:]) and fits(n_states, n_lanes, cells.shape[3:])):
        return
    for row in range(first_row, last_row):
        for k in range(len(features)):
            kind, first = features[k, KIND], features[k, FIRST]
            for j in range(n_states):
                for lane in range(n_lanes):
                    if len(variant) == ANY_FAMILY and kind == CATEGORICAL:
                        for c in range(features[k, END] - first):
                            p = emission[row, first + c, j, lane]
                            cells[row, k, c, j, lane] = math.log(p) if p > 0.0 else -math.inf
                    elif len(variant) == ANY_FAMILY and kind == EXPONENTIAL:
                        scale = emission[row, first, j, lane]
                        cells[row, k, INVERSE, j, lane] = 1.0 / scale
                        cells[row, k, HEIGHT, j, lane] = -logarithm(scale)
                    elif kind != CUSTOM:
                        loc, scale = emission[row, first, j, lane], emission[row, first + 1, j, lane]
                        inverse, height, power = 1.0 / scale, -HALF_LOG_TAU - logarithm(scale), 0.0
                        if len(variant) == ANY_FAMILY and kind == STUDENT:
                            df = emission[row, first + 2, j, lane]
                            inverse, power = inverse / math.sqrt(df), 0.5 * (df + 1.0)
                            height = math.lgamma(power) - math.lgamma(0.5 * df)
                            height -= 0.5 * math.log(math.pi * df) + logarithm(scale)
                        elif len(variant) == ANY_FAMILY and kind == GAMMA and loc > STIRLING:
                            series = (1.0 / 12.0 - 1.0 / (360.0 * loc * loc)) / loc
                            height = 0.5 * math.log(loc) - series - HALF_LOG_TAU
                        elif len(variant) == ANY_FAMILY and kind == GAMMA:
                            height = -math.lgamma(loc) - loc * logarithm(scale)
                        cells[row, k, LOC, j, lane] = loc
                        cells[row, k, INVERSE, j, lane] = inverse
                        cells[row, k, HEIGHT, j, lane] = height
                        cells[row, k, POWER, j, lane] = power


class Densities(NamedTuple):
    """The definition of the densities: features, ln of the smallest density, and coefficients."""

    features: Integers
    log_floor: float
    cells: Floats


def _log_densities(
    variant: Variant, first: int, last: int, observed: Observed, how: Densities, density: Floats
) -> None:
    """Write ln f(x_n; b[j | Ω_n]) of the events `first` … `last` − 1, summed over features, to `density`.

    A missing value is left out of the sum. The floor applies to the density of each single feature.
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
        elif len(variant) == ANY_FAMILY and kind == CATEGORICAL:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    for j in range(n_states):
                        if value == value:
                            logarithm_of_p = cells[code, k, int(value), j, lane]
                            density[n - first, j, lane] += max(logarithm_of_p, log_floor)
        elif len(variant) == ANY_FAMILY and kind != CUSTOM:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    log_value = logarithm(value) if kind == GAMMA else 0.0
                    for j in range(n_states):
                        cell = (
                            cells[code, k, LOC, j, lane],
                            cells[code, k, INVERSE, j, lane],
                            cells[code, k, HEIGHT, j, lane],
                            cells[code, k, POWER, j, lane],
                        )
                        of_feature = log_density(kind, value, log_value, cell)
                        of_feature = max(of_feature - on_log_scale * value, log_floor)
                        density[n - first, j, lane] += of_feature if value == value else 0.0


# A product and a sum may be fused (rounded once instead of twice), which is safe for NaN and infinity.
log_densities = inner(_log_densities, fastmath={"contract"})


@compiled
def cells_of(variant: Variant, features: Integers, emission: Floats, cells: Floats) -> None:
    """Compute the coefficients of one model; see `prepare_cells`."""
    prepare_cells(variant, len(emission) * 0, len(emission), features, emission, cells)
