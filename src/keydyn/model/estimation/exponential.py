"""e^y written out, so that a loop over it becomes vector instructions.

A call of the mathematical library stands in the way of that. Measured: docs/decisions/0024.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import compiled

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


# A product and a sum may be rounded once instead of twice; no NaN or infinity depends on that.
exponential = compiled(_exponential, fastmath={"contract"})
