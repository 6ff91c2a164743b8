"""Files from other programs: other names of keys, clocks that stand still, long recordings."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.keystrokes.key_names import key_name

BROWSER = {"space": "Space", "comma": "Comma", "period": "Period", "shift": "ShiftLeft", "quote": "Quote"}


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


def one_line(text):
    return " ".join(text.split())


def as_browser(name):
    return BROWSER.get(name) or (f"Key{name.upper()}" if len(name) == 1 and name.isalpha() else name)


@pytest.fixture(scope="module")
def typing():
    """Two people, one long recording of each."""
    return make_typists(2, 1, "free", 640, random_state=4)


@pytest.fixture(scope="module")
def models(typing, tmp_path_factory):
    """A folder with both enrolled from parts of their recordings, with browsers' names of keys."""
    folder = tmp_path_factory.mktemp("own")
    typing.assign(keyname=typing["keyname"].map(as_browser)).to_csv(folder / "typing.csv", index=False)
    done = run("fit", folder / "typing.csv", "--out", folder / "models", "--keys", 100, "--json")
    assert done.exit_code == 0, done.output
    assert "12 parts of 100 keystrokes, cut from longer samples: what is left over is dropped" in one_line(
        done.stderr
    )
    assert [(row["samples"], row["keys"]) for row in json.loads(done.stdout)["users"]] == [(6, 600), (6, 600)]
    return folder


def test_a_long_recording_becomes_samples(models, typing):
    typing.to_csv(models / "ours.csv", index=False)
    call = ("--models", models / "models", "--json")
    pieces = json.loads(run("score", models / "ours.csv", *call, "--keys", 200).stdout)
    assert [(row["user"], row["keys"]) for row in pieces[::2]] == [("0", 200)] * 3 + [("1", 200)] * 3
    # The same keys under keydyn's own names and under browsers'.
    again = json.loads(run("score", models / "typing.csv", *call, "--keys", 200).stdout)
    assert [row["log_likelihood"] for row in again] == [row["log_likelihood"] for row in pieces]
    paused = json.loads(run("verify", models / "ours.csv", *call, "--user", "0", "--pauses", 900).stdout)
    assert len(paused) > 2
    assert sum(row["evidence"]["keystrokes"] for row in paused) == len(typing)


def test_one_long_recording_is_refused_with_the_option_that_divides_it(models, typing):
    call = ("fit", models / "one.csv", "--out", models / "one")
    typing.to_csv(models / "one.csv", index=False)
    assert "`--keys 100` divides a long recording into samples" in one_line(run(*call).stderr)
    typing.groupby("user").head(50).to_csv(models / "one.csv", index=False)
    done = run(*call)
    assert "has 1 sample; at least 2 are required" in one_line(done.stderr)
    assert "--keys" not in done.stderr


def test_keys_and_pauses_are_checked(models):
    done = run("score", models / "typing.csv", "--models", models / "models", "--keys", 0)
    assert done.exit_code == 2
    assert "keys must be a whole number of keystrokes" in one_line(done.stderr)


def test_keys_that_nobody_knows_are_named_and_refused(typing, tmp_path):
    strange = {name: f"pad-{n}" for n, name in enumerate(sorted(set(typing["keyname"])))}
    assert all(key_name(name) == name for name in strange.values())
    frame = typing.assign(keyname=typing["keyname"].map(strange))
    frame.to_csv(tmp_path / "strange.csv", index=False)
    done = run("fit", tmp_path / "strange.csv", "--out", tmp_path / "models", "--keys", 100)
    assert done.exit_code == 4
    assert "knows hardly any of the keys of user 0 (0% of the keystrokes): pad-" in one_line(done.stderr)
    assert not (tmp_path / "models" / "models.json").exists()
    rare = typing.assign(keyname=typing["keyname"].replace("z", "ß").replace("v", "ø"))
    rare.to_csv(tmp_path / "rare.csv", index=False)
    done = run("fit", tmp_path / "rare.csv", "--out", tmp_path / "models", "--keys", 100)
    assert done.exit_code == 0, done.output
    n = int((rare["keyname"] == "ø").sum())
    assert f"ø ({n})" in one_line(done.stderr)


def test_a_clock_that_stands_still_is_refused_before_anything_is_cleaned(typing, tmp_path):
    stopped = typing.assign(timepress=typing["timepress"].where(typing["user"] != 1, 5.0))
    stopped["timerelease"] = stopped["timepress"] + 80
    stopped.to_csv(tmp_path / "stopped.csv", index=False)
    for further in ([], ["--clean"]):
        done = run("fit", tmp_path / "stopped.csv", "--out", tmp_path / "m", "--min-samples", 1, *further)
        assert done.exit_code == 4
        assert "the clock of user 1 stands still or is too coarse: 100% of" in one_line(done.stderr)
        assert not (tmp_path / "m").exists()


def test_the_file_says_who_is_claimed(models, typing):
    """Each person's first 200 keys under their own name, the next under the other's."""
    frame = typing.groupby("user").head(400)
    frame["session"] = (frame.groupby("user").cumcount() >= 200).astype(int)
    frame["account"] = frame["user"].where(frame["session"] == 0, 1 - frame["user"])
    frame.to_csv(models / "claims.csv", index=False)
    call = ("--models", models / "models", "--json")
    done = run("verify", models / "claims.csv", *call, "--claims", "account")
    rows = json.loads(done.stdout)
    assert [(row["user"], row["claimed"]) for row in rows] == [("0", "0"), ("0", "1"), ("1", "1"), ("1", "0")]
    for claimed in ("0", "1"):
        alone = json.loads(run("verify", models / "claims.csv", *call, "--user", claimed).stdout)
        llrs = {(row["user"], row["session"]): row["llr"] for row in alone}
        assert all(
            llrs[row["user"], row["session"]] == row["llr"] for row in rows if row["claimed"] == claimed
        )
    assert "claimed" in run("verify", models / "claims.csv", *call[:2], "--claims", "account").stdout
    for options, message in (
        (["--claims", "account", "--user", "0"], "give --user, or --claims"),
        ([], "give --user, or --claims"),
        (["--claims", "account", "--update"], "--update is for the claims of one --user"),
    ):
        done = run("verify", models / "claims.csv", *call, *options)
        assert done.exit_code == 2
        assert message in one_line(done.stderr)
    done = run("verify", models / "claims.csv", *call, "--claims", "owner")
    assert done.exit_code == 4
    assert "there is no column 'owner' of claimed users" in one_line(done.stderr)
