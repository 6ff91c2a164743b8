"""Timing features, event types, sequences and fixed-text vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes.fixed_text import fixed_text_vectors, is_fixed_text
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import check_keystrokes
from keydyn.keystrokes.timing import GROUPS, event_types, key_group, sequences_of, timing_features

NAN = np.nan


def keystrokes(extra=None):
    """Two samples of ann, one of bob; ann's second key of session 0 was never released."""
    frame = pd.DataFrame(
        {
            "user": ["ann"] * 6 + ["bob"] * 3,
            "session": [0, 0, 0, 1, 1, 1, 0, 0, 0],
            "keyname": ["a", "b", "c"] * 3,
            "timepress": [0, 100, 250, 0, 80, 300, 0, 50, 90],
            "timerelease": [70, NAN, 400, 60, 200, 360, 65, 120, 95],
        }
    )
    return check_keystrokes(frame if extra is None else frame.assign(**extra))


def test_features_worked_by_hand():
    table = timing_features(keystrokes(), first="missing")
    assert table["duration"].tolist()[:1] == [70.0]
    np.testing.assert_array_equal(table["duration"], [70, NAN, 150, 60, 120, 60, 65, 70, 5])
    np.testing.assert_array_equal(table["tau"], [NAN, 100, 150, NAN, 80, 220, NAN, 50, 40])
    np.testing.assert_array_equal(table["release_press"], [NAN, 30, NAN, NAN, 20, 100, NAN, -15, -30])
    np.testing.assert_array_equal(table["release_release"], [NAN, NAN, NAN, NAN, 140, 160, NAN, 55, -25])


def test_the_first_interval_is_the_median_of_the_others():
    table = timing_features(keystrokes(), first="median")
    np.testing.assert_array_equal(table["tau"], [125, 100, 150, 150, 80, 220, 45, 50, 40])
    alone = check_keystrokes(keystrokes().iloc[:1])
    assert np.isnan(timing_features(alone)["tau"].iloc[0])
    with pytest.raises(ValueError, match="first must be 'median' or 'missing'"):
        timing_features(keystrokes(), first="zero")


def test_event_types():
    frame = keystrokes()
    assert event_types(frame, "key").tolist() == ["a", "b", "c"] * 3
    assert event_types(frame, "position").tolist() == [0, 1, 2] * 3
    assert event_types(frame, "pair").tolist() == [None, "a b", "b c"] * 3
    assert event_types(frame, "group").tolist() == ["left_letter"] * 9
    assert event_types(frame, "none") is None
    with pytest.raises(ValueError, match="events must be one of"):
        event_types(frame, "word")


def test_groups_of_keys():
    expected = {
        "q": "left_letter", "Y": "right_letter", "space": "space", "shift": "shift", "Shift.r": "left_letter",
        "period": "punctuation", "five": "digit", "numpad_9": "digit", "7": "digit", "enter": "other",
        "backspace": "other", "quote": "punctuation", "F5": "other", "KeyN": "right_letter",
    }  # fmt: skip
    assert {name: key_group(name) for name in expected} == expected
    assert set(expected.values()) == set(GROUPS)


def test_sequences_of_samples():
    sequences = sequences_of(keystrokes({"pressure": np.arange(9.0)}), ["duration", "pressure", "tau"])
    assert sequences.names == [("ann", 0), ("ann", 1), ("bob", 0)]
    assert sequences.lengths.tolist() == [3, 3, 3]
    assert sequences.feature_names == ("duration", "pressure", "tau")
    assert sequences.X[:, 1].tolist() == list(range(9))
    assert sequences.labels().tolist() == ["a", "b", "c"] * 3
    with pytest.raises(ValueError, match="no feature 'speed'"):
        sequences_of(keystrokes(), ["speed"])


def test_fixed_text_vectors():
    frame = keystrokes({"pressure": np.arange(9.0)})
    vectors = fixed_text_vectors(frame, sensors=["pressure"])
    columns = ["duration_0", "duration_1", "duration_2", "tau_1", "tau_2"]
    assert vectors.columns.tolist() == [*columns, "pressure_0", "pressure_1", "pressure_2"]
    assert vectors.loc[("bob", 0)].tolist() == [65, 70, 5, 50, 40, 6, 7, 8]
    other = frame.assign(keyname=["a", "b", "c"] * 2 + ["a", "x", "c"])
    assert not is_fixed_text(other)
    with pytest.raises(ValueError, match="not a fixed text: user bob, session 0 has different keys"):
        fixed_text_vectors(other)
    assert not is_fixed_text(frame.iloc[:-1])


def test_samples_know_what_is_missing():
    samples = Samples.of(keystrokes())
    assert len(samples) == 3
    assert samples.kind == "fixed text"
    assert samples.emission == ("lognormal", "lognormal")
    with pytest.raises(
        ValueError, match="user ann, session 0: duration_1 is missing; vectors must be complete"
    ):
        _ = samples.vectors
    some = samples[[1, 2]]
    assert some.users.tolist() == ["ann", "bob"]
    assert some.vectors.shape == (2, 5)
    assert some.sequences.n_events == 6
    given = pd.DataFrame({"v": [1.0, 2.0]}, index=pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1)]))
    with pytest.raises(ValueError, match="there is no vector for user bob, session 0"):
        Samples.of(keystrokes(), vectors=given)


def test_a_long_text_alone_can_be_told_from_a_fixed_one():
    alone = make_typists(1, 1, text="copied", n_keys=60)
    assert Samples.of(alone).kind == "fixed text"
    assert Samples.of(alone, kind="long text").vectors.shape == (1, 218)
    with pytest.raises(ValueError, match="kind must be 'fixed text' or 'long text', not 'short'"):
        Samples.of(alone, kind="short")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timepress": [0, 100, "x", 0, 80, 300, 0, 50, 90]}, "line 2: timepress is not a number"),
        ({"timepress": [0, 100, NAN, 0, 80, 300, 0, 50, 90]}, "line 2: timepress is missing"),
        (
            {"timepress": [0, 100, 50, 0, 80, 300, 0, 50, 90]},
            "line 2: timepress is before the press above it",
        ),
        (
            {"timerelease": [70, NAN, 200, 60, 200, 360, 65, 120, 95]},
            "line 2: timerelease is before the press",
        ),
        ({"timerelease": [np.inf] * 9}, "line 0: timerelease is infinite"),
        (
            {"user": ["ann"] * 3 + ["bob"] * 3 + ["ann"] * 3, "session": 0},
            "line 6: the rows of user ann, session 0",
        ),
        ({"user": [None] + ["ann"] * 8}, "line 0: user is missing"),
        ({"keyname": ["a", None] + ["b"] * 7}, "line 1: keyname is missing"),
    ],
)
def test_the_schema_names_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        check_keystrokes(keystrokes().assign(**change))


def test_the_schema_needs_its_columns():
    with pytest.raises(ValueError, match="no column 'keyname', 'timerelease'; there are 'user'"):
        check_keystrokes(keystrokes().drop(columns=["keyname", "timerelease"]))
    with pytest.raises(ValueError, match="there are no keystrokes"):
        check_keystrokes(keystrokes().iloc[:0])


def test_labels_beyond_the_whole_numbers_of_floats_stay_apart():
    frame = keystrokes().assign(user=[2**62] * 6 + [2**62 + 1] * 3, session=0)
    assert Samples.of(pd.concat([frame[:3], frame[6:]])).users.tolist() == [2**62, 2**62 + 1]


@pytest.mark.parametrize(
    "name", ["KeyQ", "ShiftLeft", "Digit5", "Numpad5", "BracketLeft", "Backquote", "Equal"]
)
def test_browsers_names_of_physical_keys(name):
    expected = {"K": "left_letter", "S": "shift", "D": "digit", "N": "digit"}
    assert key_group(name) == expected.get(name[0], "punctuation")


@pytest.mark.parametrize(
    ("sensors", "message"),
    [
        (["tau"], "'tau' is not a sensor"),
        (["timepress"], "'timepress' is not a sensor"),
        (["grip", "grip"], "'grip' is not a sensor"),
        (["hand"], "'hand' is not a sensor: the column does not hold numbers"),
    ],
)
def test_what_is_no_sensor(sensors, message):
    with pytest.raises(ValueError, match=message):
        Samples.of(keystrokes().assign(grip=1.0, hand="left"), sensors=sensors)


def test_samples_are_checked_at_the_door():
    with pytest.raises(ValueError, match="timepress is before the press above it"):
        Samples.of(keystrokes().iloc[::-1])
    index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1), ("bob", 0), ("ann", 0)])
    with pytest.raises(ValueError, match="there are two vectors for user ann, session 0"):
        Samples.of(keystrokes(), vectors=pd.DataFrame({"v": range(4)}, index=index))
    infinite = pd.DataFrame({"v": [1.0, np.inf, 2.0]}, index=index[:3])
    with pytest.raises(ValueError, match="user ann, session 1: v is infinite"):
        _ = Samples.of(keystrokes(), vectors=infinite).vectors


def test_samples_are_numbered_within_their_user():
    mixed = pd.concat([keystrokes()[:3], keystrokes()[6:], keystrokes()[3:6]])
    assert Samples.of(mixed).numbers.tolist() == [0, 0, 1]
