"""Frames that no honest client sends: each is refused with a problem, or the connection is closed."""

from __future__ import annotations

import contextlib
import json
import logging
import socket

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from keydyn.service.live import frame_text
from keydyn.service.problems import Problem
from keydyn.service.wire import watch_frames
from tests.examples import examples
from tests.service.live.world import PEOPLE, Server, handshake, make_database, session_of, undisturbed


def keys(*rows, first=1):
    return json.dumps({"type": "keys", "first": first, "keys": list(rows)})


BAD = {
    "binary": None,
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "deep": "[" * 30_000,
    "deep inside": '{"type":"keys","first":1,"keys":' + "[" * 20_000 + "]" * 10_000,
    "no type": "{}",
    "type of another type": '{"type":{}}',
    "type that cannot be hashed": '{"type":["keys"]}',
    "unknown type": '{"type":"trust"}',
    "unknown field": '{"type":"keys","first":1,"keys":[["a",1,2]],"more":1}',
    "NaN": '{"type":"keys","first":1,"keys":[["a",NaN,2]]}',
    "Infinity": '{"type":"keys","first":1,"keys":[["a",1,Infinity]]}',
    "a number too large for a float": '{"type":"keys","first":1,"keys":[["a",1e999,2]]}',
    "1e308": keys(["a", 1e308, None]),
    "-1e308": keys(["a", -1e308, None]),
    "a huge whole number": '{"type":"keys","first":1,"keys":[["a",' + "9" * 4000 + ",null]]}",
    "a whole number that Python refuses": '{"type":"keys","first":' + "9" * 9000 + ',"keys":[["a",1,2]]}',
    "a press that is missing": keys(["a", None, 2]),
    "a press that is true": keys(["a", True, 2]),
    "a press that is a text": keys(["a", "1", 2]),
    "a release that is a list": keys(["a", 1, [2]]),
    "no keystrokes": keys(),
    "too many keystrokes": keys(*[["a", n, n + 1] for n in range(101)]),
    "two values": keys(["a", 1]),
    "four values": keys(["a", 1, 2, 3]),
    "a keystroke that is an object": keys({"a": 1, "b": 2, "c": 3}),
    "a keystroke that is a text": keys("abc"),
    "presses that go back": keys(["a", 5, 6], ["b", 4, 7]),
    "released before it is pressed": keys(["a", 5, 4]),
    "no name": keys(["", 1, 2]),
    "a long name": keys(["a" * 33, 1, 2]),
    "a name that is a number": keys([1, 1, 2]),
    "a name that ends with NUL": keys(["a\0", 1, 2]),
    "half a character": '{"type":"keys","first":1,"keys":[["\\ud800",1,2]]}',
    "the number 0": keys(["a", 1, 2], first=0),
    "a negative number": keys(["a", 1, 2], first=-5),
    "a number that is no whole one": keys(["a", 1, 2], first=1.0),
    "a number that is true": keys(["a", 1, 2], first=True),
    "a number too large": keys(["a", 1, 2], first=2**53),
    "a token that is a number": '{"type":"unlock","token":5}',
    "a token too long": json.dumps({"type": "unlock", "token": "x" * 5000}),
    "a text that is a text": '{"type":"hello","text":"free"}',
    "states that are a text": '{"type":"hello","states":"yes"}',
    "a text of numbers": '{"type":"hello","text":{"kind":1}}',
}


@pytest.mark.parametrize("frame", BAD.values(), ids=BAD)
def test_a_bad_frame_is_refused(frame):
    with pytest.raises(Problem) as refused:
        frame_text.parsed(frame)
    assert refused.value.status == 400
    assert json.loads(frame_text.problem_frame(refused.value))["type"] == "problem"


@pytest.mark.parametrize("text", ["x" * (watch_frames.FRAME_BYTES + 1), "ä" * watch_frames.FRAME_BYTES])
def test_a_frame_has_a_largest_size(text):
    with pytest.raises(Problem) as refused:
        frame_text.parsed(text)
    assert refused.value.status == 413


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
TIMES = st.integers(-(10**400), 10**400) | st.floats() | ANYTHING
ROWS = st.lists(st.tuples(st.text(max_size=40) | ANYTHING, TIMES, TIMES).map(list) | ANYTHING, max_size=6)
KINDS = st.sampled_from(["hello", "unlock", "bye", "keys"])
FIELDS = dict.fromkeys(("token", "session", "text", "device", "first", "keys"), ANYTHING)
KEYS = {"type": st.just("keys"), "first": st.integers() | ANYTHING, "keys": ROWS | ANYTHING}
FRAMES = st.one_of(
    ANYTHING, st.fixed_dictionaries(KEYS), st.fixed_dictionaries({"type": KINDS}, optional=FIELDS)
)


@given(FRAMES.map(json.dumps) | st.text())
@example('{"type":"bye"}')
@settings(max_examples=examples(500), deadline=None)
def test_whatever_comes_is_a_frame_or_a_problem(text):
    try:
        frame = frame_text.parsed(text)
    except Problem:
        return
    if isinstance(frame, frame_text.Keys):
        times = np.array([frame.presses, frame.releases], dtype=np.float64)
        assert times.shape == (2, len(frame.names))
        assert np.isfinite(times[0]).all()
        assert (np.abs(times[~np.isnan(times)]) < watch_frames.LATEST_TIME).all()
        assert (np.diff(times[0]) >= 0).all()
        assert not (times[1] < times[0]).any()
        assert frame.first >= 1
        assert all(isinstance(name, str) and 1 <= len(name) <= 32 for name in frame.names)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    database = make_database(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/service.db")
    with Server(database) as found:
        yield found
    database.close()


def test_after_three_bad_frames_the_connection_is_closed(server, caplog):
    rows = session_of(PEOPLE[0])
    expected = undisturbed(PEOPLE[0], rows)[0]
    frames = [frame for frame in BAD.values() if frame is not None]
    with caplog.at_level(logging.INFO), server.connect(PEOPLE[0]) as honest:
        heard = honest.asked(1, rows[:10])["trust"]
        for n in range(0, len(frames) - 3, 2):
            with server.connect(PEOPLE[1]) as hostile:
                for frame in frames[n : n + 2]:
                    hostile.say(frame)
                    assert hostile.hear()["status"] == 400
                hostile.say(b"binary" if n % 4 else frames[n + 2])
                assert hostile.close_code() == 4400
            at = 10 + 2 * n
            heard += honest.asked(at + 1, rows[at : at + 4])["trust"]
        # No other session notices anything.
        np.testing.assert_allclose(heard[1:], expected[1 : len(heard)], rtol=1e-12)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_large_frames_close_the_connection(server, caplog):
    # What follows what is far too large is not read: the code may be lost with it.
    for size, codes in ((watch_frames.FRAME_BYTES + 1, {4413}), (10_000_000, {1009, None})):
        talk = server.connect(PEOPLE[0])
        with contextlib.suppress(ConnectionClosed):
            talk.say("[" * size)
        assert talk.close_code() in codes
    ours = [record for record in caplog.records if not record.name.startswith("websockets.client")]
    assert not [record for record in ours if record.levelno >= logging.WARNING]


def test_what_is_no_text_closes_the_connection(server, caplog):
    with socket.create_connection(("127.0.0.1", server.port), 120) as raw:
        raw.sendall(handshake(server.port))
        assert b" 101 " in raw.recv(4096)
        raw.sendall(b"\x81\x82" + bytes(4) + b"\xff\xff")
        closed = b""
        while more := raw.recv(4096):
            closed += more
    assert closed[:1] == b"\x88"
    assert int.from_bytes(closed[2:4], "big") == 1007
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@given(st.lists(FRAMES.map(json.dumps), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_whatever_is_sent_is_answered(server, caplog, frames):
    caplog.clear()
    rows = session_of(PEOPLE[2])
    with server.connect(PEOPLE[2]) as honest, server.connect(PEOPLE[3]) as hostile:
        for n, frame in enumerate(frames):
            hostile.say(frame)
            found = hostile.hear()
            assert found["type"] in ("trust", "problem", "unlocked", "bye")
            assert honest.asked(2 * n + 1, rows[2 * n : 2 * n + 2])["last"] == 2 * n + 2
            if found["type"] == "bye":
                break
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
