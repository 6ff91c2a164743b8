"""keydyn pair: logs of browsers and other programs become keystrokes."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app

EXPECTED = [("a", 0.0, 90.0), ("b", 150.0, 230.0)]


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
        (
            "VK,HT,FT\n84,93.8,0\n72,80.1,120.5\n",
            [],
            "fit, evaluate and the other commands read it as it is",
            4,
        ),
        ("time,type,key\n0,press,a\n5,jump,a\n", [], "type is 'jump'", 4),
        ("time,type,key\nx,press,a\n5,release,a\n", [], "line 2: time 'x' is not a number", 4),
        ("time,type,key\n0,press,a\n", ["--columns", "key=k"], "no column 'k' for key", 4),
        (
            "time,type,key\n0,press,a\n",
            ["--sort"],
            "--keys and --pauses apply to keystrokes",
            2,
        ),
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


# The text "Du d" as loggers write it: the keys d and u are no types of events, and Shift is released before
# the letter.
TYPED = [("shift", 0, 100), ("d", 60, 150), ("u", 200, 290), ("space", 350, 430), ("d", 500, 590)]
STAMP = 1653420520415


def logged(row, names, header=""):
    """A log with one row per event, in order of time; `row` formats boolean press, name and time."""
    events = [(press, True, key) for key, press, _ in TYPED] + [(up, False, key) for key, _, up in TYPED]
    shifted = sorted(events, key=lambda event: event[0])
    return header + "".join(row(pressed, names(key, at), at) + "\n" for at, pressed, key in shifted)


def pynput(key, at):
    """A log of pynput, in which the first d is D until Shift is released."""
    return f"Key.{key}" if len(key) > 1 else repr(key.upper() if at < 100 else key)


def test_the_key_of_the_separator_is_read_as_pynput_writes_it(tmp_path):
    keys = ["'d'", "','", "Key.space", '"\'"', "'u'"]
    rows = [f"P,{key},{STAMP + 200 * n}\nR,{key},{STAMP + 200 * n + 80}\n" for n, key in enumerate(keys)]
    call = ("pair", "-", "--out", tmp_path / "k.csv", "--user", "ann")
    header = ["--header", "type,key,time"]
    suggested = run(*call, stdin="".join(rows))
    assert " ".join(header) in " ".join(suggested.stderr.split())
    done = run(*call, *header, stdin="".join(rows))
    assert done.exit_code == 0, done.output
    expected = ["d", "comma", "space", "quote", "u"]
    assert [key for key, _, _ in paired(tmp_path / "k.csv")] == expected
    # Any other row with too many values is refused, and by its line.
    done = run(*call, *header, stdin="".join(rows) + f"P,a,b,{STAMP + 2000}\n")
    assert "line 11: there are 4 values for 3 columns" in " ".join(done.stderr.split())


def browser(key, _):
    return {"shift": "ShiftLeft", "space": "Space"}.get(key, f"Key{key.upper()}")


LOGGERS = {
    "pynput, no header, nanoseconds": (
        logged(lambda down, key, at: f"{'P' if down else 'R'},{key},{STAMP + at}328000", pynput),
        ["--header", "type,key,time"],
    ),
    "types that look like keys": (
        logged(lambda down, key, at: f"{key},{'d' if down else 'u'},{at}", pynput, "key,type,time\n"),
        [],
    ),
    "1 and 0, seconds since 1970": (
        logged(
            lambda down, key, at: f"{(STAMP + at) / 1000:.3f},{key},{int(down)}",
            browser,
            "timestamp,key,pressed\n",
        ),
        [],
    ),
    "evdev": (
        logged(
            lambda down, key, at: f"{STAMP + at}000,EV_KEY,{key},{int(down)}",
            lambda key, _: f"KEY_{'LEFTSHIFT' if key == 'shift' else key.upper()}",
            "time,type,code,value\n",
        ),
        [],
    ),
    "evdev by numbers, with repeats": (
        logged(
            lambda down, key, at: f"{at},{key},{int(down)}" + (f"\n{at + 1},{key},2" if down else ""),
            lambda key, _: {"shift": 42, "d": 32, "u": 22, "space": 57}[key],
            "time,code,value\n",
        ),
        [],
    ),
    "virtual keys by numbers": (
        logged(
            lambda down, key, at: f"{at}000,{'KeyDown' if down else 'KeyUp'},{key}",
            lambda key, _: {"shift": 160, "d": 68, "u": 85, "space": 32}[key],
            "Time_us,Event,VKCode\n",
        ),
        [],
    ),
    "virtual keys by name": (
        logged(
            lambda down, key, at: f"VK_{key};{'make' if down else 'break'};{at}",
            lambda key, _: {"shift": "LSHIFT"}.get(key, key.upper()),
            "vk;action;ms\n",
        ),
        ["--separator", ";"],
    ),
    "X11": (
        logged(
            lambda down, key, at: f"{at},{'KeyPress' if down else 'KeyRelease'},{key}",
            lambda key, at: {"shift": "Shift_L"}.get(key, key.upper() if at < 100 else key),
            "time,event,keysym\n",
        ),
        [],
    ),
    "a name beside a scan code": (
        logged(
            lambda down, key, at: f"{'down' if down else 'up'},{key},{len(str(key))},{at}",
            lambda key, _: {"shift": "left shift"}.get(key, key),
            "event_type,name,scan_code,time\n",
        )
        .replace("left shift,10", "left shift,42")
        .replace("d,1", "d,32")
        .replace("u,1", "u,22"),
        [],
    ),
}


@pytest.mark.parametrize("logger", LOGGERS)
def test_common_loggers(logger, tmp_path):
    text, options = LOGGERS[logger]
    (tmp_path / "log.csv").write_text(text)
    done = run("pair", tmp_path / "log.csv", "--out", tmp_path / "k.csv", "--user", "ann", *options)
    assert done.exit_code == 0, done.output
    # Seconds since 1970 have a quarter of a microsecond in double precision.
    rounded = [
        (key, round(press, 2), round(release, 2)) for key, press, release in paired(tmp_path / "k.csv")
    ]
    assert rounded == TYPED
    assert "--unit" not in done.stderr


def test_a_log_without_a_header_is_told_which_one_fits(tmp_path):
    text, _ = LOGGERS["pynput, no header, nanoseconds"]
    done = run("pair", "-", "--out", tmp_path / "k.csv", stdin=text)
    assert done.exit_code == 4
    assert "--header type,key,time" in done.stderr


def test_a_clock_that_stands_still_is_refused(tmp_path):
    log = tmp_path / "stopped.csv"
    log.write_text("time,type,key\n" + "".join(f"7,press,k{n}\n7,release,k{n}\n" for n in range(9)))
    done = run("pair", log, "--out", tmp_path / "k.csv", "--user", "ann")
    assert done.exit_code == 4
    assert f"{log}: the clock of user ann stands still" in " ".join(done.stderr.split())
    assert not (tmp_path / "k.csv").exists()
