"""The recognition study: what it writes, that wrong names are reported, and that it can be rebuilt."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app

pytestmark = pytest.mark.usefixtures("sketched", "sketched_set_up")

runner = CliRunner()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The study on simulated typists, with two detectors."""
    out = tmp_path_factory.mktemp("recognition")
    options = ["--dataset", "simulated", "--detector", "manhattan-scaled", "--detector", "pohmm"]
    result = runner.invoke(app, ["study", "recognition", *options, "--out", str(out), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    return out


def test_everything_is_there(study):
    for name in ("scores.parquet", "run.json", "report.html", "tables/recognition.csv", "figures/roc.pdf"):
        assert (study / name).stat().st_size > 0, name
    frame = pd.read_csv(study / "tables" / "recognition.csv")
    means = [f"{metric}_{part}" for metric in ("acc", "eer") for part in ("mean", "std")]
    assert list(frame) == ["dataset", "detector", *means, *(f"published_{name}" for name in means)]
    assert frame["detector"].tolist() == ["manhattan-scaled", "pohmm"]
    assert frame["published_acc_mean"].isna().all(), "nothing was published about simulated typists"


def test_every_score_is_kept(study):
    scores = pd.read_parquet(study / "scores.parquet")
    # 20 typists, 10 samples each, against 20 templates, by two detectors
    assert len(scores) == 20 * 10 * 20 * 2
    assert set(scores["protocol"]) == {"published"}


def test_the_run_is_reported(study):
    run = json.loads((study / "run.json").read_text())
    assert run["study"] == "recognition"
    assert run["seed"] == 0
    assert "min" not in run["version"]
    assert run["detectors"]["simulated"]["pohmm"]["model"]["density_floor"] == 1e-5
    assert run["protocols"]["simulated"]["citation"].startswith("J. V. Monaco")


def test_rebuilt_without_fitting_tables_have_the_same_bytes(study, rebuilt_as_before):
    rebuilt_as_before(study, "recognition")


def test_a_folder_without_a_study_is_reported(tmp_path):
    result = runner.invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 4
    assert "there is no run.json" in result.stderr


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--detector", "manhatan"], "there is no detector 'manhatan'", 2),
        (["--dataset", "fabel"], "there is no dataset 'fabel'", 2),
        (["--dataset", "fable", "--data", "nowhere"], "data names nowhere, which is not a folder", 4),
    ],
)
def test_a_wrong_name_is_reported_before_any_work(options, message, code, tmp_path):
    result = runner.invoke(app, ["study", "recognition", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == code
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", [["simulated"], []])
def test_one_dataset_alone_cannot_choose_settings(names, tmp_path, monkeypatch):
    """Reported before any work: it took minutes, and then ended with a message of NumPy's."""
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path))
    options = [argument for name in names for argument in ("--dataset", name)]
    result = runner.invoke(app, ["study", "recommended", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 4
    assert "two or more are needed; there is simulated" in result.stderr
    assert not (tmp_path / "out").exists()
