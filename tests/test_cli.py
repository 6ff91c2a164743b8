"""The command line, as a person uses it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import keydyn
from keydyn.cli import app
from keydyn.datasets import load_recordings
from tests.waiting import PATIENCE


def called(*arguments):
    """What a command does, in this process: one of its own would load everything again."""
    return CliRunner().invoke(app, list(arguments))


def test_help_and_version():
    shown = called("--help")
    assert shown.exit_code == 0
    assert "demo" in shown.stdout
    assert called("demo", "--help").stdout.count("--users")
    process = [sys.executable, "-c", "from keydyn.cli import main; main()", "--version"]
    done = subprocess.run(process, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == f"keydyn {keydyn.__version__}"


def test_demo(tmp_path):
    """It identifies, verifies, watches, and leaves tables, figures, a model and the recordings."""
    out = tmp_path / "out"
    done = called("demo", "--users", "3", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    assert "Warning" not in done.stderr
    shown = " ".join(done.stdout.split())
    for words in ("typed it", "equal error rate", "are detected, after", "of the states are found"):
        assert words in shown
    table = pd.read_csv(out / "recognition.csv")
    assert len(table) == 3
    assert table["acc"].between(0, 1).all()
    for figure in ("hidden_states.png", "watching.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    model = keydyn.load(out / "typist.keydyn")
    keystrokes = load_recordings(out / "typing.csv")
    assert set(model.event_types_) <= set(keystrokes["keyname"])
    # The commands that it proposes work on what it left, just as they stand there.
    proposed = [line for line in done.stdout.splitlines() if line.startswith("  keydyn ")]
    assert len(proposed) == 4
    for line in proposed[:3]:
        assert called(*shlex.split(line)[1:]).exit_code in (0, 1)
    assert shlex.split(proposed[3])[1:3] == ["evaluate", str(out / "typing.csv")]


def test_the_demo_does_not_contradict_itself(tmp_path):
    """Its numbers are those of its tables, its figure and its commands."""
    done = called("demo", "--out", str(tmp_path / "out"), "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    table = pd.read_csv(tmp_path / "out" / "recognition.csv")
    for name in ("acc", "eer", "eer_open"):
        assert told[name] == pytest.approx(table[name].mean())
    # Hidden states are worth something, and are not lost on the longest pauses.
    assert told["states"]["right"] > told["states"]["active"]
    user, models = told["unknown"]["user"], str(tmp_path / "out" / "models")
    call = [str(tmp_path / "out" / "unknown.csv"), "--models", models, "--user", user, "--json"]
    watched = json.loads(called("watch", *call, "--lockouts-per-hour", "5").stdout)
    others = [row for row in watched if row["user"] != user]
    assert len(others) == told["watch"]["impostors"]
    at = [row["rejected_at_key"] for row in others]
    assert sum(key is not None for key in at) == told["watch"]["detected"]
    before = [150 if key is None else key - 1 for key in at]
    assert told["watch"]["mean_keys"] == pytest.approx(sum(before) / len(before))
    mine = [row for row in watched if (row["user"], row["session"]) == (user, told["unknown"]["session"])]
    assert mine[0]["rejected_at_key"] == told["watch"]["genuine_rejected_at_key"]
    # By default, the genuine user is not locked out by the example.
    assert told["watch"]["genuine_rejected_at_key"] is None
    # The typists are a program, and would be noticed.
    verified = json.loads(called("verify", *call, "--alarms", "0").stdout)
    own, others = (
        [row["answer"] for row in verified if (row["user"] == user) == is_own] for is_own in (True, False)
    )
    assert set(own) == {"accept"}
    assert others.count("accept") <= told["verify"]["impostors_accepted"]
    assert told["verify"]["genuine"] * (told["users"] - 1) == told["verify"]["impostors"]


@pytest.mark.parametrize("arguments", [["demo", "--users", "1"], ["demo", "--nonsense"], ["dance"]])
def test_wrong_use_is_reported(arguments):
    done = called(*arguments)
    assert done.exit_code == 2
    assert "Usage" in done.stderr


def test_public_names():
    for name in keydyn.__all__:
        assert getattr(keydyn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = keydyn.nothing


def test_a_demo_that_cannot_write_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = called("demo", "--users", "2", "--out", str(tmp_path / "file" / "demo"))
    assert done.exit_code == 4
    assert "Traceback" not in done.stderr
