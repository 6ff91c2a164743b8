"""ln x and e^y written out, against decimal arithmetic of forty digits."""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keydyn.model.estimation.exponential import LEAST, exponential
from keydyn.model.estimation.logarithm import logarithm

positive = st.floats(min_value=5e-324, max_value=sys.float_info.max)
near_one = st.floats(min_value=0.5, max_value=2.0)


def digits_off(found: float, exact: Decimal) -> float:
    """How many units of its last digit a number is off."""
    return float(abs(Decimal(found) - exact) / Decimal(math.ulp(found)))


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


@given(st.floats(min_value=LEAST, max_value=0.0))
@example(0.0)
@example(LEAST)
def test_exponential(y):
    with localcontext(prec=40):
        assert digits_off(exponential(y), Decimal(y).exp()) <= 1.0


@pytest.mark.parametrize("y", [-709.0, -1e6, -math.inf])
def test_exponential_of_too_little(y):
    assert exponential(y) == exponential(LEAST) < 1e-307
