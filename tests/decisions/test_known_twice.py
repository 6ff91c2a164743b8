"""People who are known twice: found where they are, and only where they can be."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from keydyn.datasets import load_dataset, make_typists, reported_people
from keydyn.decisions import find_twice
from keydyn.decisions.known_twice import (
    FALSE_ALARMS,
    MANY_PAIRS,
    MOST_COMPARED,
    Sittings,
    _beside_the_others,
    _level,
    twice_noticed,
)
from keydyn.keystrokes.quality import twice_in_words

MINUTE = 60_000.0
NOON = 1.48e12


def people(n=24, again=()):
    """Simulated people; the later half of the sessions of some is that of another user, 1000 above."""
    typing = make_typists(n, 12, "copied", 60, random_state=1)
    later = typing["user"].isin(again) & (typing["session"] >= 6)
    typing.loc[later, "user"] += 1000
    return typing.sort_values(["user", "session"], kind="stable", ignore_index=True)


def dated(typing, minutes):
    """With the time of each sitting's beginning, by user; a sample begins every minute."""
    return typing.assign(started=NOON + (typing["user"].map(minutes) + typing["session"] % 6) * MINUTE)


TWICE = people(again=(3, 7))
PAIRS = [[3, 1003], [7, 1007]]


def named(found):
    return sorted(found[["user", "other"]].values.tolist())


def test_they_are_found():
    assert named(find_twice(TWICE)) == PAIRS
    assert find_twice(TWICE)["minutes"].isna().all()


def test_different_people_are_not():
    assert len(find_twice(people())) == 0


def test_only_sittings_that_are_near_and_apart():
    """Both begin a day after one another, but for one pair of sittings at a time."""
    users = sorted(TWICE["user"].unique().tolist())
    far = {user: 1440.0 * n for n, user in enumerate(users)}
    assert len(find_twice(dated(TWICE, far))) == 0
    # A sitting lasts for 5 minutes and what the last sample takes.
    found = find_twice(dated(TWICE, far | {1003: far[3] + 10.0}))
    assert named(found) == PAIRS[:1]
    assert 2.0 < found["minutes"].iloc[0] < 5.0
    assert named(find_twice(dated(TWICE, far | {1003: far[3] + 2.0}))) == []
    assert named(find_twice(dated(TWICE, far | {1003: far[3] - 300.0}))) == []


def test_presses_since_1970_are_times_too():
    absolute = dated(TWICE, dict.fromkeys(TWICE["user"], 0.0) | {1003: 20.0})
    presses = absolute.drop(columns="started").assign(
        timepress=absolute["timepress"] + absolute["started"],
        timerelease=absolute["timerelease"] + absolute["started"],
    )
    users = pd.Index(sorted(TWICE["user"].unique()))
    for one, other in zip(Sittings.of(absolute, users), Sittings.of(presses, users), strict=True):
        np.testing.assert_allclose(one, other)
    assert np.isnan(Sittings.of(TWICE, users).begin).all()


def test_sittings_by_hand():
    typing = pd.DataFrame({"user": [1, 1, 2, 3], "timepress": NOON + np.array([0.0, 5.0, 3.0, 9.0]) * MINUTE})
    apart = Sittings.of(typing, pd.Index([1, 2, 3])).minutes()
    assert apart.tolist() == [[-5.0, -2.0, 4.0], [-2.0, 0.0, 6.0], [4.0, 6.0, 0.0]]


def test_too_few_people_and_too_little_typing_are_not_compared():
    few = TWICE[TWICE["user"].isin([3, 1003, 0, 1])].reset_index(drop=True)
    assert len(find_twice(few)) == 0
    # Of each user but 3 and 1003 one sample of 60 keys is left.
    short = TWICE[TWICE["user"].isin([3, 1003]) | (TWICE["session"] == 0)].reset_index(drop=True)
    assert find_twice(short).columns.tolist() == ["user", "other", "alike", "minutes"]
    assert len(find_twice(short)) == 0


@pytest.mark.parametrize("spread", [1.0, 50.0, 5000.0])
def test_each_beside_the_others(spread):
    """Against the sum over the others, one by one; a member may be left out, and one may outdo all."""
    logs = np.random.default_rng(0).normal(0.0, spread, (20, 7))
    logs[::3, 4] = -np.inf
    logs[5] = 0.0
    found = _beside_the_others(logs)
    for n in range(len(logs)):
        for u in range(7):
            others = np.delete(logs[n], u)
            counted = np.isfinite(others)
            if np.isfinite(logs[n, u]):
                expected = logs[n, u] - logsumexp(others[counted]) + np.log(counted.sum())
                assert found[n, u] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_level_leaves_as_many_to_chance_as_stated():
    """Pairs of different people, alike as an exponential tail: as many are named as stated, or fewer."""
    rng = np.random.default_rng(0)
    n_people = 1000
    n_pairs = n_people * (n_people - 1) // 2
    counts = []
    for _ in range(20):
        scores = rng.exponential(1.0, n_pairs) - 5.0
        level = _level(scores, np.ones(n_pairs, dtype=bool), n_people)
        counts.append(int((scores >= level).sum()))
    # Five standard errors of a mean of Poisson counts.
    assert np.mean(counts) < FALSE_ALARMS + 5 * np.sqrt(FALSE_ALARMS / 20)


def test_pairs_who_cannot_be_one_person_say_how_alike_people_are():
    """How alike the others are does not matter, if there are enough who cannot be."""
    rng = np.random.default_rng(1)
    possible = np.arange(2 * MANY_PAIRS) % 2 == 0
    scores = rng.exponential(1.0, len(possible))
    level = _level(scores, possible, 200)
    assert np.quantile(scores[~possible], 0.99) < level
    assert _level(np.where(possible, scores + 100.0, scores), possible, 200) == level


def test_pairs_in_words():
    pairs = pd.DataFrame({"user": [4711, 5], "other": [4720, 6], "minutes": [4.2, np.nan]})
    assert twice_in_words(pairs) == [
        "users 4711 and 4720: likely the same person, recorded 4 minutes apart",
        "users 5 and 6: likely the same person",
    ]


def test_very_many_users_are_not_compared():
    n = MOST_COMPARED + 1
    rows = pd.DataFrame({"user": range(n), "session": 0, "keyname": "a", "timepress": 0.0})
    pairs, texts = twice_noticed(rows.assign(timerelease=80.0))
    assert len(pairs) == 0
    assert len(texts) == 1
    assert "too many" in texts[0]


@pytest.mark.slow
def test_the_real_recordings(recordings):
    """About one in sixteen took the test again, by the description of another part of the set."""
    for name in ("fable", "essay"):
        assert len(find_twice(load_dataset(name, recordings).keystrokes)) == 0
    typing = load_dataset("aalto", recordings).keystrokes
    development = typing[~typing["user"].isin(reported_people(typing["user"].unique()))]
    found = find_twice(development.reset_index(drop=True), n_jobs=-1)
    assert 1 / 32 < len(found) / development["user"].nunique() < 1 / 8
    assert found["minutes"].between(0.0, 60.0).all()
    # Without times, more likeness is asked for, and nearly all who are named are near in time, too.
    blind = find_twice(development.drop(columns="started").reset_index(drop=True), n_jobs=-1)
    near = blind.merge(found, on=["user", "other"])
    assert len(near) >= 0.75 * len(blind)
