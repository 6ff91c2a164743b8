"""The study of relatives: what it writes, that it resumes, and its figures on real recordings."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.protocols.running import enrolments, ranks_of, scores_and_ranks, scores_of
from keydyn.keystrokes import Samples
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.frame.study_data import FirstFolds, Row
from keydyn.lab.relatives.measurements import DETECTORS, FOLDS, run_relatives

pytestmark = pytest.mark.usefixtures("sketched", "sketched_set_up")

runner = CliRunner()

USERS = 4


@pytest.fixture(scope="module")
def samples() -> Samples:
    return Samples.of(make_typists(USERS, 4, random_state=3))


@pytest.fixture(scope="module")
def row(samples) -> Row:
    return Row("simulated", samples, MonacoTappert(), {"simulated": "seed 3"}, "ours")


@pytest.fixture(scope="module")
def study(samples, tmp_path_factory):
    """The command on a few simulated typists."""
    out = tmp_path_factory.mktemp("relatives")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keydyn.lab.frame.study_data.TYPISTS", USERS)
        patch.setattr("keydyn.lab.frame.study_data.REPETITIONS", 4)
        options = ["--dataset", "simulated", "--out", str(out), "--jobs", "1"]
        result = runner.invoke(app, ["study", "relatives", *options])
        assert result.exit_code == 0, result.output
    return out


def test_everything_is_there(study):
    for name in ("scores.parquet", "ranks.parquet", "lost_context.parquet", "run.json", "report.html"):
        assert (study / name).stat().st_size > 0, name
    for ending in ("pdf", "png"):
        assert (study / "figures" / f"lost_context.{ending}").stat().st_size > 0
    frame = pd.read_csv(study / "tables" / "relatives.csv")
    parts = [f"{metric}_{part}" for metric in ("acc", "eer", "amrt") for part in ("mean", "std", "p", "best")]
    assert list(frame) == ["dataset", "detector", *parts]
    assert frame["detector"].tolist() == list(DETECTORS)
    run = json.loads((study / "run.json").read_text())
    assert run["study"] == "relatives"
    assert set(run["detectors"]["simulated"]) == set(DETECTORS)


def test_the_lost_contexts_are_all_there(study):
    frame = pd.read_csv(study / "tables" / "relatives_lost_context.csv")
    assert len(frame) == 3 * 6 * 5, "situations, models and shares"
    assert set(frame["share"]) == {0.0, 0.25, 0.5, 0.75, 1.0}
    whole = frame[frame["share"] == 0.0].groupby("detector")[["acc", "eer", "log_likelihood"]].nunique()
    assert (whole == 1).all().all(), "nothing is lost yet in any situation"
    same = frame[~frame["touched"]].groupby(["detector", "situation"])["log_likelihood"].nunique()
    assert (same == 1).all()


def test_the_pohmm_meets_the_hmm_where_no_name_was_seen_in_estimation(study):
    frame = pd.read_parquet(study / "lost_context.parquet")
    frame = frame[frame["share"] == 1.0].sort_values("user")
    for situation in ("estimation", "unseen"):
        own = frame[frame["situation"] == situation]
        for figure in ("log_likelihood", "acc", "eer"):
            pohmm, hmm = (own[own["detector"] == name][figure].to_numpy() for name in ("pohmm", "hmm"))
            assert len(pohmm) > 0
            np.testing.assert_allclose(pohmm, hmm, rtol=1e-12)


def test_rebuilt_without_fitting_tables_have_the_same_bytes(study, rebuilt_as_before):
    rebuilt_as_before(study, "relatives")


@pytest.mark.slow
def test_it_resumes_where_it_stopped(row, made, tmp_path):
    progress: list[float] = []
    first = run_relatives([row], 0, Parts(tmp_path, False, 1, lambda _, share: progress.append(share)))
    assert progress == sorted(progress)
    assert len(progress) == 5 + 6
    gone = sorted(tmp_path.iterdir())[0]
    gone.unlink()
    made.clear()
    again = run_relatives([row], 0, Parts(tmp_path, n_jobs=1))
    assert gone.stem in made
    assert len(made) <= 2, "scores and ranks are made together, nothing else again"
    assert again[0].equals(first[0])
    assert again[1].equals(first[1])
    pd.testing.assert_frame_equal(again[2], first[2])
    made.clear()
    run_relatives([row], 1, Parts(tmp_path, n_jobs=1))
    assert len(made) == 6, "another seed loses other names, and scores are the same"


@pytest.mark.parametrize("detector", DETECTORS)
def test_scores_and_ranks_in_one_pass_are_those_of_two(row, detector):
    enrolled = enrolments(FirstFolds(row.protocol, 1), detector, row.samples)
    scores, ranks = scores_and_ranks(row.protocol, enrolled, row.samples)
    # The same sums in another order: equal but for rounding.
    np.testing.assert_allclose(scores.raw, scores_of(row.protocol, enrolled, row.samples).raw, rtol=1e-12)
    np.testing.assert_array_equal(ranks.ranks, ranks_of(enrolled, row.samples).ranks)


def test_a_row_without_text_has_no_lost_contexts(samples, tmp_path):
    row = Row("typed", samples, MonacoTappert(), {}, "ours")
    scores, ranks, losses = run_relatives([row], 0, Parts(tmp_path, n_jobs=1))
    assert scores.num_rows
    assert ranks.num_rows
    assert len(losses) == 0


@pytest.mark.slow
def test_the_whole_study_on_real_recordings(recordings, tmp_path):
    """The published figures of HMM and POHMM come out, and the POHMM meets the HMM without names."""
    options = ["--data", str(recordings), "--out", str(tmp_path), "--jobs", "2"]
    result = runner.invoke(app, ["study", "relatives", *options])
    assert result.exit_code == 0, result.output
    from keydyn.lab.frame.published import ACCURACY, DATASETS, EQUAL_ERROR_RATE

    frame = pd.read_csv(tmp_path / "tables" / "relatives.csv").set_index(["dataset", "detector"])
    assert len(frame) == len(DATASETS) * len(DETECTORS)
    for dataset in DATASETS:
        for detector in ("hmm", "pohmm"):
            measured = frame.loc[(dataset, detector)]
            assert measured["acc_mean"] == pytest.approx(ACCURACY[dataset, detector][0], abs=0.01)
            assert measured["eer_mean"] == pytest.approx(EQUAL_ERROR_RATE[dataset, detector][0], abs=0.01)
    lost = pd.read_csv(tmp_path / "tables" / "relatives_lost_context.csv")
    assert set(lost["dataset"]) == {"fable", "essay"} <= set(FOLDS)
    of = lost[lost["share"] == 1.0].set_index(["situation", "dataset", "detector"])["log_likelihood"]
    for situation in ("estimation", "unseen"):
        for dataset in ("fable", "essay"):
            assert of[situation, dataset, "pohmm"] == pytest.approx(of[situation, dataset, "hmm"], rel=1e-9)
