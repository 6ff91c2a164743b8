"""ln x written out, as e^y is in `estimation/exponential.py`: a loop over it becomes vector instructions.

x = 2ᵏ (1 + f) with 1 + f between √½ and √2. With s = f / (2 + f), ln(1 + f) = 2s + sR, where
R = 2/3 s² + 2/5 s⁴ + …; 2s is taken as f − f²/2 + s f²/2, so that what is added to f is small and its
rounding does not matter. The way is that of fdlibm's `log`; the series here is the plain one.
"""

from __future__ import annotations

import numpy as np

from keydyn.model.arrays import compiled
from keydyn.model.estimation.exponential import LN2_HIGH, LN2_LOW, MANTISSA_BITS

# The bits of √½: what is subtracted before the exponent is read.
ROOT_HALF = np.int64(np.float64(np.sqrt(0.5)).view(np.int64))
EXPONENT = np.int64(-1 << MANTISSA_BITS)
# Below, numbers have fewer digits; they are brought up first.
LEAST_NORMAL = 2.0**-1022
LIFT, LIFTED = 2.0**54, 54.0

# 2/3, 2/5, … 2/23: s² is at most 0.0295, and the next term at most 4e-18 of the whole.
D1, D2, D3, D4, D5, D6, D7, D8, D9, D10, D11 = (2.0 / (2.0 * k + 1.0) for k in range(1, 12))


def _logarithm(x: float) -> float:
    """ln x of a finite x > 0, to the last bit or the one before; no meaning for any other."""
    small = x < LEAST_NORMAL
    bits = np.float64(x * LIFT if small else x).view(np.int64)
    above = np.int64((bits - ROOT_HALF) & EXPONENT)
    k = np.float64(above >> MANTISSA_BITS) - (LIFTED if small else 0.0)
    f = np.int64(bits - above).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = D11
    series = series * z + D10
    series = series * z + D9
    series = series * z + D8
    series = series * z + D7
    series = series * z + D6
    series = series * z + D5
    series = series * z + D4
    series = series * z + D3
    series = series * z + D2
    series = series * z + D1
    half_square = 0.5 * f * f
    return k * LN2_HIGH - ((half_square - (s * (half_square + series * z) + k * LN2_LOW)) - f)


logarithm = compiled(_logarithm, fastmath={"contract"})
