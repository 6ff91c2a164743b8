"""e^y, ln x and ψ written out: a loop over them becomes vector instructions.

A call of the mathematical library stands in the way of that. Measured: docs/decisions/0024.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import inner

# y = k ln 2 + r. ln 2 is in two parts, the first with zeros at its end, so that k times it is exact.
LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = 1.9082149292705877e-10
# Added to a number below 2⁵¹ it rounds it to a whole one, which then stands in the last bits.
ROUNDS = 1.5 * 2.0**52
MANTISSA_BITS = 52
# e^LEAST is about the smallest number that is held to full precision.
LEAST = -708.0
# 1/2! to 1/13!: the next term is at most (½ ln 2)¹⁴ / 14! = 4e-18.
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(k) for k in range(2, 14))

# The bits of √½: taken off those of x they leave the exponent k of x = 2^k m with m in [√½, √2).
ROOT_HALF = np.int64(np.float64(0.5**0.5).view(np.int64))
FULL_PRECISION, FURTHER = 2.0**-1022, 54
ENLARGED = 2.0**FURTHER
# ln m = 2 artanh s = 2s (1 + s²/3 + s⁴/5 + …) with s = (m − 1) / (m + 1), so that s² < 0.0295 and the first
# term left out is below 1e-18.
T1, T2, T3, T4, T5, T6, T7, T8, T9, T10 = (2.0 / (2 * k + 1) for k in range(1, 11))

# From here on ψ and its derivative follow from their asymptotic series.
ASYMPTOTIC = 20.0


def _exponential(y: float) -> float:
    """e^y for y ≤ 0, to the last bit or the one before; e^LEAST for all y below LEAST."""
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
    """ln x of a positive number, to the last bit or the one before."""
    # A number that is not held to full precision has no exponent of its own.
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
    # 2s is above − s·above, without the rounding of the quotient.
    whole = np.float64(exponent - FURTHER if x < FULL_PRECISION else exponent)
    return whole * LN2_HIGH + (above - (s * (above - t * series) - whole * LN2_LOW))


# A product and a sum may be rounded once instead of twice; no NaN or infinity depends on that.
exponential = inner(_exponential, fastmath={"contract"})
logarithm = inner(_logarithm, fastmath={"contract"})


@inner
def log_minus_digamma(a: float) -> float:
    """ln a − ψ(a), by the recurrence of ψ up to where its asymptotic series holds.

    The series is that of the difference, so that nothing cancels for large a.
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
