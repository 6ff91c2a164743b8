"""The study on simulated typists: what it writes, that it resumes, and that it can be built again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab.frame import study_data
from keydyn.lab.open_questions import state_scores, text_recovery, trained_scores
from keydyn.lab.open_questions.report import QUESTIONS
from keydyn.lab.run_study import STUDIES

runner = CliRunner()
STUDY = STUDIES["open-questions"]


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """A few people, who type a password."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_data, "TYPISTS", 6)
        patched.setattr(text_recovery, "PEOPLE", 2)
        patched.setattr(trained_scores, "STRENGTHS", trained_scores.STRENGTHS[:1])
        patched.setattr(trained_scores, "MACHINES", trained_scores.MACHINES[::4])
        patched.setattr(state_scores, "STATES", (1, 2, 3))
        folder = tmp_path_factory.mktemp("open-questions")
        yield ["study", "open-questions", "--dataset", "simulated", "--out", str(folder), "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return Path(arguments[arguments.index("--out") + 1])


def test_every_question_has_an_answer_its_tables_and_its_figures(folder):
    report = (folder / "report.html").read_text(encoding="utf-8")
    values = {path.stem: pd.read_csv(path) for path in (folder / "tables").glob("*.csv")}
    for question in QUESTIONS:
        assert question.title in report
        assert next(iter(question.tables)) in values
        assert len(question.answered(values)) == 2
        for name in question.figures:
            assert (folder / "figures" / f"{name}.png").stat().st_size > 5000
    run = json.loads((folder / "run.json").read_text())
    assert set(run["questions"]) == {question.title for question in QUESTIONS}


def test_the_study_declares_what_its_questions_leave():
    """Names are listed once more where the command is declared, which must not import what measures."""
    for kind in ("tables", "figures", "frames"):
        named = [name for question in QUESTIONS for name in getattr(question, kind)]
        assert set(named) <= set(getattr(STUDY, kind))
        # Two questions may be asked of the same measurements.
        assert kind == "frames" or len(named) == len(set(named))


def test_text_tells_nothing_where_all_type_the_same(folder):
    table = pd.read_csv(folder / "tables" / "joint_likelihood.csv")
    text = table[table["evidence"] == "P(Ω)"]
    assert text["acc"].tolist() == pytest.approx([1 / 6] * len(text), abs=1e-6)


def test_rebuilt_tables_have_the_same_bytes(folder, rebuilt_as_before):
    rebuilt_as_before(folder, "keys_from_timings")


def test_finished_parts_are_not_made_again(folder, arguments, made):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert made == []
