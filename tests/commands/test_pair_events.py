"""keydyn pair: logs of browsers and other programs as keystrokes."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app

EXPECTED = [("KeyA", 0.0, 90.0), ("KeyB", 150.0, 230.0)]


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"}, input=stdin)


def paired(path):
    frame = pd.read_csv(path)
    return [*frame[["keyname", "timepress", "timerelease"]].round(6).itertuples(index=False, name=None)]


LOGS = {
    "browser": (
        "timeStamp,type,code,key,repeat\n1000,keydown,KeyA,a,false\n1010,keypress,KeyA,a,false\n"
        "1050,input,,,\n1090,keyup,KeyA,a,false\n1150,keydown,KeyB,b,false\n1230,keyup,KeyB,b,false\n",
        [],
    ),
    "press and release": (
        "user;time;event;key\nann;1,0;Press;KeyA\nann;1,09;Release;KeyA\nann;1,15;Press;KeyB\nann;1,23;Release;KeyB\n",
        ["--separator", ";", "--decimal", ",", "--unit", "s"],
    ),
    "dates": (
        "timestamp,action,key\n2026-01-01T12:00:00.000,KEY_DOWN,KeyA\n2026-01-01T12:00:00.090,KEY_UP,KeyA\n"
        "2026-01-01T12:00:00.150,KEY_DOWN,KeyB\n2026-01-01T12:00:00.230,KEY_UP,KeyB\n",
        [],
    ),
    "own names": (
        "when\twhat\twhich\n1000\tkd\tKeyA\n1090\tku\tKeyA\n1150\tkd\tKeyB\n1230\tku\tKeyB\n",
        ["--separator", r"\t", "--columns", "time=when,key=which"],
    ),
    "key press and key release": (
        "t,state,keycode\n1000,key press,KeyA\n1090,key release,KeyA\n"
        "1150,key press,KeyB\n1230,key release,KeyB\n",
        [],
    ),
    "json lines": (
        "".join(
            json.dumps({"timeStamp": time, "type": kind, "code": key}) + "\n"
            for time, kind, key in [
                (1000, "keydown", "KeyA"),
                (1090, "keyup", "KeyA"),
                (1150, "keydown", "KeyB"),
                (1230, "keyup", "KeyB"),
            ]
        ),
        [],
    ),
}


@pytest.mark.parametrize("log", LOGS)
def test_logs_of_many_programs(log, tmp_path):
    text, options = LOGS[log]
    (tmp_path / "events.csv").write_text(text)
    user = [] if "user" in text else ["--user", "ann"]
    done = run("pair", tmp_path / "events.csv", "--out", tmp_path / "k.csv", *user, *options)
    assert done.exit_code == 0, done.output
    assert paired(tmp_path / "k.csv") == EXPECTED
    assert pd.read_csv(tmp_path / "k.csv")["user"].unique().tolist() == ["ann"]
    assert "2 keystrokes in 1 sample of 1 user" in done.output
    assert ("Left out: 1 keypress events, 1 input events" in done.output) == (log == "browser")


def test_for_machines(tmp_path):
    text, _ = LOGS["browser"]
    done = run("pair", "-", "--out", tmp_path / "k.csv", "--json", stdin=text)
    assert "give a name with --user" in done.stderr
    printed = json.loads(done.stdout)
    assert printed["left_out"] == {"keypress": 1, "input": 1}
    assert printed["counts"]["keystrokes"] == 2


@pytest.mark.parametrize(
    ("text", "options", "message", "code"),
    [
        ("a,b\n1,x\n", [], "no column for the time or the type or the key of an event", 4),
        ("time,type,key\n0,press,a\n5,jump,a\n", [], "type is 'jump'", 4),
        ("time,type,key\nx,press,a\n5,release,a\n", [], "line 2: time 'x' is not a number", 4),
        ("time,type,key\n0,press,a\n", ["--columns", "key=k"], "no column 'k' for key", 4),
        ("time,type,key\n0,press,a\n", ["--sort"], "--sort and --clean apply to keystrokes", 2),
    ],
)
def test_what_is_wrong_is_reported(text, options, message, code, tmp_path):
    done = run("pair", "-", "--out", tmp_path / "k.csv", *options, stdin=text)
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "k.csv").exists()


def test_seconds_are_noticed(tmp_path):
    text = "time,type,key\n" + "".join(f"{n / 5},press,k{n}\n{n / 5 + 0.1},release,k{n}\n" for n in range(9))
    done = run("pair", "-", "--out", tmp_path / "k.csv", "--user", "ann", stdin=text)
    assert "give `--unit s`" in " ".join(done.stderr.split())
