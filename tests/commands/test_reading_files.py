"""Unusual files: options that messages suggest work, and no file is misread without a message."""

from __future__ import annotations

import json
import os
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.decisions import Verifier
from tests.decisions.typed_samples import background, typed

pytestmark = pytest.mark.usefixtures("sketched")


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"}, input=stdin)


def one_line(text):
    return " ".join(text.split())


def suggested(done):
    """The options that a message suggests."""
    found = re.findall(r"`(--[^`]+)`", one_line(done.stderr))
    assert found, done.stderr
    return shlex.split(found[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with three people enrolled, and further samples of them."""
    folder = tmp_path_factory.mktemp("reading")
    typed(0).to_csv(folder / "train.csv", index=False)
    typed(1, n_samples=2).to_csv(folder / "later.csv", index=False)
    assert run("fit", folder / "train.csv", "--out", folder / "models").exit_code == 0
    return folder


FRAME = typed(0)
ACCENTED = FRAME.assign(keyname=FRAME["keyname"].replace("a", "é"))
OWN = {
    "user": "Subject",
    "session": "trial",
    "keyname": "key",
    "timepress": "press_time",
    "timerelease": "up",
}
FORMS = {
    "tabs": FRAME.to_csv(index=False, sep="\t").encode(),
    "semicolons and decimal commas": FRAME.to_csv(index=False, sep=";", decimal=",").encode(),
    "latin-1": ACCENTED.to_csv(index=False).encode("latin-1"),
    "utf-16": ACCENTED.to_csv(index=False).encode("utf-16"),
    "own names": FRAME.rename(columns=OWN).to_csv(index=False).encode(),
    "names with commas": FRAME.rename(columns={"keyname": "key, typed"}).to_csv(index=False).encode(),
    "no header": FRAME.to_csv(index=False, header=False).encode(),
    "capitals": FRAME.rename(columns=str.upper).to_csv(index=False).encode(),
    "press and release swapped": FRAME.rename(
        columns={"timepress": "timerelease", "timerelease": "timepress"}
    )
    .to_csv(index=False)
    .encode(),
    "bars": FRAME.to_csv(index=False, sep="|").encode(),
    "shuffled": FRAME.sample(frac=1, random_state=0).to_csv(index=False).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_message_suggests_works(form, tmp_path):
    """One suggestion after another leads to people being enrolled."""
    (tmp_path / "typing.csv").write_bytes(FORMS[form])
    call = ["fit", tmp_path / "typing.csv", "--out", tmp_path / "models"]
    messages = []
    for _ in range(4):
        done = run(*call)
        if done.exit_code == 0:
            break
        messages.append(done.stderr)
        call += suggested(done)
    assert done.exit_code == 0, messages
    assert messages
    assert len(set(messages)) == len(messages)
    assert "3 users enrolled" in done.output


def test_a_suggestion_names_all_columns_at_once(tmp_path):
    FRAME.rename(columns=OWN).drop(columns="trial").to_csv(tmp_path / "own.csv", index=False)
    call = ["fit", tmp_path / "own.csv", "--out", tmp_path / "models"]
    done = run(*call)
    assert suggested(done) == [
        "--columns",
        "user=Subject,keyname=key,timepress=press_time,timerelease=up",
        "--session",
        "0",
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv.gz"])
def test_files_that_need_no_options(ending, folder, tmp_path):
    path = tmp_path / f"typing{ending}"
    if ending == ".jsonl":
        FRAME.to_json(path, orient="records", lines=True)
    elif ending == ".parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False)
    done = run("fit", path, "--out", tmp_path / "models", "--json")
    assert [user["user"] for user in json.loads(done.stdout)["users"]] == ["ann", "bob", "eve"]


def test_raw_events_lead_to_pair(folder, tmp_path, monkeypatch):
    from keydyn.keystrokes import events_of

    monkeypatch.chdir(tmp_path)
    ann = typed(0, users=("ann", "bob"))
    events = events_of(ann).rename(columns={"time": "timeStamp", "key": "code"})
    events.drop(columns=["keyname", "repeat"]).to_csv("events.csv", index=False)
    done = run("fit", "events.csv", "--out", "models")
    assert done.exit_code == 4
    proposed = re.search(r"`keydyn (pair [^`]+)`", one_line(done.stderr))[1]
    paired = run(*shlex.split(proposed))
    assert paired.exit_code == 0, paired.output
    pd.testing.assert_frame_equal(
        pd.read_csv("keystrokes.csv")[["user", "session", "keyname"]], ann[["user", "session", "keyname"]]
    )
    assert run("fit", "keystrokes.csv", "--out", "models").exit_code == 0


@pytest.mark.parametrize("command", ["identify", "score", "verify", "watch"])
def test_what_is_asked_about_needs_no_user_and_no_session(command, folder, tmp_path):
    """The answer is the same as with them; the user is not known."""
    one = typed(2, users=("ann",), n_samples=1)
    one.to_csv(tmp_path / "named.csv", index=False)
    one.drop(columns=["user", "session"]).to_csv(tmp_path / "bare.csv", index=False)
    claim = ["--user", "ann"] if command in ("verify", "watch") else []
    call = ["--models", folder / "models", *claim, "--json"]
    named, bare = (run(command, tmp_path / f"{name}.csv", *call) for name in ("named", "bare"))
    assert bare.exit_code == named.exit_code == 0, bare.stderr
    without = [{**row, "user": None} for row in json.loads(named.stdout)]
    assert json.loads(bare.stdout) == without
    shown = run(command, tmp_path / "bare.csv", *call[:-1])
    assert "user" not in shown.output.splitlines()[2]
    said = run(command, tmp_path / "bare.csv", *call, *([] if claim else ["--user", "eve"]))
    assert claim or {row["user"] for row in json.loads(said.stdout)} == {"eve"}


def test_a_file_without_sessions_must_be_one_sample(folder, tmp_path):
    typed(2, users=("ann",), n_samples=2).drop(columns=["user", "session"]).to_csv(
        tmp_path / "two.csv", index=False
    )
    done = run("identify", tmp_path / "two.csv", "--models", folder / "models")
    assert done.exit_code == 4
    assert "a file without a column session is a single sample" in one_line(done.stderr)


@pytest.mark.parametrize(
    "command", ["fit", "identify", "score", "verify", "evaluate", "population fit", "pair"]
)
def test_standard_input(command, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {
        "fit": ["--out", "models"],
        "identify": ["--models", folder / "models"],
        "score": ["--models", folder / "models"],
        "verify": ["--models", folder / "models", "--user", "ann"],
        "evaluate": ["--out", "out", "--detector", "manhattan"],
        "population fit": ["--out", "people.keydyn"],
        "pair": ["--out", "keys.csv"],
    }[command]
    text = FRAME.to_csv(index=False)
    if command == "verify":
        # Enrolment samples would be copies.
        text = typed(1, ("ann",), 1).to_csv(index=False)
    if command == "pair":
        text = "time,type,key\n0,press,a\n80,release,a\n"
    done = run(*command.split(), "-", *options, stdin=text)
    assert done.exit_code == 0, done.output
    broken = run(*command.split(), "-", *options, stdin="")
    assert broken.exit_code == 4
    assert "standard input: it is empty" in broken.stderr


def test_a_pipe_that_is_named_leads_to_standard_input(folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = run("identify", tmp_path / "pipe", "--models", folder / "models")
    assert done.exit_code == 4
    assert "give - to read standard input" in one_line(done.stderr)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e-3), ("us", 1e3), ("ns", 1e6)])
def test_times_in_another_unit_are_noticed(unit, factor, tmp_path):
    scaled = FRAME.assign(timepress=FRAME["timepress"] * factor, timerelease=FRAME["timerelease"] * factor)
    scaled.to_csv(tmp_path / "scaled.csv", index=False)
    call = ["fit", tmp_path / "scaled.csv", "--out", tmp_path / "models"]
    done = run(*call)
    assert "the median time between two presses is" in one_line(done.stderr)
    options = suggested(done)
    assert options == ["--unit", unit]
    again = run(*call, *options)
    assert again.exit_code == 0
    assert again.stderr == ""


def test_copied_sessions_are_reported(tmp_path):
    copy = FRAME[(FRAME["user"] == "bob") & (FRAME["session"] == 1)].assign(session=9)
    copy[["timepress", "timerelease"]] += 1234.5
    pd.concat([FRAME, copy]).sort_values(["user", "session"], kind="stable").to_csv(
        tmp_path / "copied.csv", index=False
    )
    said = (
        "1 session is a copy, which makes recognition look better than it is: user bob, session 9 is the same"
    )
    done = run("fit", tmp_path / "copied.csv", "--out", tmp_path / "models")
    assert said in one_line(done.stderr)
    out = tmp_path / "out"
    done = run("evaluate", tmp_path / "copied.csv", "--out", out, "--detector", "manhattan")
    assert said in one_line(done.stderr)
    assert said in one_line((out / "report.html").read_text())
    assert json.loads((out / "run.json").read_text())["notes"]["copies"] == [
        {"user": "bob", "session": "9", "same_as_user": "bob", "same_as_session": "1"}
    ]
    clean = run("evaluate", tmp_path / "copied.csv", "--out", out, "--detector", "manhattan", "--clean")
    assert "1 samples were copies: dropped" in one_line(clean.stderr)
    assert json.loads((out / "run.json").read_text())["notes"]["copies"] == []


def test_releases_before_their_press_can_be_left_out(tmp_path):
    frame = FRAME.copy()
    frame.loc[[3, 30], "timerelease"] = frame.loc[[3, 30], "timepress"] - 5
    frame.to_csv(tmp_path / "negative.csv", index=False)
    call = ["fit", tmp_path / "negative.csv", "--out", tmp_path / "models"]
    done = run(*call)
    assert done.exit_code == 4
    assert "line 5: timerelease is before the press" in one_line(done.stderr)
    done = run(*call, *suggested(done))
    assert done.exit_code == 0, done.stderr
    assert "2 keystrokes released before they were pressed: dropped" in one_line(done.stderr)


def test_shuffled_rows_give_the_same_figures(tmp_path):
    frame = typed(0, users=(2, 10, 1), n_samples=12)
    tables = []
    for seed in (None, 1, 2):
        shuffled = frame if seed is None else frame.sample(frac=1, random_state=seed)
        shuffled.to_csv(tmp_path / "typing.csv", index=False)
        out = tmp_path / f"out{seed}"
        options = ["--detector", "manhattan", "--protocol", "chronological", "--sort"]
        done = run("evaluate", tmp_path / "typing.csv", "--out", out, *options)
        assert done.exit_code == 0, done.stderr
        tables.append((out / "tables" / "recognition.csv").read_text())
    assert tables[0] == tables[1] == tables[2]


def test_a_few_mistyped_samples_leave_a_fixed_text_fixed(tmp_path):
    """They are left out and named; the others keep a vector of all their times."""
    frame = typed(0, n_samples=10)
    odd = (frame["user"] == "bob") & (frame["session"] == 3)
    frame.loc[odd, "keyname"] = list("htradionsete")
    frame.to_csv(tmp_path / "typing.csv", index=False)
    out = tmp_path / "out"
    done = run("evaluate", tmp_path / "typing.csv", "--out", out, "--detector", "manhattan")
    assert done.exit_code == 0, done.stderr
    assert "failure to acquire: 1 of 30 samples" in one_line(done.stderr)
    failed = pd.read_csv(out / "tables" / "failures_to_acquire.csv")
    assert failed.iloc[0].tolist() == ["bob", 3, "other keys than those of the fixed text"]


def test_another_text_is_neither_accepted_nor_rejected(tmp_path):
    """All keys are known, but no two of them were typed one after the other at enrolment."""
    models = tmp_path / "models"
    verifier = Verifier.of(background())
    verifier.enrol("ann", typed(0, ("ann",)))
    verifier.save(models)
    other = typed(2, users=("ann",), n_samples=2).assign(keyname=[*"tesnoidarehh"] * 2)
    other.to_csv(tmp_path / "other.csv", index=False)
    for command in ("verify", "watch"):
        call = [command, tmp_path / "other.csv", "--models", models, "--user", "ann"]
        done = run(*call, "--json")
        assert done.exit_code == 3
        assert {row["answer"] for row in json.loads(done.stdout)} == {"unsure"}
        assert "a different text than at enrolment: 0 of its 11 pairs of keys were typed then" in done.stdout
        assert run(*call, "--min-known", 0).exit_code in (0, 1)
    done = run("identify", tmp_path / "other.csv", "--models", models)
    assert done.exit_code == 3
    assert "different text" in done.stderr
    assert "different text" in run("score", tmp_path / "other.csv", "--models", models).stderr


def test_columns_that_are_not_used_may_hold_anything(folder, tmp_path):
    FRAME.assign(remark=["1", "fine"] * (len(FRAME) // 2)).to_csv(tmp_path / "typing.csv", index=False)
    assert run("fit", tmp_path / "typing.csv", "--out", tmp_path / "models").exit_code == 0
    done = run(
        "fit", tmp_path / "typing.csv", "--out", tmp_path / "models", "--replace", "--sensors", "remark"
    )
    assert done.exit_code == 4
    assert "'remark' is not a sensor: the column does not hold numbers" in one_line(done.stderr)


def test_tables_do_not_break_words(folder, tmp_path):
    frame = FRAME.assign(user=FRAME["user"] + "_with_a_rather_long_name@example.org")
    frame.to_csv(tmp_path / "typing.csv", index=False)
    call = ["fit", str(tmp_path / "typing.csv"), "--out", str(tmp_path / "m")]
    for width in (40, 60, 100):
        done = CliRunner().invoke(app, call, env={"COLUMNS": str(width)})
        for word in ("ann_with_a_rather_long_name@example.org", "samples", "keys"):
            assert word in done.output


def test_missing_and_infinite_times(folder, tmp_path):
    frame = FRAME.astype({"timepress": object})
    for value, said in (("NaN", "is missing"), ("inf", "'inf' is infinite"), ("x", "'x' is not a number")):
        frame.loc[4, "timepress"] = value
        frame.to_csv(tmp_path / "bad.csv", index=False)
        done = run("fit", tmp_path / "bad.csv", "--out", tmp_path / "m")
        assert done.exit_code == 4
        assert f"line 6: timepress {said}" in one_line(done.stderr)


def test_numbers_of_a_user_on_the_command_line(tmp_path):
    """--user 7 is the number that the column of another file holds."""
    FRAME[FRAME["user"] == "ann"].drop(columns="user").to_csv(tmp_path / "seven.csv", index=False)
    done = run("fit", tmp_path / "seven.csv", "--out", tmp_path / "m", "--user", 7, "--json")
    assert [row["user"] for row in json.loads(done.stdout)["users"]] == ["7"]
    assert done.stderr == ""


@pytest.mark.parametrize("form", ["dates", "spaces after commas", "epoch", "list of objects"])
def test_other_files_that_need_no_options(form, tmp_path):
    """The same people are enrolled as from the plain file, to rounding."""
    frame, path = FRAME.copy(), tmp_path / "typing.csv"
    times = ["timepress", "timerelease"]
    if form == "dates":
        frame[times] = frame[times].apply(pd.to_datetime, unit="ms")
    if form == "epoch":
        frame[times] += 1.7e12
    text = frame.to_csv(index=False)
    if form == "spaces after commas":
        text = text.replace(",", ", ")
    if form == "list of objects":
        text = frame.to_json(orient="records")
    path.write_text(text)
    done = run("fit", path, "--out", tmp_path / "m", "--json")
    assert done.exit_code == 0, done.stderr
    FRAME.to_csv(path, index=False)
    plain = run("fit", path, "--out", tmp_path / "n", "--json")
    assert json.loads(plain.stdout)["users"] == json.loads(done.stdout)["users"]
    found, expected = (Verifier.load(tmp_path / name).log_likelihoods(typed(1)) for name in "mn")
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"# recorded on Monday\n" + FRAME.to_csv(index=False).encode(), "line 1: it is a comment"),
        (b"<!DOCTYPE html><html>404</html>\n", "line 1: it is a web page or XML"),
        (
            FRAME.to_csv(index=False).encode() * 2,
            "is not a number; the header is repeated",
        ),
        (b"PK\x03\x04...", "it is a spreadsheet or a zip archive"),
        (b"\x7fELF\x02\x01\x01\0\0" + b"abc" * 99, "it is not text"),
        (
            FRAME.drop(columns="timerelease").to_csv(index=False).encode(),
            "without releases there are no hold times to learn from",
        ),
        (FRAME.to_json(orient="records", lines=True).encode() + b"{oops", "cannot be read as JSON lines"),
    ],
)
def test_what_is_no_recording_is_called_by_its_name(contents, message, tmp_path):
    (tmp_path / "typing.csv").write_bytes(contents)
    done = run("fit", tmp_path / "typing.csv", "--out", tmp_path / "m")
    assert done.exit_code == 4
    assert message in one_line(done.stderr)
    assert not (tmp_path / "m").exists()


def test_samples_do_not_run_together(folder, tmp_path):
    """A column that is likely to be the session is not passed over where sessions are not required."""
    later = typed(1, n_samples=2).rename(columns={"user": "subject", "session": "trial"})
    later.to_csv(tmp_path / "later.csv", index=False)
    call = ["identify", tmp_path / "later.csv", "--models", folder / "models", "--json"]
    done = run(*call)
    assert done.exit_code == 4
    named = run(*call, *suggested(done))
    assert named.exit_code == 0, named.stderr
    assert {(row["user"], row["session"]) for row in json.loads(named.stdout)} == {
        (user, session) for user in ("ann", "bob", "eve") for session in ("0", "1")
    }


def test_many_samples_with_too_little_are_not_listed_one_by_one(folder, tmp_path):
    typed(1, n_samples=4, n_keys=3).to_csv(tmp_path / "short.csv", index=False)
    done = run("identify", tmp_path / "short.csv", "--models", folder / "models")
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 6
    assert "and 7 more" in done.stderr


def test_a_file_that_was_appended_to_itself(tmp_path):
    """Sorting would put every keystroke beside its copy."""
    pd.concat([FRAME, FRAME]).to_csv(tmp_path / "twice.csv", index=False)
    call = ["fit", tmp_path / "twice.csv", "--out", tmp_path / "m", "--json"]
    first = run(*call)
    assert suggested(first) == ["--sort"]
    second = run(*call, "--sort")
    assert second.exit_code == 4
    assert "so are 215 others, which were copied" in one_line(second.stderr)
    third = run(*call, "--sort", *suggested(second))
    assert third.exit_code == 0, third.stderr
    FRAME.to_csv(tmp_path / "once.csv", index=False)
    once = run("fit", tmp_path / "once.csv", "--out", tmp_path / "n", "--json")
    assert json.loads(third.stdout)["users"] == json.loads(once.stdout)["users"]


def test_sessions_of_several_people_without_names(folder, tmp_path):
    typed(1, n_samples=2).drop(columns="user").to_csv(tmp_path / "several.csv", index=False)
    done = run("identify", tmp_path / "several.csv", "--models", folder / "models")
    assert done.exit_code == 4
    assert "do sessions of several people have the same number?" in one_line(done.stderr)
    assert "--sort" not in done.stderr
