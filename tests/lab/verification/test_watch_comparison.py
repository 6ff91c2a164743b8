"""Levels at stated false lock-outs, keys until notice, and that nothing is chosen on what is reported."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import CensoredData, ecdf

from keydyn.decisions.calibration.learning import locked_at, lockout_level, watched_hours
from keydyn.lab.verification.watch_comparison import TriedSessions, compare, notice_times
from keydyn.lab.verification.watching_measurements import SETTINGS, ways_to_watch

N_PEOPLE, LENGTH, FOLDS = 40, 120, 4
SECONDS = 0.25


def plain_lockouts(levels, offsets, hours, limit):
    """Lock-outs and hours watched of each session, by hand."""
    found = []
    for begin, end in itertools.pairwise(offsets):
        above = np.flatnonzero(levels[begin:end] > limit)
        last = begin + above[0] if len(above) else end - 1
        found.append((len(above) > 0, hours[last]))
    return np.array(found)


@pytest.mark.parametrize("per_hour", [0.5, 5.0, 60.0])
def test_the_level_is_the_lowest_that_keeps_the_rate(per_hour):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 60, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    levels = np.round(random.gamma(2.0, 2.0, offsets[-1]), 1)
    hours = np.concatenate([np.arange(1, n + 1) for n in lengths]) / 300.0
    some = random.random(50) < 0.7
    level = lockout_level(levels, offsets, hours, some, per_hour)

    def rate(limit):
        locked, watched = plain_lockouts(levels, offsets, hours, limit)[some].T
        return locked.sum() / watched.sum()

    highest = np.maximum.reduceat(levels, offsets[:-1])[some]
    right = [limit for limit in highest if rate(limit) <= per_hour]
    assert level == min(right)
    at = locked_at(levels, offsets, np.full(50, level))
    expected = plain_lockouts(levels, offsets, hours, level)
    np.testing.assert_array_equal(at < lengths, expected[:, 0])
    np.testing.assert_allclose(watched_hours(hours, offsets, at), expected[:, 1])
    with pytest.raises(ValueError, match="above 0"):
        lockout_level(levels, offsets, hours, some, 0.0)
    with pytest.raises(ValueError, match="no sessions"):
        lockout_level(levels, offsets, hours, ~(some | True), 1.0)


def test_sessions_that_end_too_soon_are_counted_as_such():
    """Against SciPy's estimate of Kaplan and Meier."""
    random = np.random.default_rng(1)
    true, end = random.geometric(0.03, 400), random.integers(5, 120, 400)
    keys, noticed, people = np.minimum(true, end), true <= end, random.integers(0, 20, 400)
    found = notice_times(keys, noticed, people, 80)
    survival = ecdf(CensoredData(uncensored=keys[noticed], right=keys[~noticed])).sf
    after = survival.evaluate(np.arange(81))
    assert found.mean.value == pytest.approx(after[:-1].sum())
    assert found.unnoticed.value == pytest.approx(after[-1])
    assert found.median.value == np.argmax(after <= 0.5)
    # The truth of a geometric time: the intervals are of a sensible width, and around it.
    for estimate, truth in ((found.mean, (1 - 0.97**80) / 0.03), (found.unnoticed, 0.97**80)):
        assert estimate.low < truth < estimate.high
    # Leaving out the sessions that end too soon would be wrong by far.
    assert keys[noticed].mean() < found.mean.low


def test_nobody_is_noticed():
    found = notice_times(np.full(6, 9), np.zeros(6, dtype=bool), np.arange(6) // 2, 9)
    assert found.median.value == np.inf
    assert found.mean.value == 9
    assert found.unnoticed.value == 1
    assert found.median.text() == "∞ (∞–∞)"
    with pytest.raises(ValueError, match="no sessions"):
        notice_times(np.empty(0, dtype=int), np.empty(0, dtype=bool), np.empty(0, dtype=int), 9)


def simulated(seed=0, separation=1.0):
    """Terms of sessions, two genuine, one of an impostor and one with a change for each person.

    Values are normal about the typist's own centre; the cohort's lie around.
    """
    random = np.random.default_rng(seed)
    cohort = separation * np.array([-1.5, -1.0, 1.0, 1.5])
    kinds = np.tile([LENGTH, LENGTH, 0, LENGTH // 2], N_PEOPLE)
    strange = np.arange(LENGTH)[None, :] >= kinds[:, None]
    centre = np.where(strange, separation * random.choice([-1.2, 1.2], len(kinds))[:, None], 0.0)
    x = (centre + random.normal(size=strange.shape)).ravel()
    terms = -0.5 * (x[:, None] - np.concatenate([[0.0], cohort])) ** 2
    offsets = np.arange(len(kinds) + 1) * LENGTH
    hours = np.tile(np.arange(1, LENGTH + 1) * SECONDS / 3600, len(kinds))
    people = np.repeat(np.arange(N_PEOPLE), 4)
    return TriedSessions(offsets, hours, people, kinds, people % FOLDS), terms


def evidence(sums, _):
    return sums[:, 0] - logsumexp(sums[:, 1:], axis=1)


def test_the_ways_are_compared_at_the_same_rate():
    sessions, terms = simulated()
    ways = ways_to_watch(terms, sessions.offsets, evidence)
    assert {way: len(variants) for way, variants in ways.items()} == {
        way: len(settings) for way, settings in SETTINGS.items()
    }
    found = compare(ways, sessions, 6.0, LENGTH, replicates=200)
    by_name = {one.way: one for one in found}
    hours = 2 * N_PEOPLE * LENGTH * SECONDS / 3600
    for one in found:
        assert len(one.choices) == FOLDS
        # Poisson counts of 6 per hour on both sides, those who choose and those who are reported.
        assert abs(one.per_hour.value - 6.0) < 4 * np.sqrt(6.0 / hours * 4 / 3)
        assert one.per_hour.low <= one.per_hour.value <= one.per_hour.high
        assert one.from_start.sessions == N_PEOPLE
        assert one.after_change.sessions <= N_PEOPLE
    # With true densities no test with as few false alarms has a shorter worst delay (Moustakides 1986).
    page = by_name["Page's sum"].after_change
    assert page.unnoticed.value < 0.05
    assert page.mean.value <= 1.1 * min(one.after_change.mean.value for one in found)


def test_nothing_is_chosen_on_those_who_are_reported():
    """Whatever the people of a fold type, their own limits and settings stay as they are."""
    sessions, terms = simulated()
    ways = {"Page's sum": ways_to_watch(terms, sessions.offsets, evidence)["Page's sum"]}
    (before,) = compare(ways, sessions, 6.0, LENGTH, replicates=10)
    other = np.repeat(sessions.folds == 2, LENGTH)
    changed = np.where(other[:, None], simulated(seed=5, separation=0.2)[1], terms)
    ways = {"Page's sum": ways_to_watch(changed, sessions.offsets, evidence)["Page's sum"]}
    (after,) = compare(ways, sessions, 6.0, LENGTH, replicates=10)
    assert after.choices[2] == before.choices[2]
    assert after.choices != before.choices
