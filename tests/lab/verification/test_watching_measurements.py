"""Watched sessions of all folds: what is kept says all that is compared, and people are in one fold alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from keydyn.decisions.calibration.learning import locked_at, lockout_level
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.keystrokes.one_sample import recorded_samples, without_impossible
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.resuming import Parts, run_pieces
from keydyn.lab.frame.study_data import Row
from keydyn.lab.verification.measurements import FOLDS, folds_of
from keydyn.lab.verification.watching_measurements import (
    FIGURES,
    OTHERWISE,
    highest_so_far,
    keystrokes_of,
    watching_frame,
    watching_pieces,
)
from tests.population.simulated import people

PEOPLE, SAMPLES, KEYS = 15, 3, 60


@pytest.fixture(scope="module")
def row():
    """People who are easy to tell apart."""
    samples = Samples.of(people(PEOPLE, SAMPLES, KEYS, cell=0.5, noise=0.2, tempo=0.01))
    return Row("typed", samples, MonacoTappert(), {"typed": "made up"}, "ours")


@pytest.fixture(scope="module")
def made(row, tmp_path_factory):
    parts = Parts(tmp_path_factory.mktemp("watching"), n_jobs=1)
    tables = run_pieces(watching_pieces(row, 0), parts)
    assert all(parts.read(name, piece.inputs) for piece in watching_pieces(row, 0) for name in piece.names)
    assert not any(
        parts.read(name, piece.inputs) for piece in watching_pieces(row, 1) for name in piece.names
    )
    return tables


def test_everybody_is_watched_in_one_fold(row, made):
    _, folds = folds_of(row, 0)
    for fold in range(FOLDS):
        about = made[f"typed-watching-{fold}-sessions"].to_pandas()
        assert set(about["claimed"]) == set(np.flatnonzero(folds == fold).astype(str))
        # With two others in the fold: each person, both others from the start, and both taking over.
        assert about["changed"].value_counts().to_dict() == {0: 18, KEYS // 2: 18, KEYS: 9}
        levels = made[f"typed-watching-{fold}-levels"].to_pandas()
        assert len(levels) == about["length"].sum() == 45 * KEYS
        rising = levels.drop(columns="hours").to_numpy().reshape(45, KEYS, -1)
        assert (np.diff(rising, axis=1) >= 0).all()


def test_every_way_has_all_its_figures(made):
    frame, choices = watching_frame(made, "typed", 0)
    assert frame["way"].nunique() == len(frame) == 5
    assert frame["target_per_hour"].tolist() == [OTHERWISE[0]] * 5
    for figure in FIGURES:
        assert (frame[f"{figure}_low"] <= frame[figure]).all()
        assert (frame[figure] <= frame[f"{figure}_high"]).all()
    assert (frame["keys_after_change"] == KEYS // 2).all()
    of = frame.set_index("way")
    assert of.loc["Page's sum", "change_unnoticed"] < 0.2
    assert (of["change_mean"] <= KEYS // 2).all()
    assert of.loc["Page's sum", "start_mean"] < KEYS / 2
    assert sorted((one["way"], one["fold"]) for one in choices) == sorted(
        (way, fold) for way in frame["way"] for fold in range(FOLDS)
    )


def test_the_hours_are_those_of_the_genuine_sessions(row, made):
    frame, _ = watching_frame(made, "typed", 0)
    tau = row.samples.sequences.X[:, row.samples.sequences.feature_names.index("tau")].copy()
    tau[row.samples.sequences.offsets[:-1]] = 0.0
    assert frame["genuine_hours"].tolist() == pytest.approx([tau.sum() / 3.6e6] * 5)


def test_samples_and_keystrokes_are_the_same(row):
    again = recorded_samples(keystrokes_of(row.samples))
    assert again.index.equals(row.samples.index)
    np.testing.assert_allclose(again.sequences.X, without_impossible(row.samples).sequences.X)
    assert again.sequences.labels().tolist() == row.samples.sequences.labels().tolist()


def test_the_highest_level_so_far_says_when_any_limit_is_exceeded():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 30, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    levels, hours = random.gamma(2.0, 2.0, offsets[-1]), random.random(offsets[-1])
    highest = highest_so_far(levels, offsets)
    for begin, end in itertools.pairwise(offsets):
        assert highest[begin:end].tolist() == [levels[begin : n + 1].max() for n in range(begin, end)]
    for limit in (0.5, 3.0, 6.0, 12.0):
        limits = np.full(40, limit)
        assert locked_at(highest, offsets, limits).tolist() == locked_at(levels, offsets, limits).tolist()
    everybody = np.ones(40, dtype=bool)
    found = [lockout_level(each, offsets, hours, everybody, 1.0) for each in (levels, highest)]
    assert found[0] == found[1]
