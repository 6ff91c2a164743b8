"""keydyn evaluate: names, protocols and folders that could be taken for something else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.commands.recording_options import ReadingOptions
from keydyn.datasets import make_typists, save_recordings
from keydyn.detectors import detector_names, make_detector
from keydyn.evaluation.protocols.protocol import LeaveOneOut
from keydyn.keystrokes import Samples
from keydyn.lab.frame import chosen as study_options
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study_data import Row
from keydyn.lab.own_recordings.report import PROTOCOLS, learnt_from

pytestmark = pytest.mark.usefixtures("sketched", "sketched_set_up")

runner = CliRunner()
DETECTOR = make_detector("manhattan")


def evaluate(file, out, *options):
    result = runner.invoke(app, ["evaluate", str(file), "--out", str(out), "--jobs", "1", *options])
    assert result.exit_code == 0, result.output
    return result


def table(out, name):
    return pd.read_csv(out / "tables" / f"{name}.csv")


@pytest.fixture(scope="module")
def typing(tmp_path_factory):
    frame = make_typists(4, 4, random_state=0)
    frame["pressure"] = np.random.default_rng(0).normal(size=len(frame))
    path = tmp_path_factory.mktemp("typing") / "typing.csv"
    frame.to_csv(path, index=False)
    return path


def test_recordings_that_the_shipped_population_was_learnt_from_are_noticed(recordings, typing):
    names = {
        name: ReadingOptions(recordings / f"{name}.csv").recording()[0]
        for name in ("fable", "essay", "keypad")
    }
    found = {name: learnt_from(recording) for name, recording in names.items()}
    assert found == {"fable": True, "essay": True, "keypad": False}
    assert not learnt_from(ReadingOptions(typing).recording()[0])


@pytest.mark.parametrize(("detector", "warned"), [("population", True), ("manhattan", False)])
def test_only_decisions_of_the_population_are_warned_about(typing, tmp_path, monkeypatch, detector, warned):
    monkeypatch.setattr("keydyn.lab.own_recordings.report.learnt_from", lambda recording: True)
    done = evaluate(typing, tmp_path, "--detector", detector, "--protocol", "chronological")
    assert (f"was learnt from {typing}" in " ".join(done.stderr.split())) == warned


def test_a_file_called_like_a_dataset_is_not_that_dataset(typing, tmp_path):
    """Neither its published figures nor its settings: anybody's file may be called password.csv."""
    path = tmp_path / "password.csv"
    path.write_bytes(typing.read_bytes())
    evaluate(path, tmp_path / "out", "--detector", "manhattan", "--detector", "hmm")
    frame = table(tmp_path / "out", "recognition")
    assert frame["dataset"].unique().tolist() == ["password.csv", "password.csv, open set"]
    assert frame["published_acc_mean"].isna().all()
    assert table(tmp_path / "out", "continuous")["published_amrt_mean"].isna().all()
    assert "five published detectors" not in (tmp_path / "out" / "tables" / "recognition.md").read_text()


@pytest.mark.parametrize("options", [["--sensors", "pressure"], ["--unit", "s"]])
def test_what_is_read_otherwise_is_computed_again(typing, tmp_path, options):
    """The file is the same, what detectors see of it is not."""
    first, other = tmp_path / "first", tmp_path / "other"
    evaluate(typing, first, "--detector", "manhattan")
    evaluate(typing, first, "--detector", "manhattan", *options)
    evaluate(typing, other, "--detector", "manhattan", *options)
    pd.testing.assert_frame_equal(
        pd.read_parquet(first / "scores.parquet"), pd.read_parquet(other / "scores.parquet")
    )
    run = json.loads((first / "run.json").read_text())
    assert run["reading"]["unit"] == ("s" if "--unit" in options else "ms")


def test_samples_are_part_of_the_inputs():
    samples = Samples.of(make_typists(3, 3, random_state=0))
    row = Row("typed", samples, LeaveOneOut(), {"typed.csv": "0123"}, "ours")
    again = Row("typed", Samples.of(make_typists(3, 3, random_state=0)), LeaveOneOut(), row.checksums, "ours")
    assert row.fingerprint == again.fingerprint
    for other in (
        samples[:-1],
        replace(samples, feature_table=samples.table * 2),
        replace(samples, emission=("normal", "lognormal")),
        replace(samples, names=samples.index.set_levels(["a", "b", "c"], level=0)),
    ):
        assert inputs_of(replace(row, samples=other), DETECTOR) != inputs_of(row, DETECTOR)


def test_nothing_of_an_earlier_run_is_left(typing, tmp_path):
    """Ranks and tables of another choice of detectors would be taken for this run's by `report`."""
    out = tmp_path / "out"
    evaluate(typing, out, "--detector", "hmm", "--detector", "manhattan")
    mine = out / "tables" / "mine.csv"
    mine.write_text("kept")
    evaluate(typing, out, "--detector", "manhattan")
    assert not (out / "ranks.parquet").exists()
    assert not (out / "tables" / "continuous.csv").exists()
    assert mine.read_text() == "kept"
    result = runner.invoke(app, ["report", str(out)])
    assert result.exit_code == 0, result.output
    assert "Continuous" not in (out / "report.html").read_text()


def test_a_folder_is_complete_only_when_it_is(typing, tmp_path, monkeypatch):
    """Interrupted while tables are written, the run.json of an earlier run must not vouch for them."""
    out = tmp_path / "out"
    evaluate(typing, out, "--detector", "manhattan")
    monkeypatch.setattr("keydyn.lab.own_recordings.report.recognition_sections", None)
    runner.invoke(app, ["evaluate", str(typing), "--out", str(out), "--detector", "manhattan"])
    assert not (out / "run.json").exists()


def test_a_folder_that_cannot_be_is_reported_before_any_work(typing, tmp_path, monkeypatch):
    (tmp_path / "out").write_text("a file")
    monkeypatch.setattr("keydyn.lab.frame.score_datasets.score_rows", None)
    options = ["--out", str(tmp_path / "out"), "--detector", "manhattan"]
    result = runner.invoke(app, ["evaluate", str(typing), *options])
    assert result.exit_code == 4
    assert str(tmp_path / "out") in result.stderr


@pytest.fixture(scope="module")
def opened(typing, tmp_path_factory):
    out = tmp_path_factory.mktemp("opened") / "out"
    evaluate(typing, out, "--protocol", "open-set", "--detector", "hmm")
    return out


def test_an_open_set_is_not_called_closed(opened):
    """Nor has it a rejection time by the owner's level on the impostor's sample: the impostor is unknown."""
    assert not (opened / "tables" / "continuous.csv").exists()
    watching = table(opened, "watching")
    assert set(watching["thresholds"]) == {"transferable", "shared"}
    assert "Open set: users in" in (opened / "tables" / "watching.md").read_text()
    for path in (opened / "tables").glob("*.md"):
        assert "Closed set." not in path.read_text(), path.name
    rates = table(opened, "open_set")
    assert rates["eer_mean"].isna().all()
    assert rates["eer_open_mean"].notna().all()
    assert "threshold, nan" not in (opened / "report.html").read_text()


def test_impostors_of_an_open_set_are_never_enrolled(opened):
    ranks = pd.read_parquet(opened / "ranks.parquet")
    tried = ranks[ranks["trial"] & (ranks["user"].astype(str) != ranks["reference"].astype(str))]
    references = ranks.groupby(["fold"], observed=True)["reference"].agg(lambda names: set(map(str, names)))
    assert len(tried) > 0
    for fold, users in tried.groupby("fold")["user"]:
        assert not set(map(str, users)) & references[fold]


def test_many_fits_are_reported_before_they_begin(typing, tmp_path, monkeypatch):
    monkeypatch.setattr("keydyn.lab.own_recordings.study.MANY_TEMPLATES", 15)
    result = evaluate(typing, tmp_path / "out", "--detector", "manhattan")
    assert "leave-one-out fits 16 templates for each detector" in result.stderr
    result = evaluate(typing, tmp_path / "out", "--detector", "manhattan", "--protocol", "chronological")
    assert "templates for each" not in result.stderr
    assert (tmp_path / "out" / "figures" / "marginal_density.pdf").exists()


def test_a_missing_value_is_a_failure_only_to_detectors_of_vectors(typing, tmp_path):
    frame = pd.read_csv(typing)
    frame.loc[3, "pressure"] = np.nan
    frame.to_csv(tmp_path / "holes.csv", index=False)
    options = ["--sensors", "pressure", "--detector", "hmm"]
    assert "failure" not in evaluate(tmp_path / "holes.csv", tmp_path / "out", *options).stderr
    more = evaluate(tmp_path / "holes.csv", tmp_path / "out", *options, "--detector", "manhattan")
    assert "failure to acquire: 1 of 16 samples" in more.stderr


@pytest.fixture(scope="module")
def of_two(typing, tmp_path_factory):
    """Of all cases the one with least to draw."""
    folder = tmp_path_factory.mktemp("two")
    frame = pd.read_csv(typing)
    frame[frame["user"] < 2].to_csv(folder / "two.csv", index=False)
    evaluate(folder / "two.csv", folder / "out", "--detector", "manhattan", "--detector", "hmm")
    return folder / "out"


def test_two_users(of_two):
    """No open set can be made of two; what is left is there."""
    rates = table(of_two, "open_set")
    assert rates["eer_open_mean"].isna().all()
    assert rates["eer_mean"].notna().all()


def test_a_spoilt_file_of_scores_is_reported_in_one_line(typing, tmp_path):
    out = tmp_path / "out"
    evaluate(typing, out, "--detector", "manhattan")
    pd.read_parquet(out / "scores.parquet").drop(columns="trial").to_parquet(out / "scores.parquet")
    result = runner.invoke(app, ["report", str(out)])
    assert result.exit_code == 4
    assert result.stderr.strip().endswith("it has no column trial")


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


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
    assert result.exit_code == 4
    assert "needs 2 users or more" in result.stderr


def test_an_unknown_protocol_is_refused(recorded, tmp_path):
    options = ["--protocol", "mine", "--out", str(tmp_path / "out")]
    result = runner.invoke(app, ["evaluate", str(recorded / "typing.csv"), *options])
    assert result.exit_code == 2
    assert "there is no protocol 'mine'; there are leave-one-out" in result.stderr


def test_help_lists_detectors_and_protocols():
    """All of them, by the names that work."""
    shown = runner.invoke(app, ["evaluate", "--help"], env={"COLUMNS": "200"}).output
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", shown).split())
    assert set(study_options.DETECTORS) == set(detector_names())
    for name in (*detector_names(), *PROTOCOLS):
        assert name in words


def test_evaluate_for_machines(typing, tmp_path):
    result = evaluate(typing, tmp_path / "out", "--detector", "manhattan", "--json")
    printed = json.loads(result.stdout)
    assert printed["folder"] == str(tmp_path / "out")
    rows = printed["tables"]["recognition"]
    assert [row["detector"] for row in rows] == ["manhattan"] * 2
    frame = table(tmp_path / "out", "recognition")
    assert [row["acc_mean"] for row in rows] == pytest.approx(frame["acc_mean"].tolist())
    quiet = evaluate(typing, tmp_path / "out", "--detector", "manhattan", "--quiet")
    assert quiet.output == ""
    again = runner.invoke(app, ["report", str(tmp_path / "out"), "--json"])
    assert json.loads(again.stdout)["tables"] == printed["tables"]


def test_an_interrupted_evaluation_says_how_to_resume(typing, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("keydyn.lab.frame.score_datasets.score_rows", interrupted)
    result = runner.invoke(app, ["evaluate", str(typing), "--out", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert "run the same command to resume" in result.stderr


@pytest.mark.parametrize("width", [40, 60, 80])
def test_tables_on_a_terminal_do_not_break_words(evaluated, width):
    shown = runner.invoke(app, ["report", str(evaluated)], env={"COLUMNS": str(width)}).output
    for word in ("(scaled)", "Accuracy", "Identification"):
        assert word in shown
    for text in pd.read_csv(evaluated / "tables" / "recognition.csv")["acc_mean"].map("{:.3f}".format):
        assert text in shown


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Four people, three samples at home and two at work; the last has none at work."""
    frame = make_typists(4, 5, "free", 60, random_state=2)
    frame["place"] = np.where(frame["session"] < 3, "home", "work")
    frame = frame[(frame["user"] != 3) | (frame["place"] == "home")]
    path = tmp_path_factory.mktemp("places") / "places.csv"
    frame.to_csv(path, index=False)
    return path


def test_one_place_trains_and_another_tests(places, tmp_path):
    done = evaluate(places, tmp_path / "out", "--enrol-on", "place=home", "--detector", "population")
    scores = pd.read_parquet(tmp_path / "out" / "scores.parquet")
    closed = scores[scores["dataset"] == "places"]
    assert set(closed["user"]) == {"0", "1", "2"}
    assert set(closed["session"]) == {"3", "4"}
    decided = table(tmp_path / "out", "decisions").set_index("claims")
    # Two samples of three people; each is genuine once, and the strangers try those who are enrolled.
    assert decided.loc["genuine", "number"] == 6
    assert decided.loc["strangers", "number"] == 3 * 2 * 2
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["protocols"]["places"]["split"] == "samples of place=home train, those of the rest are queries"
    assert "Decisions at a stated false-match rate of 1 %" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--enrol-on", "room=a"], "'room=a' must be COLUMN=VALUE; the columns are user, session"),
        (
            ["--enrol-on", "place=home", "--test-on", "place=cafe"],
            "no sample has place=cafe; place is home, work",
        ),
        (["--enrol-on", "place=home", "--test-on", "session=0"], "a sample enrols or tests"),
    ],
)
def test_conditions_that_make_no_sense(places, tmp_path, options, message):
    done = runner.invoke(app, ["evaluate", str(places), "--out", str(tmp_path / "out"), *options])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_sessions_are_meant_as_they_were_recorded(places, tmp_path):
    out = tmp_path / "out"
    evaluate(places, out, "--keys", "20", "--enrol-on", "session=0,1,2", "--detector", "manhattan")
    scores = pd.read_parquet(out / "scores.parquet")
    # Two samples of 60 keys of each of three people, in three parts each.
    assert scores[scores["dataset"] == "places"].groupby("user")["session"].nunique().tolist() == [6, 6, 6]
    assert not (out / "tables" / "decisions.csv").exists()


def test_the_population_comes_first(typing, tmp_path):
    evaluate(typing, tmp_path / "out")
    frame = table(tmp_path / "out", "recognition")
    assert list(dict.fromkeys(frame["detector"])) == [
        "population", "manhattan", "manhattan-scaled", "svm", "hmm", "pohmm", "pohmm-recommended",
    ]  # fmt: skip
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<p>typing" not in report
    assert "`" not in re.sub(r"<(script|style).*?</\1>", "", report, flags=re.DOTALL)
