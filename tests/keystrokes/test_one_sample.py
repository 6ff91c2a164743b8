"""A sample made from plain arrays equals the one from a data frame, and is checked as strictly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.keystrokes import Samples, one_sample, without_impossible
from keydyn.keystrokes.one_sample import recorded_samples
from tests.examples import examples

KEYS, PRESS, RELEASE = ["t", "h", "e"], [0.0, 120.5, 300.0], [80.0, None, 420.0]


def frame_of(keys, press, release, user="ann", session=3, **sensors):
    return pd.DataFrame(
        {
            "user": user,
            "session": session,
            "keyname": keys,
            "timepress": press,
            "timerelease": np.array(release, dtype=np.float64),
            **sensors,
        }
    )


def by_frame(frame, sensors=()):
    """The sample made in the general way, from a data frame."""
    index = pd.MultiIndex.from_frame(frame.iloc[:1][["user", "session"]])
    return Samples.of(frame, sensors, vectors=pd.DataFrame(index=index))


def assert_same(one, other):
    assert one.index.equals(other.index)
    assert one.index.names == other.index.names
    assert (one.emission, one.kind, one.table.shape) == (other.emission, other.kind, other.table.shape)
    here, there = one.sequences, other.sequences
    assert (here.feature_names, here.names) == (there.feature_names, there.names)
    for name in ("X", "codes", "event_types", "offsets"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


times = st.floats(0.0, 1e6, allow_nan=False)
strokes = st.lists(
    st.tuples(st.sampled_from([*"abcdeé", "shift", ""]), times, st.one_of(st.none(), times)), min_size=1
)


@settings(deadline=None, max_examples=examples(60))
@given(strokes, st.sampled_from(["ann", 7]), st.booleans())
def test_it_is_the_sample_that_a_frame_gives(typed, user, with_sensor):
    keys, steps, holds = zip(*typed, strict=True)
    press = np.cumsum(steps)
    release = [None if hold is None else at + hold for at, hold in zip(press, holds, strict=True)]
    sensors = {"pressure": np.sin(press)} if with_sensor else {}
    frame = frame_of(keys, press, release, user, 3, **sensors)
    expected = by_frame(frame, tuple(sensors))
    assert_same(one_sample(keys, press.tolist(), release, user, 3, sensors), expected)
    assert_same(recorded_samples(frame, tuple(sensors)), without_impossible(expected))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keys": []}, "there are no keystrokes"),
        ({"keys": ["t", None, "e"]}, "line 1: keyname must be text, not None"),
        ({"keys": ["t", "h", 5]}, "line 2: keyname must be text, not 5"),
        ({"keys": ["t", "h", "e\0"]}, "null character"),
        ({"keys": ["t", "h"]}, "timepress must be one number per keystroke: 2 are needed"),
        ({"press": [0.0, 120.0]}, "timepress must be one number per keystroke: 3 are needed"),
        ({"press": [[0.0], [120.0], [130.0]]}, "timepress must be one number per keystroke"),
        ({"press": [0.0, "120", 300.0]}, "timepress must be numbers"),
        ({"press": [0, True, 300]}, "timepress must be numbers"),
        ({"press": np.array([True, True, True])}, "timepress must be numbers"),
        ({"press": np.array([0.0, 1.0, 2.0], dtype=complex)}, "timepress must be numbers"),
        ({"press": [0.0, None, 300.0]}, "line 1: timepress is missing"),
        ({"press": [0.0, 310.0, 300.0]}, "line 2: timepress is before the press above it"),
        ({"press": [0.0, float("inf"), float("inf")]}, "line 1: timepress is beyond"),
        ({"press": [0, 1, 2**70]}, "line 2: timepress is beyond"),
        ({"press": [0, 1, 10**400]}, "timepress is beyond"),
        ({"release": [80.0, 110.0, 420.0]}, "line 1: timerelease is before the press"),
        ({"release": [80.0, 190.0, -(2.0**80)]}, "line 2: timerelease is beyond"),
        ({"sensors": {"tau": [1, 2, 3]}}, "'tau' is not a sensor"),
        ({"sensors": {"pressure": [1, 2]}}, "pressure must be one number per keystroke"),
        ({"sensors": {"pressure": [1.0, 2.0, float("inf")]}}, "infinite"),
    ],
)
def test_what_is_no_sample_is_refused(changed, message):
    given_parts = {"keys": KEYS, "press": PRESS, "release": RELEASE} | changed
    with pytest.raises(ValueError, match=message):
        one_sample(**given_parts)


def test_frames_that_are_not_plain_take_the_general_way():
    frame = frame_of(KEYS, PRESS, RELEASE)
    expected = by_frame(frame)
    text = frame.assign(timepress=frame["timepress"].astype(str))
    assert_same(recorded_samples(text), expected)
    numbered = frame.assign(keyname=[1, 2, 3])
    assert_same(recorded_samples(numbered), by_frame(numbered))
    with pytest.raises(ValueError, match="line 1: user is missing"):
        recorded_samples(frame.assign(user=["ann", None, "ann"]))
    with pytest.raises(ValueError, match="line 2: the rows of user ann, session 3 are not contiguous"):
        recorded_samples(frame.assign(session=[3, 4, 3]))


def test_samples_are_joined_as_a_frame_of_all_of_them_gives():
    each = [frame_of(KEYS, PRESS, RELEASE, "ann", 3), frame_of(["x", "h"], [5.0, 9.0], [7.0, 20.0], "bob", 1)]
    joined = Samples.joined([recorded_samples(frame) for frame in each])
    assert_same(joined, recorded_samples(pd.concat(each, ignore_index=True)))
    with_vectors = [Samples.of(frame, kind="long text") for frame in each]
    pd.testing.assert_frame_equal(
        Samples.joined(with_vectors).table, Samples.of(pd.concat(each), kind="long text").table
    )
    with pytest.raises(ValueError, match="different kinds"):
        Samples.joined([with_vectors[0], recorded_samples(each[1])])
    with pytest.raises(ValueError, match="there are no samples"):
        Samples.joined([])
