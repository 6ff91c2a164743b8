"""Scores as shown to programs: coarse, and never better than the exact ones."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from keydyn.service.people.recognition.decision_rows import coarse_rate, stepped

FEW = {f"{digit}e{power}" for digit in (1, 2, 5) for power in range(-13, 1)}


@given(st.floats(1e-12, 1.0))
def test_a_rate_is_rounded_away_from_what_it_is_by_less_than_the_next_step(rate):
    up, down = coarse_rate(rate), coarse_rate(rate, up=False)
    assert down <= rate <= up <= 1.0
    assert up <= 2.5 * rate * (1 + 1e-9)
    assert down >= rate / 2.5 * (1 - 1e-9)
    for one in (up, down):
        assert any(math.isclose(one, float(each), rel_tol=1e-12) for each in FEW)


def test_a_rate_of_nothing_stays_nothing():
    assert coarse_rate(0.0) == coarse_rate(0.0, up=False) == 0.0


@given(st.floats(-1e300, 1e300))
def test_a_score_is_rounded_to_the_nearest_step(llr):
    found = stepped(llr, 0.5)
    assert abs(found - llr) <= 0.25 + 1e-9 * abs(llr)
    assert (2 * found).is_integer()
    # There is one zero.
    assert math.copysign(1.0, stepped(-0.1, 0.5)) == 1.0
