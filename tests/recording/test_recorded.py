"""The files of a recording: samples in the schema, lines about them, and nothing half-written."""

from __future__ import annotations

import csv
import errno
import json
import os
import stat

import pandas as pd
import pytest
from msgspec import convert
from typer.testing import CliRunner

from keydyn import __version__
from keydyn.cli import app
from keydyn.datasets import load_recordings
from keydyn.decisions.folder.folder import InUseError
from keydyn.exit_codes import UsageError
from keydyn.recording.participants import TypedAttempt
from keydyn.service.problems import Problem
from tests.recording.studies import participants_of, typed

PROMPTS = 'repetitions = 6\n[[prompts]]\ntext = "some text"\n'
CORRECT = ["user", "session", "keyname", "timepress", "timerelease"]


def consenting(participants, user="ann"):
    participants.consent(user, participants.study.consent_sha256)
    return participants


def take(participants, place, seed, user="ann", **more):
    return participants.take(convert({"user": user, "place": place, **typed(seed, **more)}, TypedAttempt))


def as_sent(frame, user, session):
    """The columns of one sample as they were sent."""
    own = frame[(frame["user"] == user) & (frame["session"] == session)]
    return {name: own[name].tolist() for name in CORRECT[2:]}


def quality_of(folder, name="typing.quality.csv"):
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("out", ["typing.csv", "typing.parquet"])
def test_what_is_kept_is_what_was_sent_and_goes_on_after_a_restart(tmp_path, out):
    for place in range(4):
        with participants_of(tmp_path, PROMPTS, out) as participants:
            assert participants.state("ann")["participant"]["done"] == place
            assert take(consenting(participants), place, place) == []
            with pytest.raises(Problem, match="not the sample that comes next"):
                take(participants, place, 9)
    # Whatever the umask allows others.
    for path in tmp_path.glob("typing*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    frame = load_recordings(tmp_path / out)
    assert frame.columns.tolist() == [*CORRECT, "sitting", "prompt", "repetition"]
    for session in range(4):
        assert as_sent(frame, "ann", session) == typed(session)["keystrokes"]
    assert frame.groupby("session")["repetition"].first().tolist() == [1, 2, 3, 4]
    lines = quality_of(tmp_path)
    assert [(line["session"], line["kept"], line["keystrokes"]) for line in lines] == [
        (str(n), "1", "30") for n in range(4)
    ]
    about = json.loads((tmp_path / "typing.recording.json").read_text())
    assert len(about["runs"]) == 4
    assert about["runs"][0]["keydyn"] == __version__
    assert list(about["participants"]) == ["ann"]


def test_a_sample_cut_anywhere_is_taken_back_whole(tmp_path):
    """As after a crash: the line about it is there, the sample is not, or only some of its bytes."""
    with participants_of(tmp_path, PROMPTS) as participants:
        consenting(participants)
        ends = []
        for place in range(3):
            take(participants, place, place, n_keys=12)
            ends.append((tmp_path / "typing.csv").stat().st_size)
    data, quality = ((tmp_path / name).read_bytes() for name in ("typing.csv", "typing.quality.csv"))
    for n, size in enumerate([*range(ends[1], ends[2], 11), ends[2] - 1]):
        # Some file systems leave zeros where nothing was written.
        (tmp_path / "typing.csv").write_bytes(data[:size] + b"\0" * (40 * (n % 2)))
        (tmp_path / "typing.quality.csv").write_bytes(quality)
        with participants_of(tmp_path, PROMPTS) as participants:
            assert participants.state("ann")["participant"]["done"] == 2
            assert (tmp_path / "typing.csv").read_bytes() == data[: ends[1]]
            assert len(quality_of(tmp_path)) == 2
            assert take(participants, 2, 2, n_keys=12) == []
        assert (tmp_path / "typing.csv").read_bytes() == data


def test_an_unfinished_first_sample_leaves_a_file_to_begin_with(tmp_path):
    with participants_of(tmp_path, PROMPTS) as participants:
        take(consenting(participants), 0, 0)
    data = (tmp_path / "typing.csv").read_bytes()
    for size in (0, 3, 30, 69, 90):
        (tmp_path / "typing.csv").write_bytes(data[:size])
        with participants_of(tmp_path, PROMPTS) as participants:
            assert take(participants, 0, 0) == []
        assert (tmp_path / "typing.csv").read_bytes() == data


def test_on_a_full_disk_nothing_is_acknowledged_and_nothing_is_left(tmp_path, monkeypatch):
    with participants_of(tmp_path, PROMPTS) as participants:
        take(consenting(participants), 0, 0)
        before = [(tmp_path / name).read_bytes() for name in ("typing.csv", "typing.quality.csv")]
        write, written = os.write, []

        def full(handle, contents):
            written.append(handle)
            if len(written) == 2:
                return write(handle, bytes(contents)[:50])
            if len(written) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(handle, contents)

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            take(participants, 1, 1)
        assert len(written) == 3
        assert [(tmp_path / name).read_bytes() for name in ("typing.csv", "typing.quality.csv")] == before
        assert take(participants, 1, 1) == []
    assert as_sent(load_recordings(tmp_path / "typing.csv"), "ann", 1) == typed(1)["keystrokes"]


def test_a_participant_who_is_taken_out_begins_again(tmp_path):
    with participants_of(tmp_path, PROMPTS, users=None) as participants:
        for user in ("007", "bob", "NaN"):
            consenting(participants, user)
            take(participants, 0, 0, user)
            take(participants, 1, 1, user)
    path = tmp_path / "typing.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if line[:4] != "bob,"))
    with participants_of(tmp_path, PROMPTS, users=None) as participants:
        done = {user: participants.state(user)["participant"]["done"] for user in ("007", "bob", "NaN")}
        assert done == {"007": 2, "bob": 0, "NaN": 2}
        assert {line["user"] for line in quality_of(tmp_path)} == {"007", "NaN"}


def test_a_sample_that_is_taken_out_is_asked_for_again(tmp_path):
    with participants_of(tmp_path, PROMPTS) as participants:
        consenting(participants)
        for place in range(4):
            take(participants, place, place)
    path = tmp_path / "typing.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if line[:6] != "ann,1,"))
    with participants_of(tmp_path, PROMPTS) as participants:
        assert participants.state("ann")["participant"]["done"] == 3
        assert participants.state("ann")["participant"]["task"]["place"] == 1
        for place in (1, 4, 5):
            assert take(participants, place, place) == []
        assert participants.finished()
    frame = load_recordings(path)
    assert frame.groupby("session")["repetition"].first().to_dict() == {0: 1, 2: 3, 3: 4, 4: 2, 5: 5, 6: 6}
    assert as_sent(frame, "ann", 4) == typed(1)["keystrokes"]


def test_consent_that_could_not_be_stored_is_none(tmp_path, monkeypatch):
    with participants_of(tmp_path, PROMPTS) as participants:
        with monkeypatch.context() as full:
            full.setattr(os, "replace", lambda *_: refuse(OSError(errno.ENOSPC, "No space left")))
            with pytest.raises(OSError, match="No space"):
                consenting(participants)
        with pytest.raises(Problem, match="without consent"):
            take(participants, 0, 0)


def refuse(error):
    raise error


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / "typing.csv"
    path.write_text("user,session,keyname,timepress,timerelease\nann,0,a,0,80\n")
    with (
        pytest.raises(UsageError, match="not written by keydyn record"),
        participants_of(tmp_path, PROMPTS),
    ):
        pass
    path.unlink()
    with participants_of(tmp_path, PROMPTS) as participants:
        take(consenting(participants), 0, 0)
        with pytest.raises(InUseError, match="another process"), participants_of(tmp_path, PROMPTS):
            pass
    with pytest.raises(UsageError, match="different prompts"), participants_of(tmp_path, PROMPTS + "\n#"):
        pass
    with pytest.raises(UsageError, match="must end in"), participants_of(tmp_path, PROMPTS, "typing.txt"):
        pass
    (tmp_path / "typing.recording.json").write_text("{}")
    with (
        pytest.raises(ValueError, match="not in the format"),
        participants_of(tmp_path, PROMPTS),
    ):
        pass


@pytest.mark.usefixtures("sketched")
def test_evaluate_takes_the_file_at_once(tmp_path):
    with participants_of(tmp_path, PROMPTS, users=None) as participants:
        for number, user in enumerate(("ann", "bob", "cleo")):
            consenting(participants, user)
            for place in range(4):
                take(participants, place, 10 * number + place, user)
    command = ["evaluate", str(tmp_path / "typing.csv"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    result = CliRunner().invoke(app, [*command, "--detector", "manhattan"])
    assert result.exit_code == 0, result.output
    scores = pd.read_parquet(tmp_path / "out" / "scores.parquet")
    assert set(scores["user"]) == {"ann", "bob", "cleo"}
