"""Joined sessions, takeovers, and what is counted until an impostor is noticed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier, shipped_background
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.lab.transfer.watching import (
    ENROLLED,
    OTHERS,
    PER_HOUR,
    joined,
    quarters,
    sessions_for,
    watched,
    watching_figures,
)


@pytest.fixture(scope="module")
def samples():
    return recorded_samples(make_typists(5, 9, "free", 30, random_state=2))


def test_samples_are_joined_without_what_lies_between_them(samples):
    sessions = joined(samples)
    assert sessions.users.tolist() == [0, 1, 2, 3, 4]
    assert sessions.sequences.lengths.tolist() == [9 * 30] * 5
    tau = sessions.sequences.feature_names.index("tau")
    missing = np.isnan(sessions.sequences.X[:, tau])
    assert np.flatnonzero(missing).tolist() == list(range(0, 5 * 9 * 30, 30))
    assert np.array_equal(sessions.sequences.X[~missing], samples.sequences.X[~missing])
    assert sessions.sequences.labels().tolist() == samples.sequences.labels().tolist()


def test_another_person_takes_over_in_the_middle(samples):
    sessions = joined(samples[samples.numbers < 2])
    typed, changed = sessions_for(sessions, 1, [3, 4])
    assert changed.tolist() == [60, 0, 0, 30, 30]
    keys = typed.sequences.labels().reshape(5, 60)
    own, *others = (sessions[[n]].sequences.labels() for n in (1, 3, 4))
    assert keys[0].tolist() == own.tolist()
    for n, other in enumerate(others):
        assert keys[1 + n].tolist() == other.tolist()
        assert keys[3 + n].tolist() == [*own[:30], *other[30:]]


def test_sessions_are_locked_where_a_verifier_would_lock_them(samples):
    """Against `Verifier.suspicion` and the calibrated level, person by person."""
    frame = watched(shipped_background(), samples)
    assert len(frame) == 5 * (1 + 2 * OTHERS) * len(PER_HOUR)
    verifier = Verifier.shipped()
    sessions = joined(samples[samples.numbers >= ENROLLED])
    for user in range(5):
        enrolled = verifier.enrol("a", samples[(samples.users == user) & (samples.numbers < ENROLLED)])
        levels = verifier.suspicion("a", sessions[[user]])
        verifier.remove("a")
        for per_hour in PER_HOUR:
            level = shipped_background().calibrations.lockout_level(per_hour, [enrolled.keys])
            above = np.flatnonzero(levels > level)
            rows = frame[(frame["claimed"] == user) & (frame["per_hour"] == per_hour)]
            genuine = rows[rows["changed"] == rows["length"]]
            assert genuine["at"].tolist() == [above[0] if len(above) else len(levels)]


def test_quarters_by_hand():
    keys, everyone = np.array([4, 8, 12, 16]), np.ones(4, dtype=bool)
    assert quarters(keys, everyone) == {"quarter": 4.0, "three_quarters": 12.0}
    assert quarters(keys, np.array([True, False, False, False])) == {"quarter": 4.0, "three_quarters": np.inf}


def test_figures_of_sessions_by_hand():
    """Two people in one hour each, one of them locked out; impostors noticed at their third and fifth key."""
    rows = [(0, 100, 100, 100, 1.0), (1, 100, 100, 40, 0.5), (0, 0, 100, 1, 0.1), (1, 0, 100, 3, 0.1)]
    # A takeover noticed four keys later, one never, and one locked before it happened, which does not count.
    rows += [(0, 50, 100, 52, 0.6), (1, 50, 100, 100, 1.0), (1, 50, 100, 20, 0.2)]
    frame = pd.DataFrame(rows, columns=["claimed", "changed", "length", "at", "hours"])
    found = watching_figures(frame)
    assert found["lockouts"] == pytest.approx(1 / 1.5)
    assert found["genuine_hours"] == pytest.approx(1.5)
    assert (found["start_quarter"], found["start_median"], found["start_three_quarters"]) == (3, 3, 5)
    assert found["start_unnoticed"] == 0.0
    assert found["takeover_sessions"] == 2
    assert found["takeover_median"] == 4
    assert found["takeover_unnoticed"] == pytest.approx(0.5)
