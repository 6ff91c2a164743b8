"""Residuals of users, small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from keydyn.datasets import make_typists
from keydyn.figures.residuals import draw_residual_checks
from keydyn.lab.frame.compared_models import pattern
from keydyn.lab.frame.user_intervals import intervals_by_user
from keydyn.lab.goodness_of_fit.residual_checks import residual_rows, residual_table, typical_user


def test_residuals_of_users():
    keystrokes = make_typists(n_users=3, n_samples=2, text="copied", n_keys=60, random_state=3)
    rows = pd.DataFrame(residual_rows(keystrokes, "mine"))
    assert len(rows) == 6
    table = residual_table(rows)
    assert table["users"].tolist() == [3, 3]
    pohmm = rows[rows["model"] == "pohmm"]
    assert table["not_normal"].iloc[1] == np.mean(pohmm["ks_p"] <= 0.05)
    one = typical_user(keystrokes, "mine", rows)
    of_one = pohmm[pohmm["user"] == one.user].iloc[0]
    # The one in the middle, and the same residuals.
    assert of_one["ks_statistic"] == pohmm["ks_statistic"].median()
    assert stats.kstest(one.residuals["pohmm"], "norm").statistic == pytest.approx(of_one["ks_statistic"])
    assert len(one.residuals["hmm"]) == one.lengths.sum() == of_one["residuals"]


def test_residual_figure(keystrokes, tmp_path):
    sequences = next(iter(intervals_by_user(keystrokes).values()))
    residuals = {
        name: pattern(name, "recommended").fit(sequences).forecast_residuals(sequences)[:, 0]
        for name in ("hmm", "pohmm")
    }
    draw_residual_checks(residuals, tmp_path / "residuals.png", sequences.lengths)
    assert (tmp_path / "residuals.png").stat().st_size > 5000
