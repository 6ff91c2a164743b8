"""The recognition study: what it writes, that it goes on where it stopped, and that it can be rebuilt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists, save_recordings
from keydyn.detectors import Detector, register
from keydyn.detectors.detector import _DETECTORS
from keydyn.evaluation.protocols import LeaveOneOut
from keydyn.keystrokes import Samples
from keydyn.studies.dataset_rows import Row
from keydyn.studies.saved_parts import Parts
from keydyn.studies.score_datasets import rank_rows, score_rows
from keydyn.studies.score_files import scored_of

runner = CliRunner()


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


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


def test_the_run_is_told(study):
    run = json.loads((study / "run.json").read_text())
    assert run["study"] == "recognition"
    assert run["seed"] == 0
    assert "min" not in run["version"]
    assert run["detectors"]["simulated"]["pohmm"]["model"]["density_floor"] == 1e-5
    assert run["protocols"]["simulated"]["citation"].startswith("J. V. Monaco")


def test_rebuilt_without_fitting_tables_have_the_same_bytes(study, monkeypatch):
    before = table_bytes(study)
    (study / "tables" / "recognition.csv").unlink()
    monkeypatch.setattr("keydyn.detectors.population.fit_templates", None)
    result = runner.invoke(app, ["report", str(study)])
    assert result.exit_code == 0, result.output
    assert table_bytes(study) == before


def test_a_folder_without_a_study_is_told(tmp_path):
    result = runner.invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "there is no run.json" in result.stderr


class Counting(Detector):
    """Counts its fits; the score is the mean interval's closeness. Fails when told to."""

    name = "counting"
    title = "Counting"
    fits = 0
    fails = False

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def fit(self, samples):
        type(self).fits += 1
        if self.fails:
            raise ValueError("told to fail")
        self.mean_ = samples.vectors.mean()
        return self

    def score(self, samples):
        return -(np.abs(samples.vectors.mean(axis=1) - self.mean_) ** self.power)


@pytest.fixture
def counting():
    register(Counting)
    Counting.fits, Counting.fails = 0, False
    yield Counting
    del _DETECTORS["counting"]


@pytest.fixture(scope="module")
def row():
    samples = Samples.of(make_typists(4, 3, random_state=0))
    return Row("typed", samples, LeaveOneOut(), {"typed.csv": "0123"}, "ours")


def test_finished_parts_are_not_made_again(row, counting, tmp_path):
    first = score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 12
    again = score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 12
    assert again.equals(first)
    score_rows([row], [Counting()], Parts(tmp_path, fresh=True))
    assert counting.fits == 24


@pytest.mark.parametrize("changed", ["data", "protocol", "setting"])
def test_other_inputs_are_other_parts(row, counting, tmp_path, changed):
    score_rows([row], [Counting()], Parts(tmp_path))
    other, detector = row, Counting()
    if changed == "data":
        other = Row(row.name, row.samples, row.protocol, {"typed.csv": "4567"}, "ours")
    elif changed == "protocol":
        from keydyn.evaluation.protocols import Chronological

        other = Row(row.name, row.samples, Chronological(), row.checksums, "ours")
    else:
        detector = Counting(power=2.0)
    score_rows([other], [detector], Parts(tmp_path))
    assert counting.fits > 12


def test_a_crash_midway_leaves_what_was_finished_and_nothing_half(row, counting, tmp_path):
    score_rows([row], ["manhattan"], Parts(tmp_path))
    counting.fails = True
    with pytest.raises(ValueError, match="told to fail"):
        score_rows([row], ["manhattan", Counting()], Parts(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["typed-manhattan.parquet"]
    counting.fails = False
    whole = scored_of(score_rows([row], ["manhattan", Counting()], Parts(tmp_path)))
    assert list(whole) == [("typed", "manhattan"), ("typed", "counting")]


def test_a_spoilt_part_is_made_anew(row, counting, tmp_path):
    score_rows([row], [Counting()], Parts(tmp_path))
    path = tmp_path / "typed-counting.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 24
    # Spoilt in the middle: it still tells what it was made from.
    path.write_bytes(whole[:4] + bytes(len(whole) // 4) + whole[4 + len(whole) // 4 :])
    score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 36


def test_progress_ends_at_the_whole(row, tmp_path):
    told = []
    score_rows(
        [row], ["manhattan", "hmm"], Parts(tmp_path), show_progress=lambda what, share: told.append(share)
    )
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_ranks_need_a_detector_of_events(row, tmp_path):
    with pytest.raises(ValueError, match="manhattan cannot score single events"):
        rank_rows([row], ["manhattan"], Parts(tmp_path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--detector", "manhatan"], "there is no detector 'manhatan'"),
        (["--dataset", "fabel"], "there is no dataset 'fabel'"),
        (["--dataset", "fable", "--data", "nowhere"], "data names nowhere, which is no folder"),
    ],
)
def test_a_wrong_name_is_told_before_any_work(options, message, tmp_path, monkeypatch):
    monkeypatch.delenv("KEYDYN_DATA", raising=False)
    monkeypatch.setenv("KEYDYN_CACHE", str(tmp_path))
    result = runner.invoke(app, ["study", "recognition", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Four typists; the last has one sample only, and one sample has a single key."""
    folder = tmp_path_factory.mktemp("evaluate")
    frame = make_typists(5, 5, text="copied", n_keys=40, random_state=2)
    frame = frame[(frame["user"] < 4) | (frame["session"] == 0)]
    alone = (frame["user"] == 1) & (frame["session"] == 4)
    frame = frame[~alone | ~alone.duplicated()].reset_index(drop=True)
    save_recordings(frame, folder / "typing.csv")
    return folder


@pytest.fixture(scope="module")
def evaluated(recorded):
    out = recorded / "out"
    options = ["--detector", "manhattan-scaled", "--detector", "hmm", "--out", str(out), "--jobs", "1"]
    result = runner.invoke(app, ["evaluate", str(recorded / "typing.csv"), *options])
    assert result.exit_code == 0, result.output
    assert "failure to enrol: 1 of 5 users" in result.stderr
    return out


def test_tables_are_labelled_closed_and_open(evaluated):
    frame = pd.read_csv(evaluated / "tables" / "recognition.csv")
    assert frame["dataset"].unique().tolist() == ["typing", "typing, open set"]
    assert pd.read_csv(evaluated / "tables" / "continuous.csv")["detector"].tolist() == ["hmm"]


def test_who_cannot_take_part_is_named(evaluated):
    failed = pd.read_csv(evaluated / "tables" / "failures_to_enrol.csv")
    assert failed["user"].tolist() == [4]
    unusable = pd.read_csv(evaluated / "tables" / "failures_to_acquire.csv")
    assert unusable[["user", "session"]].to_numpy().tolist() == [[1, 4]]
    assert "4" not in set(pd.read_parquet(evaluated / "scores.parquet")["user"])


def test_an_evaluation_can_be_rebuilt(evaluated):
    before = table_bytes(evaluated)
    result = runner.invoke(app, ["report", str(evaluated)])
    assert result.exit_code == 0, result.output
    assert table_bytes(evaluated) == before


def test_an_evaluation_of_one_user_is_refused(recorded, tmp_path):
    one = pd.read_csv(recorded / "typing.csv")
    one[one["user"] == 0].to_csv(tmp_path / "one.csv", index=False)
    result = runner.invoke(app, ["evaluate", str(tmp_path / "one.csv"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "needs 2 users or more" in result.stderr


def test_an_unknown_protocol_is_refused(recorded, tmp_path):
    options = ["--protocol", "mine", "--out", str(tmp_path / "out")]
    result = runner.invoke(app, ["evaluate", str(recorded / "typing.csv"), *options])
    assert result.exit_code == 2
    assert "there is no protocol 'mine'; there are leave-one-out" in result.stderr
