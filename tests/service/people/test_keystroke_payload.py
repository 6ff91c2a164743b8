"""Keystrokes in the forms in which they are sent, stored and used for decisions."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.service.people.keystroke_payload import (
    LARGEST_SAMPLE,
    TypedKeys,
    TypedSample,
    samples_of,
    samples_of_people,
)
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


def test_only_a_key_that_is_pressed_at_the_time_of_the_one_before_is_left_out():
    rows = [("a", 0, 10), ("b", 5, 5), ("c", 5, 9), ("d", 5, None), ("e", 6, 6)]
    typed = TypedKeys(*(tuple(column) for column in zip(*rows, strict=True)))
    assert typed.resolved() == TypedKeys(("a", "b", "e"), (0, 5, 6), (10, None, None))
    assert typed.first(2) == TypedKeys(("a", "b"), (0, 5), (10, 5))
    assert typed.rows()[1] == {"keyname": "b", "timepress": 5, "timerelease": 5}


@pytest.mark.parametrize(("key", "is_a_position"), [("99999", True), ("100000", False), ("-1", False)])
def test_positions_have_at_most_five_digits(key, is_a_position):
    typed, text = [TypedKeys(("1", key), (0.0, 100.0), (50.0, 150.0))], Text("positions", "pin")
    if is_a_position:
        assert len(samples_of(typed, text)) == 1
    else:
        with pytest.raises(Problem):
            samples_of(typed, text)
    # For other texts, any name is one.
    assert len(samples_of(typed, Text())) == 1


def test_events_of_two_recordings_are_no_sample():
    events = [{"type": "press", "key": key, "time": at} for key, at in (("a", 5000.0), ("b", 100.0))]
    with pytest.raises(Problem) as caught:
        received(events=events)
    assert (caught.value.status, caught.value.kind) == (422, "unusable-keystrokes")
    assert "clock was set back" in caught.value.detail


def test_samples_of_people_are_in_their_order_and_bear_their_ids():
    one, two = (TypedKeys(("a", "b"), (0.0, 100.0 + n), (50.0, 150.0)) for n in range(2))
    found = samples_of_people({"ada": [one, two], "bob": [two]}, Text())
    assert len(found) == 3
    alone = samples_of([two], Text(), ["bob"])
    assert len(alone) == 1
    assert list(found.users) == ["ada", "ada", "bob"]
