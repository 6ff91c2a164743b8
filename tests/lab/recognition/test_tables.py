"""The report's first sentences, and what they say when there are few users."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from keydyn.evaluation.scores import Scores
from keydyn.lab.frame.tables import plain_table, without_empty_columns
from keydyn.lab.recognition.tables import best_of, recognition_figures, too_few, users_needed, verdict_of


def scores(n_users, right, seed=0):
    """Four samples of each user, so many of which score highest under their owner's template."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_users), 4)
    raw = rng.uniform(0, 1, (len(owners), n_users))
    good = np.tile(np.arange(4) < right, n_users)
    raw[np.arange(len(owners))[good], owners[good]] = 2.0
    raw[np.arange(len(owners))[~good], owners[~good]] = -1.0
    folds, sessions = np.zeros(len(owners), dtype=int), np.tile(np.arange(4), n_users)
    return Scores(owners, sessions, folds, np.arange(n_users), raw, np.ones(raw.shape, dtype=bool), "min-max")


@pytest.mark.parametrize("n_detectors", [2, 3, 6, 12])
def test_how_many_users_are_needed(n_detectors):
    """By scipy's exact test: one fewer can never reach the corrected level, so many can."""
    needed = users_needed(n_detectors)
    level = 0.05 / (n_detectors - 1)
    assert wilcoxon(np.arange(1, needed + 1)).pvalue <= level
    assert wilcoxon(np.arange(1, needed)).pvalue > level


def test_a_tie_has_no_winner():
    same = {("mine", name): scores(4, 4) for name in ("manhattan", "hmm", "pohmm")}
    text = verdict_of(recognition_figures(same), ())
    assert "In identification, all 3 detectors do equally well with 100 % of samples of 4 users" in text
    assert "In verification, all 3 detectors have the lowest equal error rate, 0.0 %" in text
    two = recognition_figures({**same, ("mine", "svm"): scores(4, 1)})
    assert "Manhattan, HMM and POHMM do equally well" in verdict_of(two, ())


def test_what_is_far_from_the_best_is_not_bold():
    measured = recognition_figures({("mine", "pohmm"): scores(4, 4), ("mine", "manhattan"): scores(4, 1)})
    assert best_of(measured, "acc", higher_is_better=True) == {("mine", "pohmm")}


def test_few_users_cannot_tell():
    measured = recognition_figures({("mine", "pohmm"): scores(4, 4), ("mine", "manhattan"): scores(4, 1)})
    text = verdict_of(measured, ())
    assert "POHMM does best with 100 % of samples of 4 users identified" in text
    assert "So few users (4) cannot tell detectors apart: with fewer than 6" in text
    assert text.count(". ") == 2


def test_many_users_can():
    measured = recognition_figures({("mine", "pohmm"): scores(12, 4), ("mine", "manhattan"): scores(12, 1)})
    assert too_few(measured, ["mine"]) == ""
    assert "All other detectors identify significantly fewer samples than POHMM." in verdict_of(measured, ())
    alone = recognition_figures({("mine", "pohmm"): scores(12, 4)})
    assert verdict_of(alone, ()).endswith("There is no other detector to compare it with.")


def test_columns_that_cannot_be_estimated_are_left_out():
    values = pd.DataFrame(
        {"Detector": ["a", "b"], "Rate": ["1", "–"], "Rare": ["not supported by 8 trials", "–"]}
    )
    table = plain_table("rates", "Rates", "A note.", values)
    kept = without_empty_columns(table)
    assert kept.shown.columns.tolist() == kept.bold.columns.tolist() == ["Detector", "Rate"]
    assert kept.note == "A note. Columns that these samples cannot support are not shown (Rare)."
    assert kept.frame.equals(table.frame)
    full = plain_table("rates", "Rates", "", values[["Detector", "Rate"]])
    assert without_empty_columns(full) is full
