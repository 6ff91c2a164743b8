"""Delays after failed attempts, and the budget that they spend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.service.people.recognition import attempts
from keydyn.service.people.recognition.attempts import LEVELS, UNIT, Counts, Spent
from keydyn.service.wall_clock import DAY, SECOND
from keydyn.service.wire.requests import TenantLevels, TenantSettings
from tests.service.tries import failures_allowed

SETTINGS = TenantSettings()


def test_the_delay_doubles_from_half_a_minute_to_an_hour():
    delays = [attempts.delay_after(failures) // SECOND for failures in range(100)]
    assert delays[:5] == [0] * 5
    assert delays[5:12] == [30, 60, 120, 240, 480, 960, 1920]
    assert set(delays[12:]) == {3600}


def test_waiting_ends_and_is_never_longer_than_the_longest_delay():
    assert attempts.waiting_time(5, 1000, 1000) == 30 * SECOND
    assert attempts.waiting_time(5, 1000, 1000 + 30 * SECOND) == 0
    # A failure in the future, after the clock was set back.
    assert attempts.waiting_time(99, 10**15, 0) == 3600 * SECOND


rates = st.floats(0.0001, 0.5)


@given(st.lists(rates, min_size=3, max_size=3), st.floats(0.001, 0.5), st.sampled_from(LEVELS))
def test_no_sequence_of_failures_gives_strangers_more_than_the_chance_in_the_settings(given_, chance, asked):
    low, standard, high = sorted(given_, reverse=True)
    settings = TenantSettings(levels=TenantLevels(low, standard, high), takeover_chance=chance)
    failures = failures_allowed(settings, asked)
    # The union bound, from the rates themselves.
    union = sum(getattr(settings.levels, level) * number for level, number in failures.items())
    assert union <= chance + 1e-6
    # One more would not fit: nothing is withheld that the promise allows.
    spent = sum(attempts.cost_of(getattr(settings.levels, level)) * n for level, n in failures.items())
    assert spent + attempts.cost_of(high) > round(chance * UNIT)


def test_an_attempt_is_possible_again_when_enough_of_what_was_spent_has_expired():
    # All of 50,000 is spent, and one attempt at high costs 1,000.
    spent = [Spent(9 * DAY, 20_000), Spent(4 * DAY, 500), Spent(5 * DAY, 29_500)]
    assert attempts.spent_until(spent, SETTINGS, DAY) == 5 * DAY
    assert attempts.spent_until(spent[:2], SETTINGS, DAY) == DAY
    # The delay after failures in a row may last longer than that.
    counts = Counts(5, DAY, spent[:2])
    assert counts.waiting_time(SETTINGS, DAY) == 30 * SECOND


@pytest.mark.parametrize(
    ("asked", "spent", "judged"),
    [
        ("standard", 30_000, "standard"),
        ("standard", 30_001, "high"),
        ("low", 0, "standard"),
        ("high", 49_000, "high"),
        ("high", 49_001, None),
        ("low", 49_001, None),
    ],
)
def test_an_attempt_is_judged_at_the_next_level_that_fits(asked, spent, judged):
    assert attempts.fitting(asked, SETTINGS, spent) == judged
