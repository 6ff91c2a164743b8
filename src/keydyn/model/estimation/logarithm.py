"""ln x written out, so that a loop over it becomes vector instructions, as `exponential` does for e^y."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import compiled
from keydyn.model.estimation.exponential import LN2_HIGH, LN2_LOW, MANTISSA_BITS

# The bits of √½: taken off those of x they leave the exponent k of x = 2^k m with m in [√½, √2).
ROOT_HALF = np.int64(np.float64(0.5**0.5).view(np.int64))
FULL_PRECISION, FURTHER = 2.0**-1022, 54
# ln m = 2 artanh s = 2s (1 + s²/3 + s⁴/5 + …) with s = (m − 1) / (m + 1), so that s² < 0.0295 and the first
# term left out is below 1e-18.
T1, T2, T3, T4, T5, T6, T7, T8, T9, T10 = (2.0 / (2 * k + 1) for k in range(1, 11))


def _logarithm(x: float) -> float:
    """ln x of a positive number, to the last bit or the one before."""
    # A number that is not held to full precision has no exponent of its own.
    value = x * 2.0**FURTHER if x < FULL_PRECISION else x
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
logarithm = compiled(_logarithm, fastmath={"contract"})
