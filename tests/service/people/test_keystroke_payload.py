"""Keystrokes in the forms in which they are sent, stored and used for decisions."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.service.people.keystroke_payload import LARGEST_SAMPLE, TypedKeys, TypedSample, samples_of
from keydyn.service.problems import Problem
from keydyn.service.wire.both_ways import Text, decoded
from keydyn.service.wire.requests import SampleBody


def received(**body):
    return TypedSample.received(decoded(SampleBody, json.dumps(body).encode()), Text(), "keyboard")


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=8), st.integers(0, 500), st.none() | st.integers(1, 90)))
)
def test_what_is_stored_is_what_was_typed_without_the_time_of_day(rows):
    press = [1e12 + sum(one[1] for one in rows[: n + 1]) for n in range(len(rows))]
    release = [None if held is None else at + held for at, (_, _, held) in zip(press, rows, strict=True)]
    typed = TypedKeys(tuple(one[0] for one in rows), tuple(press), tuple(release))
    if not rows:
        return
    stored = TypedKeys.from_bytes(typed.to_bytes())
    assert stored.keys == typed.keys
    assert stored.press == tuple(at - press[0] for at in press)
    assert stored.release == tuple(None if at is None else at - press[0] for at in release)


def test_events_and_keystrokes_make_the_same_sample():
    rows = [
        {"keyname": "a", "timepress": 0, "timerelease": 90},
        {"keyname": "b", "timepress": 100, "timerelease": 170},
    ]
    happened = [("press", "a", 0), ("release", "a", 90), ("press", "b", 100), ("release", "b", 170)]
    events = [{"type": kind, "key": key, "time": at} for kind, key, at in happened]
    assert received(keystrokes=rows) == received(events=events)


def test_shortcuts_and_navigation_are_left_out_of_keystrokes_as_of_events():
    """Names as programs have them: of browsers, of pynput and of keydyn."""
    typed = [("h", 0, 90), ("Control", 100, 400), ("c", 200, 250), ("i", 500, 590), ("Key.left", 600, 640)]
    typed += [("shift", 700, 900), ("j", 800, 860)]
    rows = [{"keyname": key, "timepress": at, "timerelease": until} for key, at, until in typed]
    happened = sorted(
        (at, kind, key)
        for key, press, release in typed
        for kind, at in (("press", press), ("release", release))
    )
    events = [{"type": kind, "key": key, "time": at} for at, kind, key in happened]
    kept = ("h", "i", "shift", "j")
    assert received(keystrokes=rows).typed.keys == received(events=events).typed.keys == kept
    assert received(keystrokes=rows).typed.release == (90.0, 590.0, 900.0, 860.0)


def test_keystrokes_of_which_none_types_are_refused():
    for sent in (
        {"keystrokes": [{"keyname": "left", "timepress": 0, "timerelease": 50}]},
        {
            "events": [
                {"type": "press", "key": "left", "time": 0},
                {"type": "release", "key": "left", "time": 9},
            ]
        },
    ):
        with pytest.raises(Problem) as caught:
            received(**sent)
        assert caught.value.kind == "unusable-keystrokes"


def test_times_of_nothing_are_resolved():
    rows = [
        {"keyname": "a", "timepress": 0, "timerelease": 0},
        {"keyname": "b", "timepress": 0, "timerelease": 50},
        {"keyname": "c", "timepress": 100},
    ]
    assert received(keystrokes=rows).typed == TypedKeys(("a", "c"), (0.0, 100.0), (None, None))


def test_positions_are_whole_numbers():
    typed = TypedKeys(("1", "x"), (0.0, 100.0), (50.0, 150.0))
    with pytest.raises(Problem) as caught:
        samples_of([typed], Text("positions", "pin"))
    assert caught.value.kind == "unusable-keystrokes"


def test_a_stored_sample_unpacks_to_no_more_than_its_limit():
    """A few bytes could stand for gigabytes: what is beyond the limit is not unpacked, and is no sample."""
    fits = json.dumps([["a" * 1_000], [1.0], [None]]).encode()
    assert TypedKeys.from_bytes(zlib.compress(fits)).keys == ("a" * 1_000,)
    too_large = json.dumps([["a" * LARGEST_SAMPLE], [1.0], [None]]).encode()
    with pytest.raises(ValueError, match="Unterminated string"):
        TypedKeys.from_bytes(zlib.compress(too_large))
