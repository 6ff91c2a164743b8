"""A study is one object: its command, its files and its place on the results page follow from it."""

from __future__ import annotations

import inspect
import json
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab import run_study
from keydyn.lab.frame.chosen import SeedOption
from keydyn.lab.frame.study import LabStudy, Plan, ResultsPage, study
from keydyn.lab.frame.tables import plain_table
from keydyn.lab.run_study import STUDIES, RunOptions, command_of

pytestmark = pytest.mark.usefixtures("sketched")

runner = CliRunner()


def made_up(name="made-up", leaves=("numbers",), page=None) -> LabStudy:
    """A study that writes one table, of which its option is the number."""

    def write(outputs, result, facts):
        table = outputs.table(plain_table("numbers", "Numbers", "", pd.DataFrame({"number": [result]})))
        outputs.report("Numbers", ["How numbers came about."], [], facts)
        return [table]

    report = SimpleNamespace(write=write, **({} if page is None else {"PAGE": page}))

    @study(name, report=lambda: report, tables=leaves)
    def plan(number: int = 3, seed: SeedOption = 0) -> Plan:
        """Is a number a number?

        Example: `keydyn study made-up --number 4`
        """
        return Plan(lambda parts: number, lambda _: {}, ["only an example"])

    return plan


@pytest.fixture
def command(monkeypatch):
    """The made-up study as a command, beside the others."""
    import typer

    one = made_up()
    monkeypatch.setitem(STUDIES, one.name, one)
    alone = typer.Typer()
    alone.command()(command_of(one))
    return alone


def test_a_new_study_is_declared_in_one_place(command, tmp_path):
    """Its help, options, warnings, files and run.json come from the object alone."""
    shown = runner.invoke(command, ["--help"], env={"COLUMNS": "120"}).output
    assert "Is a number a number?" in shown
    assert "keydyn study made-up --number 4" in shown
    done = runner.invoke(command, ["--number", "4", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "only an example" in done.stderr
    assert (tmp_path / "tables" / "numbers.csv").read_text().split() == ["number", "4"]
    assert (tmp_path / "run.json").exists()
    # What it left is removed by any study that runs in the same folder.
    (tmp_path / "tables" / "mine.csv").write_text("kept")
    options = ["--samples", "2", "--longest", "100", "--jobs", "1", "--out", str(tmp_path)]
    assert runner.invoke(app, ["study", "simulation", *options]).exit_code == 0
    assert not (tmp_path / "tables" / "numbers.csv").exists()
    assert (tmp_path / "tables" / "mine.csv").read_text() == "kept"


def test_options_of_the_run_stand_around_jobs_and_seed():
    """As in every study: --out, --jobs, --engine, --seed, --fresh, --export, --json, --quiet."""
    assert list(inspect.signature(command_of(made_up())).parameters) == [
        *("number", "out", "jobs", "engine", "seed", "fresh", "export", "as_json", "quiet")
    ]


def test_a_file_that_is_not_declared_is_refused(tmp_path):
    """It would be left behind by the next run."""
    with pytest.raises(ValueError, match=r"does not declare tables/numbers\.csv"):
        run_study.run_study(made_up(leaves=("others",)), {}, RunOptions(tmp_path))
    assert not (tmp_path / "run.json").exists()


def page_with(*tables) -> ResultsPage:
    """A page whose answer is the number in the first row of its first table."""
    return ResultsPage(
        "Numbers",
        "Which number is it?",
        lambda found: f"It is {found['numbers']['number'][0]}.",
        ("numbers",),
        dict.fromkeys(tables, "Read it."),
    )


def test_the_results_page_shows_only_what_the_study_leaves():
    with pytest.raises(ValueError, match="made-up leaves no figures_of_speech"):
        _ = made_up(page=page_with("numbers", "figures_of_speech")).page


def test_a_report_begins_with_the_question_and_the_answer(tmp_path):
    one = made_up(page=page_with("numbers"))
    run_study.run_study(one, {"number": 7}, RunOptions(tmp_path))
    report = (tmp_path / "report.html").read_text()
    assert report.index("Which number is it?") < report.index("It is 7.") < report.index("How numbers came")


def test_run_json_says_whether_the_study_was_resumed(tmp_path):
    for resumed in (False, True):
        run_study.run_study(made_up(), {}, RunOptions(tmp_path))
        assert json.loads((tmp_path / "run.json").read_text()).get("resumed", False) == resumed
        (tmp_path / "parts").mkdir(exist_ok=True)
        (tmp_path / "parts" / "one.parquet").touch()


def test_study_all_runs_the_studies_of_the_paper(monkeypatch, tmp_path):
    """Each with the options that it takes, into a folder of its own."""
    calls = []
    monkeypatch.setattr(run_study, "run_study", lambda *arguments: calls.append(arguments))
    done = runner.invoke(app, ["study", "all", "--data", "here", "--out", str(tmp_path), "--seed", "5"])
    assert done.exit_code == 0, done.output
    assert [one.name for one, *_ in calls] == ["recognition", "continuous", "simulation", "goodness-of-fit"]
    for one, options, run in calls:
        assert options["seed"] == 5
        assert ("data" in options) == (one.name != "simulation")
        assert run == RunOptions(tmp_path / one.name)


def test_every_study_is_a_command_with_help_and_an_example():
    listed = runner.invoke(app, ["study", "--help"]).output
    for name, one in STUDIES.items():
        assert ("evaluate" in name) != one.subcommand
        if one.subcommand:
            assert name in listed
            assert f"keydyn study {name}" in runner.invoke(app, ["study", name, "--help"]).output
