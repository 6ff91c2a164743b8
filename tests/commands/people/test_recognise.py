"""keydyn fit, score, identify, verify and watch, as people and as programs use them."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from tests.decisions.typed_samples import OTHERS, typed
from tests.documents import ROOT


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"})


def one_line(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recordings, and models fitted to them by the command itself."""
    folder = tmp_path_factory.mktemp("recognise")
    typed(0).to_csv(folder / "train.csv", index=False)
    typed(1, n_samples=2).to_csv(folder / "later.csv", index=False)
    typed(2, n_samples=2).query("user == 'ann'").to_csv(folder / "ann.csv", index=False)
    done = run("fit", folder / "train.csv", "--out", folder / "models")
    assert done.exit_code == 0, done.output
    assert "3 users enrolled with population" in one_line(done.output)
    assert "Population and calibration: the one that comes with keydyn" in done.output
    return folder


def test_fit_for_machines(folder, tmp_path):
    typed(99, OTHERS, 4).to_csv(tmp_path / "others.csv", index=False)
    done = run("fit", tmp_path / "others.csv", "--out", tmp_path / "m", "--detector", "hmm", "--json")
    printed = json.loads(done.stdout)
    assert printed["users"] == [{"user": user, "samples": 4, "keys": 48} for user in OTHERS]
    assert printed["detector"] == "hmm"
    assert printed["calibration"] == {"origin": "learnt from these people", "people": 10}
    assert (printed["replaced"], printed["enrolled"]) == ([], 10)
    assert (tmp_path / "m" / "models.json").exists()


def test_score_gives_every_sample_under_every_model(folder, tmp_path):
    done = run(
        "score", folder / "later.csv", "--models", folder / "models", "--json", "--out", tmp_path / "s.csv"
    )
    rows = json.loads(done.stdout)
    assert len(rows) == 6 * 3
    assert pd.read_csv(tmp_path / "s.csv")["log-likelihood"].tolist() == [r["log_likelihood"] for r in rows]


def test_identify_names_the_right_people(folder):
    rows = json.loads(run("identify", folder / "later.csv", "--models", folder / "models", "--json").stdout)
    assert [row["candidates"][0]["user"] for row in rows] == [row["user"] for row in rows]
    assert not any(row["nobody"] for row in rows)
    for row in rows:
        assert [len(row["candidates"]), row["enough_evidence"], row["reasons"]] == [3, True, []]
        probabilities = [candidate["probability"] for candidate in row["candidates"]]
        assert sum(probabilities) + row["nobody_probability"] == pytest.approx(1)
        assert set(row["candidates"][0]) == {"user", "probability", "llr", "false_match_rate"}
    shown = run("identify", folder / "later.csv", "--models", folder / "models", "--top", 1)
    assert shown.exit_code == 0
    assert "Who typed it?" in shown.output
    assert shown.output.count("none of these") == 6


def test_the_guide_lists_every_field_of_the_answers(folder):
    guide = (ROOT / "docs" / "guide" / "enrolment.md").read_text(encoding="utf-8")
    told = guide.partition("`verify --json` returns")[2]
    of_verify, _, rest = told.partition("`identify --json` returns")
    asked = [folder / "ann.csv", "--models", folder / "models", "--json"]
    (row, *_) = json.loads(run("verify", *asked, "--user", "ann").stdout)
    named = {name for line in of_verify.split("\n") for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    assert named == {*row, "updated"}
    (row, *_) = json.loads(run("identify", *asked).stdout)
    assert {*row} <= set(re.findall(r"`(\w+)`", rest.partition("`watch --json` returns")[0]))


def test_strangers_are_none_of_these(folder, tmp_path):
    typed(1, ("zoe", "kim"), 2).to_csv(tmp_path / "strangers.csv", index=False)
    call = [tmp_path / "strangers.csv", "--models", folder / "models", "--json"]
    assert all(row["nobody"] for row in json.loads(run("identify", *call).stdout))
    for user in ("ann", "bob", "eve"):
        done = run("verify", *call, "--user", user)
        assert done.exit_code != 0
        assert not any(row["answer"] == "accept" for row in json.loads(done.stdout))


def test_verify_says_it_in_its_exit_code(folder):
    own = run("verify", folder / "ann.csv", "--models", folder / "models", "--user", "ann")
    assert own.exit_code == 0, own.output
    assert "accepted" in own.output
    other = run("verify", folder / "ann.csv", "--models", folder / "models", "--user", "eve", "--json")
    assert other.exit_code == 1
    rows = json.loads(other.stdout)
    assert {row["answer"] for row in rows} == {"reject"}
    assert {row["claimed"] for row in rows} == {"eve"}
    assert {row["user"] for row in rows} == {"ann"}
    assert [row["session"] for row in rows] == ["0", "1"]
    for row in rows:
        assert row["llr"] < 0 < row["false_match_rate"] <= 1
        assert row["reasons"] == []
        assert row["evidence"]["keystrokes"] == row["evidence"]["known_keystrokes"] == 12
        assert {"pairs", "known_pairs", "spoke_for", "spoke_against"} < set(row["evidence"])
    anybody = run(
        *("verify", folder / "ann.csv", "--models", folder / "models", "--user", "eve"),
        *("--false-match-rate", 0.999),
    )
    assert anybody.exit_code == 0
    for rate in (0, 1):
        wrong = run(
            *("verify", folder / "ann.csv", "--models", folder / "models", "--user", "ann"),
            "--false-match-rate",
            rate,
        )
        assert wrong.exit_code == 2


def test_a_single_claim_is_explained(folder, tmp_path):
    typed(2, ("ann",), 1).to_csv(tmp_path / "one.csv", index=False)
    shown = run("verify", tmp_path / "one.csv", "--models", folder / "models", "--user", "ann")
    text = " ".join(shown.output.split())
    assert "% of strangers would score as high (95 % interval" in text
    assert "For the claim: " in text


def test_copies_are_rejected(folder):
    done = run("verify", folder / "train.csv", "--models", folder / "models", "--user", "ann", "--json")
    own = [row for row in json.loads(done.stdout) if row["user"] == "ann"]
    assert {row["answer"] for row in own} == {"reject"}
    assert all("a copy" in row["reasons"][0] for row in own)


def test_watch_reports_at_which_key(folder):
    # Twelve keys are few: the level is one that the right person passes, too, now and then.
    call = ("--models", folder / "models", "--user", "eve", "--lockouts-per-hour", 10, "--json")
    other = run("watch", folder / "ann.csv", *call)
    assert other.exit_code == 1
    rows = json.loads(other.stdout)
    assert "reject" in {row["answer"] for row in rows}
    for row in rows:
        assert (row["answer"] == "reject") == (row["suspicion"] > row["threshold"])
        assert (row["rejected_at_key"] is not None) == (row["answer"] == "reject")
        assert row["rejected_at_key"] is None or 1 <= row["rejected_at_key"] <= row["keys"] == 12
    lenient = run(
        "watch", folder / "ann.csv", "--models", folder / "models", "--user", "eve", "--threshold", 99
    )
    assert lenient.exit_code == 0
    call = ["watch", folder / "ann.csv", "--models", folder / "models", "--user", "ann", "--json"]
    often, rarely = (
        json.loads(run(*call, "--lockouts-per-hour", rate).stdout)[0]["threshold"] for rate in (10, 0.1)
    )
    assert often <= rarely
    assert run(*call, "--lockouts-per-hour", 1, "--threshold", 2).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["identify", "{f}/none.csv", "--models", "{f}/models"], "there is no file", 4),
        (["identify", "{f}/empty.csv", "--models", "{f}/models"], "empty", 4),
        (["identify", "{f}/columns.csv", "--models", "{f}/models"], "keyname", 4),
        (["identify", "{f}/later.csv", "--models", "{f}"], "no enrolled users", 4),
        (["verify", "{f}/later.csv", "--models", "{f}/models", "--user", "zoe"], "'zoe' is not enrolled", 2),
        (["fit", "{f}/one.csv", "--out", "{f}/x"], "has 1 sample; at least 2 are required", 4),
        (["fit", "{f}/train.csv", "--out", "{f}/x", "--detector", "svm"], "svm cannot enrol users", 2),
        (
            ["fit", "{f}/train.csv", "--out", "{f}/x", "--detector", "magic"],
            "there is no detector 'magic'",
            2,
        ),
        (["fit", "{f}/train.csv", "--out", "{f}/x", "--sensors", "grip"], "no feature 'grip'", 4),
        (["fit", "{f}/train.csv", "--out", "{f}/x", "--unit", "days"], "unit", 2),
        (["fit", "{f}/train.csv", "--out", "{f}/x", "--detector", "pohmm"], "needs 10 people or more", 4),
    ],
)
def test_what_is_wrong_is_reported_in_a_line(folder, arguments, message, code):
    (folder / "empty.csv").write_text("")
    typed(0).drop(columns="keyname").to_csv(folder / "columns.csv", index=False)
    typed(0, n_samples=1).to_csv(folder / "one.csv", index=False)
    done = run(*(argument.format(f=folder) for argument in arguments))
    assert done.exit_code == code
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.output


def test_files_of_another_form(folder):
    """Other names, separators, units and orders of rows give the same answer."""
    own = typed(1, n_samples=2)
    expected = run("identify", folder / "later.csv", "--models", folder / "models", "--json").stdout
    other = own.assign(timepress=own["timepress"] / 1000, timerelease=own["timerelease"] / 1000)
    other = other.rename(columns={"keyname": "key", "timepress": "down"}).sample(frac=1, random_state=0)
    other.sort_values("session", kind="stable").to_csv(folder / "other.csv", sep=";", index=False)
    call = [
        "identify",
        folder / "other.csv",
        "--models",
        folder / "models",
        "--json",
        "--unit",
        "s",
        "--sort",
    ]
    names = "keyname=key,timepress=down"
    done = run(*call, "--separator", ";", "--columns", names)
    assert done.exit_code == 0, done.stderr
    found, same = (
        {(row["user"], row["session"]): row["candidates"][0]["user"] for row in json.loads(text)}
        for text in (done.stdout, expected)
    )
    assert found == same
    for wrong, hint in ((["--columns", names], "--separator"), (["--separator", ";"], "--columns ")):
        done = run(*call, *wrong)
        assert done.exit_code == 4
        assert hint in done.stderr
    assert "--columns must be like" in run(*call, "--columns", "keyname").stderr


def test_a_wrong_unit_is_noticed(folder):
    done = run("identify", folder / "later.csv", "--models", folder / "models", "--unit", "ns")
    # No time is one of hands, so that there is nothing to judge by.
    assert done.exit_code == 3
    assert "give `--unit ms`" in done.stderr


def test_help_teaches_by_example():
    for command in ("fit", "score", "identify", "verify", "watch"):
        shown = run(command, "--help")
        assert shown.exit_code == 0
        assert f"keydyn {command} " in shown.output


def test_users_of_any_name_are_shown(tmp_path):
    names = {"ann": "[/b]", "bob": "a/b ü", "eve": "someone.with.a.long.name@somewhere.example.org"}
    frame = typed()
    frame["user"] = frame["user"].map(names)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "--out", tmp_path / "m").exit_code == 0
    shown = CliRunner().invoke(
        app,
        ["verify", str(tmp_path / "t.csv"), "--models", str(tmp_path / "m"), "--user", "[/b]"],
        env={"COLUMNS": "60"},
    )
    assert shown.exit_code == 1
    assert "Is it [/b]?" in shown.output
    assert "…" not in shown.output


def test_zero_times_can_be_left_out(tmp_path):
    frame = typed()
    frame.loc[11, "timepress"] = frame.loc[10, "timepress"]
    frame.loc[20, "timerelease"] = frame.loc[20, "timepress"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "--out", tmp_path / "missing").exit_code == 0
    assert run("fit", tmp_path / "t.csv", "--out", tmp_path / "m", "--clean").exit_code == 0
    assert run("identify", tmp_path / "t.csv", "--models", tmp_path / "m", "--clean").exit_code == 0


@pytest.mark.parametrize("kind", ["datetime64[s]", "bytes"])
def test_users_that_are_no_names_are_reported(tmp_path, kind):
    frame = typed(users=("1970", "1980"))
    frame["user"] = frame["user"].astype(kind) if kind == "datetime64[s]" else frame["user"].map(str.encode)
    frame.to_parquet(tmp_path / "t.parquet")
    done = run("fit", tmp_path / "t.parquet", "--out", tmp_path / "m")
    assert done.exit_code == 4
    assert "not text or numbers" in done.stderr


def few(frame, kind):
    """Samples of ann that are too short for a decision."""
    if kind == "one keystroke":
        return frame.groupby(["user", "session"], sort=False).head(1)
    if kind == "two unknown keys":
        return frame.groupby(["user", "session"], sort=False).head(2).assign(keyname="ß")
    return frame.assign(keyname="null")


@pytest.mark.parametrize("kind", ["one keystroke", "two unknown keys", "keys called null"])
@pytest.mark.parametrize("command", ["verify", "watch"])
def test_samples_that_say_too_little_are_never_accepted(folder, tmp_path, kind, command):
    few(typed(2, n_samples=2).query("user == 'ann'"), kind).to_csv(tmp_path / "few.csv", index=False)
    for user in ("ann", "bob", "eve"):
        call = [command, tmp_path / "few.csv", "--models", folder / "models", "--user", user]
        done = run(*call, "--json")
        assert done.exit_code == 3
        rows = json.loads(done.stdout)
        assert {row["answer"] for row in rows} == {"unsure"}
        assert all("fewer than" in row["reasons"][0] for row in rows)
    assert "fewer than" in " ".join(run(*call).stdout.split())
    asked = run(*call, "--json", "--min-keystrokes", 1, "--min-known", 0)
    assert "fewer than" not in asked.stdout


def test_identify_says_what_it_cannot_tell(folder, tmp_path):
    later = typed(1, n_samples=2)
    later.drop(index=later.index[1:12]).to_csv(tmp_path / "few.csv", index=False)
    done = run("identify", tmp_path / "few.csv", "--models", folder / "models", "--json")
    assert done.exit_code == 3
    assert "user ann, session 0: not enough evidence: 1 keystroke, fewer than 6" in done.stderr
    unsure = {(row["user"], row["session"]) for row in json.loads(done.stdout) if not row["enough_evidence"]}
    assert unsure == {("ann", "0")}


@pytest.mark.parametrize("command", ["verify", "watch"])
def test_rejected_comes_before_unsure_and_unsure_before_accepted(folder, tmp_path, command):
    ann, eve = (typed(2, n_samples=2).query(f"user == '{user}'") for user in ("ann", "eve"))
    short = few(ann, "one keystroke").assign(user="short")
    for parts, code in (((ann,), 0), ((ann, short), 3), ((ann, short, eve), 1), ((short, eve), 1)):
        pd.concat(parts).to_csv(tmp_path / "some.csv", index=False)
        often = ("--lockouts-per-hour", 10) if command == "watch" else ()
        done = run(command, tmp_path / "some.csv", "--models", folder / "models", "--user", "ann", *often)
        assert done.exit_code == code, done.output


def test_a_table_is_written_whole_or_not_at_all(folder, tmp_path, monkeypatch):
    def half(frame, path, **_):
        path.write_text("user,sess")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    done = run("score", folder / "later.csv", "--models", folder / "models", "--out", tmp_path / "s.csv")
    assert done.exit_code == 130
    assert not list(tmp_path.iterdir())
