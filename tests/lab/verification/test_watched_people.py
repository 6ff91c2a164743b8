"""Sessions of people whom nobody has learnt from, alone and taking each other's place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.lab.verification.watched_people import swapped, together, watched_people
from keydyn.population import PopulationModel
from tests.population.simulated import people
from tests.population.test_model import of

KEYS = 20


@pytest.fixture(scope="module")
def asked():
    frame = people(n_people=9, n_samples=3, n_keys=KEYS)
    background = recorded_samples(frame[frame["user"] < 5])
    model = PopulationModel().fit(background)
    cohort = [model.enrol(of(background, user)) for user in range(5)]
    return model, cohort, frame[frame["user"] >= 5].reset_index(drop=True)


def test_people_type_in_their_own_name_and_in_others(asked):
    model, cohort, frame = asked
    sessions, terms = watched_people(frame, model, cohort, fold=3, others=2)
    # Three sittings; in each, each of four people, two others in their name, and two who take over.
    assert len(sessions.claimed) == 3 * 4 * (1 + 2 + 2)
    assert terms.shape == (sessions.offsets[-1], 6)
    assert sessions.genuine.sum() == 12
    assert sessions.from_start.sum() == 24
    assert (sessions.changed[~sessions.genuine & ~sessions.from_start] == KEYS // 2).all()
    assert (sessions.folds == 3).all()
    samples = recorded_samples(frame)
    for user in range(5, 9):
        own = np.flatnonzero((sessions.claimed == user) & sessions.genuine)
        for session, q in enumerate(own):
            rows = slice(sessions.offsets[q], sessions.offsets[q + 1])
            mine = of(samples, user)
            template = model.enrol(mine[np.arange(3) != session])
            expected = model.event_log_likelihoods([template, *cohort], mine[[session]])
            np.testing.assert_allclose(terms[rows], expected)
            typed = frame[(frame["user"] == user) & (frame["session"] == session)]["timepress"]
            np.testing.assert_allclose(sessions.hours[rows], (typed - typed.iloc[0]) / 1000 / 60 / 60)
    # Before a change all is as it would have been, but for the last key, which leans on the next.
    for q in np.flatnonzero(~sessions.genuine & ~sessions.from_start):
        genuine = np.flatnonzero((sessions.claimed == sessions.claimed[q]) & sessions.genuine)
        begin, before = sessions.offsets[q], KEYS // 2 - 1
        same = [
            np.allclose(terms[begin : begin + before], terms[sessions.offsets[g] :][:before]) for g in genuine
        ]
        assert sum(same) == 1


def test_folds_one_after_the_other(asked):
    model, cohort, frame = asked
    parts = [
        watched_people(frame[frame["user"] % 2 == k].reset_index(drop=True), model, cohort, k) for k in (0, 1)
    ]
    sessions, terms = together(parts)
    assert sessions.offsets[-1] == len(terms) == sum(len(part) for _, part in parts)
    np.testing.assert_array_equal(sessions.folds, sessions.claimed % 2)
    n = len(parts[0][0].claimed)
    np.testing.assert_array_equal(terms[sessions.offsets[n] :], parts[1][1])


def test_somebody_with_a_single_session_cannot_be_watched(asked):
    model, cohort, frame = asked
    with pytest.raises(ValueError, match="two sessions"):
        watched_people(frame[frame["session"] == 0].reset_index(drop=True), model, cohort)


def typed():
    rows = [
        ("ann", 0, "abcd", [0, 100, 250, 400]),
        ("bob", 5, "wxyz", [7, 60, 90, 200]),
        ("bob", 6, "qq", [0, 1]),
    ]
    return pd.DataFrame(
        [
            (user, session, key, press, press + 30.5)
            for user, session, keys, presses in rows
            for key, press in zip(keys, presses, strict=True)
        ],
        columns=["user", "session", "keyname", "timepress", "timerelease"],
    )


def test_the_second_person_goes_on_with_their_own_intervals():
    pairs = [(("ann", 0), ("bob", 5)), (("bob", 5), ("ann", 0))]
    found = swapped(typed(), pairs, 2)
    assert found["keyname"].tolist() == list("abyz") + list("wxcd")
    assert found["user"].tolist() == ["ann"] * 4 + ["bob"] * 4
    assert found["session"].tolist() == [0] * 4 + [1] * 4
    assert found["timepress"].tolist() == [0, 100, 130, 240, 7, 60, 210, 360]
    np.testing.assert_array_equal(found["timerelease"] - found["timepress"], 30.5)


@pytest.mark.parametrize(
    ("pair", "keys"),
    [
        ((("ann", 0), ("bob", 6)), 2),
        ((("ann", 0), ("bob", 5)), 0),
        ((("ann", 0), ("bob", 5)), 4),
        ((("ann", 1), ("bob", 5)), 2),
    ],
)
def test_samples_that_are_too_short_or_not_there(pair, keys):
    with pytest.raises(ValueError, match=f"more than {keys} keystrokes"):
        swapped(typed(), [pair], keys)
    with pytest.raises(ValueError, match="no pairs"):
        swapped(typed(), [], 2)
