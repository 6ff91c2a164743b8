"""The study of relatives: what it writes, that it goes on, and what must hold where contexts get lost."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.detectors import make_detector
from keydyn.evaluation.protocols import MonacoTappert
from keydyn.evaluation.running import enrolments, ranks_of, scores_and_ranks, scores_of
from keydyn.keystrokes import Samples
from keydyn.studies import relatives_measurements
from keydyn.studies.dataset_rows import Row
from keydyn.studies.lost_context import (
    UNSEEN,
    WithholdingContext,
    WithholdingPartly,
    after_lost,
    log_likelihoods,
    losing_models,
    lost_events,
    lost_types,
    with_codes,
)
from keydyn.studies.relatives_measurements import DETECTORS, FOLDS, FirstFolds, run_relatives
from keydyn.studies.relatives_report import relatives_table
from keydyn.studies.relatives_verdict import verdict
from keydyn.studies.saved_parts import Parts
from keydyn.studies.user_intervals import stream

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
        patch.setattr("keydyn.studies.dataset_rows.TYPISTS", USERS)
        patch.setattr("keydyn.studies.dataset_rows.REPETITIONS", 4)
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


def test_rebuilt_without_fitting_tables_have_the_same_bytes(study, monkeypatch):
    def tables():
        return {path.name: path.read_bytes() for path in sorted((study / "tables").iterdir())}

    before = tables()
    (study / "tables" / "relatives.csv").unlink()
    monkeypatch.setattr("keydyn.detectors.population.fit_templates", None)
    result = runner.invoke(app, ["report", str(study)])
    assert result.exit_code == 0, result.output
    assert tables() == before


def test_it_goes_on_where_it_stopped(row, tmp_path, monkeypatch):
    told: list[tuple[str, float]] = []
    first = run_relatives([row], 0, Parts(tmp_path), 1, lambda what, share: told.append((what, share)))
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert len(told) == 5 + 6
    gone = sorted(tmp_path.iterdir())[0]
    gone.unlink()
    made: list[str] = []
    kept = relatives_measurements._make

    def counted(piece):
        made.extend(piece.names)
        return kept(piece)

    monkeypatch.setattr(relatives_measurements, "_make", counted)
    again = run_relatives([row], 0, Parts(tmp_path), 1)
    assert gone.stem in made
    assert len(made) <= 2, "scores and ranks are made together, nothing else again"
    assert again[0].equals(first[0])
    assert again[1].equals(first[1])
    pd.testing.assert_frame_equal(again[2], first[2])
    made.clear()
    run_relatives([row], 1, Parts(tmp_path), 1)
    assert len(made) == 6, "another seed loses other names, and scores are the same"


@pytest.mark.parametrize("detector", DETECTORS)
def test_scores_and_ranks_in_one_pass_are_those_of_two(row, detector):
    enrolled = enrolments(FirstFolds(row.protocol, 1), detector, row.samples)
    scores, ranks = scores_and_ranks(row.protocol, enrolled, row.samples)
    # The same sums in another order: equal but for rounding.
    np.testing.assert_allclose(scores.raw, scores_of(row.protocol, enrolled, row.samples).raw, rtol=1e-12)
    np.testing.assert_array_equal(ranks.ranks, ranks_of(enrolled, row.samples).ranks)


@pytest.mark.parametrize("withholding", [WithholdingContext, WithholdingPartly])
def test_with_all_names_a_withholding_model_is_the_detector_itself(samples, withholding):
    own = samples[samples.users == samples.users[0]]
    detector = make_detector(withholding.name).fit(own)
    np.testing.assert_allclose(withholding().fit(own).score(samples), detector.score(samples), rtol=1e-9)


def test_with_no_names_the_partly_hmm_and_the_partially_hmm_are_the_hmm(samples):
    own = samples[samples.users == samples.users[0]]
    nameless = with_codes(own, np.ones(own.sequences.n_events, dtype=bool))
    hmm = make_detector("hmm").fit(own).score(own)
    np.testing.assert_allclose(WithholdingPartly().fit(nameless).score(nameless), hmm, rtol=1e-7)
    np.testing.assert_allclose(make_detector("partially-hmm").fit(nameless).score(nameless), hmm, rtol=1e-9)
    np.testing.assert_allclose(make_detector("pohmm").fit(nameless).score(nameless), hmm, rtol=1e-12)


def test_what_the_partially_hmm_says_of_labels_is_taken_off(samples):
    own = samples[samples.users == samples.users[0]][:2]
    detector = make_detector("partially-hmm").fit(own)
    model, labels = detector.model_, detector.given(own)["labels"]
    # ln P(labels) by the forward algorithm over the labels alone.
    expected = []
    for first, last in zip(own.sequences.offsets[:-1], own.sequences.offsets[1:], strict=True):
        alpha, total = model.startprob_, 0.0
        for n in range(first, last):
            alpha = alpha if n == first else alpha @ model.transmat_
            right = model.state_labels_ == labels[n]
            alpha = alpha * np.where(right, model.p_true_, 1.0 - model.p_true_)
            total += np.log(alpha.sum())
            alpha = alpha / alpha.sum()
        expected.append(total)
    np.testing.assert_allclose(detector.score(own) - log_likelihoods(detector, own), expected, rtol=1e-9)


def test_which_events_lose_their_names(samples):
    sequences = samples.sequences
    masks = [lost_events(1000, share, stream(0, "x")) for share in (0.0, 0.25, 0.5, 1.0)]
    assert [mask.sum() for mask in masks] == [0, 250, 500, 1000]
    assert all((small <= large).all() for small, large in pairwise(masks))
    assert (lost_events(1000, 0.5, stream(1, "x")) != masks[2]).any()
    half = lost_types(sequences, 0.5, stream(0, "x"))
    names = sequences.labels()
    assert not set(names[half]) & set(names[~half]), "a key is lost everywhere or nowhere"
    assert lost_types(sequences, 1.0, stream(0, "x")).all()
    assert not lost_types(sequences, 0.0, stream(0, "x")).any()


def test_lost_names_are_missing_or_unseen_and_times_stay(samples):
    lost = lost_events(samples.sequences.n_events, 0.5, stream(0, "x"))
    before = samples.sequences.labels()
    missing, unseen = with_codes(samples, lost).sequences, with_codes(samples, lost, True).sequences
    assert all(name is None for name in missing.labels()[lost])
    assert all(name == UNSEEN + old for name, old in zip(unseen.labels()[lost], before[lost], strict=True))
    for sequences in (missing, unseen):
        np.testing.assert_array_equal(sequences.labels()[~lost], before[~lost])
        np.testing.assert_array_equal(sequences.X, samples.sequences.X)
    firsts = samples.sequences.offsets[:-1]
    after = after_lost(missing)
    assert not after[firsts].any()
    inner = np.setdiff1d(np.arange(1, len(lost)), firsts)
    np.testing.assert_array_equal(after[inner], lost[inner - 1])


def test_the_models_are_the_five_and_one_more():
    names = [model.detector.name for model in losing_models()]
    assert names == ["hmm", "pohmm", "context-hmm", "context-hmm-key", "partly-hmm", "partially-hmm"]


def test_the_table_tests_each_against_the_best_over_users():
    users = [f"u{n}" for n in range(12)]
    better, worse = np.linspace(0.8, 0.9, 12), np.linspace(0.5, 0.6, 12)
    figures = {"pohmm": pd.Series(better, users), "hmm": pd.Series(worse, users)}
    # Two samples a user: the test is over users, mean and deviation over samples.
    times = {name: pd.concat([10 - 10 * of, 12 - 10 * of]) for name, of in figures.items()}
    errors = {name: 1 - of for name, of in figures.items()}
    table = relatives_table({"fable": {"acc": figures, "eer": errors, "amrt": times}}).frame
    of = table.set_index("detector")
    assert of["acc_best"].to_dict() == {"pohmm": True, "hmm": False}
    assert of["eer_best"].to_dict() == {"pohmm": True, "hmm": False}
    assert of.loc["hmm", "amrt_p"] == pytest.approx(2 / 2**12)
    assert of.loc["pohmm", "amrt_mean"] == pytest.approx(11 - 10 * better.mean())


def test_the_verdict_says_what_the_tables_say():
    rows = [
        {"dataset": name, "detector": model, "acc_mean": acc}
        | {f"{metric}_best": model == "pohmm" or name == "essay" for metric in ("acc", "eer", "amrt")}
        for name in ("fable", "essay")
        for model, acc in (("hmm", 0.3), ("pohmm", 0.9), ("partly-hmm", 0.5), ("context-hmm", 0.4))
    ]
    lost = [
        {"dataset": "fable", "situation": situation, "share": share, "detector": model}
        | {"acc": acc, "log_likelihood": -11.0 if share == 1.0 else -11.5 + acc}
        for situation in ("estimation", "scoring", "unseen")
        for share in (0.0, 1.0)
        for model, acc in (("hmm", 0.3), ("pohmm", 0.9 if share == 0.0 else 0.2))
    ]
    text = verdict(pd.DataFrame(rows), pd.DataFrame(lost))
    assert "accuracy, best or not significantly worse than the best: POHMM on 2, HMM on 1" in text
    assert "HMM 0.300, the best relative (partly-HMM) 0.500, POHMM 0.900" in text
    assert "Fable: with no name in estimation the POHMM meets the HMM." in text
    assert "more accurate than all others with 0% of names missing in estimation, with 0% missing" in text
    assert "less likely than the HMM with no share of names missing in estimation" in text
    assert "its accuracy is 0.200, the HMM's 0.300" in text
    assert "POHMM 0.700" in text
    without = verdict(pd.DataFrame(rows), pd.DataFrame(columns=["dataset"]))
    assert "estimation" not in without


def test_a_row_without_text_has_no_lost_contexts(samples, tmp_path):
    row = Row("typed", samples, MonacoTappert(), {}, "ours")
    scores, ranks, losses = run_relatives([row], 0, Parts(tmp_path), 1)
    assert scores.num_rows
    assert ranks.num_rows
    assert len(losses) == 0


@pytest.mark.slow
def test_the_whole_study_on_real_recordings(recordings, tmp_path):
    """The published figures of HMM and POHMM come out, and the POHMM meets the HMM without names."""
    options = ["--data", str(recordings), "--out", str(tmp_path), "--jobs", "2"]
    result = runner.invoke(app, ["study", "relatives", *options])
    assert result.exit_code == 0, result.output
    from keydyn.studies.published import ACCURACY, DATASETS, EQUAL_ERROR_RATE

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
