"""Delays after failed attempts."""

from __future__ import annotations

import pytest

from keydyn.service.people import rows
from keydyn.service.problems import Problem
from keydyn.service.wall_clock import SECOND


def test_the_delay_doubles_from_half_a_minute_to_an_hour():
    delays = [rows.delay_after(failures) // SECOND for failures in range(100)]
    assert delays[:5] == [0] * 5
    assert delays[5:12] == [30, 60, 120, 240, 480, 960, 1920]
    assert set(delays[12:]) == {3600}


def test_waiting_ends_and_is_never_longer_than_the_longest_delay():
    assert rows.waiting_time(5, 1000, 1000) == 30 * SECOND
    assert rows.waiting_time(5, 1000, 1000 + 30 * SECOND) == 0
    # A failure in the future, after the clock was set back.
    assert rows.waiting_time(99, 10**15, 0) == 3600 * SECOND


@pytest.mark.parametrize(("failures", "kind"), [(5, "too-many-attempts"), (100, "blocked")])
def test_an_attempt_is_refused_while_it_must_wait(failures, kind):
    rows.check_allowed(0, 0, 0)
    with pytest.raises(Problem) as caught:
        rows.check_allowed(failures, 0, 0)
    assert caught.value.kind == kind
