"""Users who are likely one person, in an evaluation."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab.own_recordings.report import twice_facts, twice_paragraphs, without_twice
from tests.decisions.test_known_twice import TWICE

pytestmark = pytest.mark.usefixtures("sketched")

PAIRS = pd.DataFrame({"user": [1, 2], "other": [3, 4], "alike": [9.0, 8.0], "minutes": [4.0, None]})


def test_only_their_comparisons_are_left_out():
    names = [str(n) for n in range(1, 6)]
    rows = [(user, reference) for user in names for reference in names]
    users, references = zip(*rows, strict=True)
    table = pa.table(
        {"user": pa.array(users).dictionary_encode(), "reference": pa.array(references).dictionary_encode()}
    )
    kept = without_twice(table, {"twice": twice_facts(PAIRS, counted=False)}).to_pandas()
    left = set(rows) - set(map(tuple, kept.astype(str).values.tolist()))
    assert left == {("1", "3"), ("3", "1"), ("2", "4"), ("4", "2")}
    for facts in ({}, {"twice": twice_facts(PAIRS, counted=True)}, {"twice": twice_facts(PAIRS[:0], False)}):
        assert without_twice(table, facts).equals(table)


def test_the_report_says_so():
    facts = {"twice": twice_facts(PAIRS, counted=False)}
    (text,) = twice_paragraphs(json.loads(json.dumps(facts)))
    assert "users 1 and 3: likely the same person, recorded 4 minutes apart; users 2 and 4" in text
    assert "do not count as impostors" in text
    assert twice_paragraphs({}) == []


def test_evaluate_names_them_and_leaves_them_out(tmp_path):
    file = tmp_path / "typing.csv"
    TWICE.to_csv(file, index=False)
    impostors = {}
    for option in ((), ("--twice-as-impostors",)):
        out = tmp_path / f"out{len(option)}"
        call = ["evaluate", str(file), "--out", str(out), "--detector", "manhattan", "--jobs", "1"]
        done = CliRunner().invoke(app, [*call, "--protocol", "enrolment", "--enrol", "3", *option])
        assert done.exit_code == 0, done.output
        assert "users 3 and 1003: likely the same person" in done.output
        run = json.loads((out / "run.json").read_text())
        named = sorted((one["user"], one["other"]) for one in run["twice"]["pairs"])
        assert named == [("3", "1003"), ("7", "1007")]
        impostors[option] = pd.read_csv(out / "tables" / "recognition.csv")
        # Every score is in the file, whether it counts or not.
        scores = pd.read_parquet(out / "scores.parquet")
        assert ((scores["user"] == "3") & (scores["reference"] == "1003")).any()
    counted, left_out = impostors[("--twice-as-impostors",)], impostors[()]
    assert (left_out["eer_mean"] < counted["eer_mean"]).any()
