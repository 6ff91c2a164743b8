"""Recordings are noticed in a session, whatever its frames, and fresh typing is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.decisions.watching.playback import BLOCK, BLOCKS, PlaybackCheck

SECRET = bytes(range(32))


@pytest.fixture(scope="module")
def typed():
    """A session of 1,500 keys: names, presses and releases."""
    frame = make_typists(1, 1, "free", 1500, random_state=3)
    return [frame[name].tolist() for name in ("keyname", "timepress", "timerelease")]


def part(typed, begin, end, later=0.0):
    names, press, release = (column[begin:end] for column in typed)
    return names, [time + later for time in press], [time + later for time in release]


def new():
    return PlaybackCheck(Fingerprints.none(), SECRET)


@pytest.mark.parametrize("length", [70, 137, 500, BLOCK * BLOCKS - BLOCK])
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_a_loop_is_noticed_in_its_second_round(typed, length, jitter):
    random, recording, found = np.random.default_rng(1), new(), []
    for n in range(2):
        names, press, release = part(typed, 0, length, n * (typed[1][length] + 1e3))
        press = np.maximum.accumulate(press + random.normal(0.0, jitter, length)).tolist()
        found.append(recording.take(names, press, release))
    assert found[0] is None
    at, reason = found[1]
    assert at < 2 * BLOCK
    assert reason.startswith("a recording")


def test_fresh_keys_and_a_password_typed_again_and_again_are_not_recordings(typed):
    assert new().take(*typed) is None
    frame = make_typists(1, 60, random_state=4)
    recording = new()
    for _, sample in frame.groupby("session"):
        columns = [sample[name].tolist() for name in ("keyname", "timepress", "timerelease")]
        assert recording.take(*columns) is None


def test_it_continues_elsewhere_and_does_not_depend_on_frames(typed):
    whole, parts, at = new(), new(), 0
    whole.take(*part(typed, 0, 400))
    for size in (1, 49, 7, 120, 3, 220):
        parts.take(*part(typed, at, at + size))
        at += size
        elsewhere = new()
        assert elsewhere.resume(parts.packed_with(b"the session")) == b"the session"
        parts = elsewhere
    assert parts.packed_with(b"") == whole.packed_with(b"")
    # Its size has a limit.
    whole.take(*part(typed, 400, 1500))
    assert len(whole.packed_with(b"")) < 12_000


def test_a_state_that_was_changed_is_refused(typed):
    recording = new()
    recording.take(*part(typed, 0, 120))
    contents = recording.packed_with(b"")
    for wrong in (b"", contents[:3], contents[:40], contents[:-1], contents[4:], bytes(200)):
        with pytest.raises(ValueError, match=r"recordings|checksum|short|not"):
            new().resume(wrong)
    assert new().resume(contents) == b""


@pytest.mark.parametrize("times", ["_press", "_release"])
def test_a_state_with_one_time_that_is_not_finite_is_refused(typed, times):
    recording = new()
    recording.take(*part(typed, 0, 120))
    getattr(recording, times)[-3] = np.inf
    with pytest.raises(ValueError, match="times that are not finite"):
        new().resume(recording.packed_with(b""))


def test_a_watch_is_locked_by_a_recording_and_says_so():
    verifier, frame = Verifier.shipped(), make_typists(1, 6, "free", 100, random_state=5)
    verifier.enrol("ada", frame[frame["session"] < 4].reset_index(drop=True))
    watch = verifier.watch("ada", level=1e6)
    assert not watch.update(frame[frame["session"] == 4]).locked.any()
    assert (watch.standing, watch.reason) == ("trusted", None)
    # A sample that ada enrolled with.
    found = watch.update(frame[frame["session"] == 2])
    assert (watch.locked_at, watch.standing) == (150, "locked")
    assert found.locked.tolist() == [False] * 49 + [True] * 51
    assert watch.reason.startswith("a recording")
    watch.restart()
    assert (watch.locked_at, watch.reason) == (None, None)
