"""The studies of fit as commands: what they write, and that they resume where they stopped."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab.simulation import report as simulation_report

pytestmark = pytest.mark.usefixtures("sketched", "sketched_set_up")

runner = CliRunner()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Ten samples of each of two lengths."""
    out = tmp_path_factory.mktemp("simulation")
    options = ["--samples", "10", "--longest", "320", "--out", str(out), "--jobs", "1"]
    result = runner.invoke(app, ["study", "simulation", *options])
    assert result.exit_code == 0, result.output
    return out, options


def test_the_simulation_study_writes_all_of_it(simulated):
    out, _ = simulated
    for name in (
        "report.html",
        "run.json",
        "tables/errors.csv",
        "figures/simulation.pdf",
        "figures/states.png",
    ):
        assert (out / name).stat().st_size > 0, name
    table = pd.read_csv(out / "tables" / "simulation.csv")
    assert table["scenario"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    accuracy = pd.read_csv(out / "tables" / "accuracy.csv")
    assert accuracy["n"].tolist() == [100, 316] * 4
    assert json.loads((out / "run.json").read_text())["samples"] == 10


def test_finished_pieces_are_not_fitted_again(simulated, monkeypatch):
    out, options = simulated
    before = (out / "tables" / "simulation.csv").read_bytes()

    def never(**piece):
        raise AssertionError("fitted again")

    monkeypatch.setattr(simulation_report, "fit_batch", never)
    result = runner.invoke(app, ["study", "simulation", *options])
    assert result.exit_code == 0, result.output
    assert (out / "tables" / "simulation.csv").read_bytes() == before


def test_an_unknown_truth_is_reported(tmp_path):
    result = runner.invoke(app, ["study", "simulation", "--truth", "mine", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "there is no true model 'mine'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_goodness_of_fit_on_simulated_typists(tmp_path):
    options = ["--dataset", "simulated", "--surrogates", "19", "--out", str(tmp_path), "--jobs", "1"]
    result = runner.invoke(app, ["study", "goodness-of-fit", *options])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "tables" / "goodness_of_fit.csv")
    fixed = ["dataset", "model", "settings", "rejected", "users", "surrogates", "published_rejected"]
    assert list(table) == fixed
    assert set(table["settings"]) == {"published", "recommended"}
    assert (table["users"] == 10).all()
    assert table["published_rejected"].isna().all()
    tests = pd.read_parquet(tmp_path / "tests.parquet")
    # The share again, from the single tests.
    rejected = tests[(tests["model"] == "hmm") & (tests["settings"] == "published")]["p_value"] <= 0.05
    row = table[(table["model"] == "hmm") & (table["settings"] == "published")]
    assert row["rejected"].item() == pytest.approx(rejected.mean(), abs=1e-6)


def test_a_text_that_is_none_is_reported(tmp_path):
    result = runner.invoke(app, ["study", "goodness-of-fit", "--dataset", "keypad", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "there is no dataset 'keypad'; there are fable, essay, simulated" in result.stderr
