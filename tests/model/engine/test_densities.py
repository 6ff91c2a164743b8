"""ln x and e^y written out, against decimal arithmetic of forty digits; ψ and ψ′ against scipy."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from keydyn.arrays import compiled
from keydyn.model.engine import densities
from keydyn.model.engine.densities import LEAST

# The first call compiles, which takes longer than an example may: hence no deadlines.
positive = st.floats(min_value=5e-324, max_value=sys.float_info.max)
near_one = st.floats(min_value=0.5, max_value=2.0)


@compiled
def exponential(y):
    return densities.exponential(y)


@compiled
def logarithm(x):
    return densities.logarithm(x)


@compiled
def log_minus_digamma(a):
    return densities.log_minus_digamma(a)


@compiled
def trigamma(a):
    return densities.trigamma(a)


def digits_off(found: float, exact: Decimal) -> float:
    """How many units of its last digit a number is off."""
    return float(abs(Decimal(found) - exact) / Decimal(math.ulp(found)))


@settings(deadline=None)
@given(positive | near_one)
@example(1.0)
@example(5e-324)
@example(sys.float_info.min)
@example(sys.float_info.max)
@example(math.nextafter(1.0, 0.0))
@example(math.sqrt(0.5))
def test_logarithm(x):
    with localcontext(prec=40):
        # Half a unit is the least that any rounding needs.
        assert digits_off(logarithm(x), Decimal(x).ln()) <= 1.0


@settings(deadline=None)
@given(st.floats(min_value=LEAST, max_value=0.0))
@example(0.0)
@example(LEAST)
def test_exponential(y):
    with localcontext(prec=40):
        assert digits_off(exponential(y), Decimal(y).exp()) <= 1.0


@pytest.mark.parametrize("y", [-709.0, -1e6, -math.inf])
def test_exponential_of_too_little(y):
    assert exponential(y) == exponential(LEAST) < 1e-307


@settings(deadline=None)
@given(st.floats(min_value=1e-8, max_value=1e3))
@example(20.0)
@example(1.0)
def test_digamma(a):
    """scipy's ψ is good to 1e-14; in the difference with ln a that is an absolute error of 1e-14 ln a."""
    direct = math.log(a) - float(special.digamma(a))
    close = 1e-14 * max(1.0, abs(math.log(a)))
    assert log_minus_digamma(a) == pytest.approx(direct, rel=1e-13, abs=close)
    assert trigamma(a) == pytest.approx(float(special.polygamma(1, a)), rel=1e-13)


@settings(deadline=None)
@given(st.floats(min_value=1e3, max_value=1e20))
def test_digamma_of_large_shapes(a):
    """Bounds that hold for every a > 0: 1/(2a) < ln a − ψ(a) < 1/(2a) + 1/(12a²)."""
    found = log_minus_digamma(a)
    assert 0.5 / a * (1.0 - 1e-14) <= found <= (0.5 / a + 1.0 / (12.0 * a * a)) * (1.0 + 1e-14)
