"""keydyn watch -: a session being typed is answered line by line, with the answers for a whole file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.decisions import Verifier
from tests.decisions.typed_samples import background, typed
from tests.waiting import PATIENCE


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "140"}, input=stdin)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    verifier = Verifier.of(background())
    verifier.enrol_many({user: typed(0, (user,)) for user in ("ann", "bob", "eve")})
    verifier.save(folder / "models")
    return folder / "models"


@pytest.mark.parametrize("user", ["ann", "eve"])
def test_a_stream_ends_as_a_file_does(models, tmp_path, user):
    """Only the first key can differ: of a session that has just begun, its usual interval is not known."""
    frame = typed(2, n_samples=2)
    frame.to_csv(tmp_path / "session.csv", index=False)
    call = ["--models", models, "--user", user, "--json"]
    whole = run("watch", tmp_path / "session.csv", *call)
    stream = run("watch", "-", *call, stdin=(tmp_path / "session.csv").read_text())
    answers = [json.loads(line) for line in stream.stdout.splitlines()]
    assert [row["key"] for row in answers] == [*range(1, 13)] * 6
    assert [row["keyname"] for row in answers] == frame["keyname"].tolist()
    last = answers[11::12]
    expected = json.loads(whole.stdout)
    assert [row["user"] for row in last] == [row["user"] for row in expected]
    assert [row["answer"] for row in last] == [row["answer"] for row in expected]
    assert stream.exit_code == whole.exit_code


def test_too_little_is_unsure_until_it_is_enough(models):
    text = typed(2, users=("ann",), n_samples=1).drop(columns=["user", "session"]).to_csv(index=False)
    done = run("watch", "-", "--models", models, "--user", "ann", "--json", stdin=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["answer"] for row in answers] == ["unsure"] * 5 + ["accept"] * 7
    assert {row["user"] for row in answers} == {None}
    assert done.exit_code == 0
    shown = run("watch", "-", "--models", models, "--user", "ann", stdin=text).stdout.splitlines()
    assert len(shown) == 12
    assert shown[0].endswith("unsure")
    assert shown[-1].endswith("accepted")


def test_an_answer_comes_before_the_next_key(models):
    """A line is written, its answer is read, and only then is the next one written."""
    text = typed(2, users=("ann",), n_samples=1).drop(columns=["user", "session"]).to_csv(index=False)
    header, *rows = text.splitlines(keepends=True)
    command = ["watch", "-", "--models", str(models), "--user", "ann", "--json", "--quiet"]
    code = "from keydyn.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watching:
        watching.stdin.write(header)
        for n, row in enumerate(rows):
            watching.stdin.write(row)
            watching.stdin.flush()
            assert json.loads(watching.stdout.readline())["key"] == n + 1
        watching.stdin.close()
        assert watching.wait(timeout=PATIENCE) == 0


def test_json_lines_and_other_forms(models):
    frame = typed(2, users=("ann",), n_samples=1)
    call = ["watch", "-", "--models", models, "--user", "ann", "--json"]
    expected = run(*call, stdin=frame.to_csv(index=False)).stdout
    assert run(*call, stdin=frame.to_json(orient="records", lines=True)).stdout == expected
    tabs = frame.to_csv(index=False, sep="\t")
    assert run(*call, "--separator", r"\t", stdin=tabs).stdout == expected
    bare = frame.to_csv(index=False, header=False)
    assert run(*call, "--header", ",".join(frame.columns), stdin=bare).stdout == expected


def test_what_is_wrong_names_the_line_of_the_stream(models):
    rows = typed(2, users=("ann",), n_samples=1).to_csv(index=False).splitlines(keepends=True)
    rows[5] = rows[5].replace("ann", '"an\nn"').rsplit(",", 2)[0] + ",x,y\n"
    call = ["watch", "-", "--models", models, "--user", "ann"]
    done = run(*call, stdin="".join(rows))
    assert done.exit_code == 4
    assert "line 6: timepress 'x' is not a number" in done.stderr.replace("\n", " ")
    empty = run(*call, stdin=rows[0])
    assert empty.exit_code == 4
    assert "ended before the first keystroke" in empty.stderr
    assert run(*call, "--sort", stdin="").exit_code == 2


def test_a_stream_that_goes_back_in_time(models):
    text = "keyname,timepress,timerelease\na,500,600\nb,300,400\n"
    done = run("watch", "-", "--models", models, "--user", "ann", stdin=text)
    assert done.exit_code == 4
    assert "line 3: timepress is before the press above it" in done.stderr.replace("\n", " ")
    assert "--sort" not in done.stderr
