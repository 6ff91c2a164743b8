"""Files of codes, holds and flight times, made by hand in the layouts of several collections."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import load_recordings
from keydyn.keystrokes import ReadingError

# "hi a" twice: press and release of each key in milliseconds; h overlaps i.
KEYS = ["h", "i", "space", "a"]
TIMES = [(0.0, 95.0), (80.0, 150.0), (300.0, 370.0), (450.0, 560.0)]
CODES = {"h": 72, "i": 73, "space": 32, "a": 65}


def written(path, header, row, samples=2):
    """A file with a row per keystroke; `row` gets the sample, the key, the hold, the flights and interval."""
    lines = [header]
    for sample in range(samples):
        for n, (key, (press, release)) in enumerate(zip(KEYS, TIMES, strict=True)):
            before = press - TIMES[n - 1][1] if n else ""
            after = TIMES[n + 1][0] - release if n < len(TIMES) - 1 else ""
            interval = press - TIMES[n - 1][0] if n else 0
            lines.append(row(sample, key, release - press, (before, after), interval))
    path.write_text("\n".join(lines) + "\n")
    return path


LAYOUTS = {
    "VK, HT, FT": (
        "session,VK,HT,FT",
        lambda n, key, hold, flights, _: f"{n},{CODES[key]},{hold},{flights[0] if flights[0] != '' else 0}",
        {"user": "ann"},
    ),
    "the flight to the next key, empty at the end": (
        "user,session,key,hold_time,flight_time",
        lambda n, key, hold, flights, _: f"ann,{n},{key},{hold},{flights[1]}",
        {},
    ),
    "seconds, press to press": (
        "subject,trial,key,dwell,DD",
        lambda n, key, hold, _, interval: f"ann,{n},{key},{hold / 1000},{interval / 1000}",
        {"columns": {"user": "subject", "session": "trial"}},
    ),
    "own names, and a first flight that is not 0": (
        "user,session,key,down_for,pause",
        lambda n, key, hold, flights, _: f"ann,{n},{key},{hold},{flights[0] if flights[0] != '' else 17}",
        {"columns": {"hold": "down_for", "flight": "pause"}},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, tmp_path):
    header, row, options = LAYOUTS[layout]
    frame = load_recordings(written(tmp_path / "holds.csv", header, row), **options)
    assert frame["user"].unique().tolist() == ["ann"]
    assert frame.groupby("session").size().tolist() == [4, 4]
    for _, one in frame.groupby("session"):
        assert one["keyname"].tolist() == KEYS
        assert list(zip(one["timepress"], one["timerelease"], strict=True)) == TIMES


def test_a_flight_that_could_lead_either_way_is_asked_about(tmp_path):
    path = written(tmp_path / "f.csv", "user,session,key,HT,FT", lambda n, key, *_: f"ann,{n},{key},80,60")
    with pytest.raises(
        ReadingError, match="may be the time from the key before or to the key after"
    ) as error:
        load_recordings(path)
    remedies = [dict(remedy.arguments) for remedy in error.value.finding.remedies]
    assert remedies == [{"columns": {"next_flight": "FT"}}, {"columns": {"flight": "FT"}}]
    for remedy in remedies:
        assert load_recordings(path, **remedy)["timepress"].tolist() == [0, 140, 280, 420] * 2


def test_holds_that_nobody_has(tmp_path):
    path = written(tmp_path / "f.csv", "user,session,key,HT,FT", lambda n, key, *_: f"ann,{n},{key},5000,0")
    with pytest.raises(ReadingError, match="not how people type in any unit"):
        load_recordings(path)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


def test_suggestions_do_not_read_intervals_as_times(tmp_path):
    path = tmp_path / "latencies.csv"
    rows = [f"ann,0,{key},{130 + 37 * n % 90},{90 + 11 * n % 30}" for n, key in enumerate(KEYS * 3)]
    path.write_text("user,session,key,press_latency,release_latency\n" + "\n".join(rows) + "\n")
    done = run("fit", path, "--out", tmp_path / "models")
    assert done.exit_code == 4
    assert "timepress=press_latency" not in done.stderr
    # Who insists is told what the columns look like, and not to sort them.
    names = "keyname=key,timepress=press_latency,timerelease=release_latency"
    done = run("fit", path, "--out", tmp_path / "models", "--columns", names, "--clean")
    assert done.exit_code == 4
    assert "look like times between keys" in " ".join(done.stderr.split())
    assert "--sort" not in done.stderr


def test_the_commands_read_them(tmp_path):
    header, row, _ = LAYOUTS["VK, HT, FT"]
    path = written(tmp_path / "holds.csv", header, row, samples=12)
    done = run("fit", path, "--out", tmp_path / "models", "--user", "ann")
    assert done.exit_code == 0, done.output
    assert "1 user enrolled" in done.output
