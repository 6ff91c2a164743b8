"""Goodness of fit of users, small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from keydyn.datasets import make_typists
from keydyn.figures.residuals import draw_residual_rows
from keydyn.lab.frame.study_data import intervals_by_user, pattern, stream
from keydyn.lab.goodness_of_fit import report as figures
from keydyn.lab.goodness_of_fit.measurements import (
    PUBLISHED,
    SurrogateTest,
    goodness_calls,
    rejections,
    rejections_by_marginal,
    rejections_by_p_value,
    residual_calls,
    residual_table,
    typical_user,
    user_goodness,
)
from tests.lab.rows import called


@pytest.fixture(scope="module")
def tests_of_users(keystrokes):
    return called(goodness_calls(keystrokes, "fable", SurrogateTest(5, 2)))


def test_every_user_model_and_setting_has_a_row(keystrokes, tests_of_users):
    assert len(tests_of_users) == 2 * 2 * 2
    for name in ("p_value", "p_one_sided", "p_double"):
        # Multiples of 1/6.
        np.testing.assert_allclose(np.round(6 * tests_of_users[name]), 6 * tests_of_users[name])
        assert tests_of_users[name].between(1 / 6, 1).all()
    # A row does not depend on those before it: work that was interrupted resumes to the same result.
    user, sequences = list(intervals_by_user(keystrokes).items())[1]
    alone = user_goodness(sequences, "fable", user, "hmm", "recommended", SurrogateTest(5, 2))
    own = tests_of_users[tests_of_users["user"] == user]
    row = own[(own["model"] == "hmm") & (own["settings"] == "recommended")].iloc[0]
    assert pd.isna(alone["p_printed"])
    for found in (alone, row):
        found["p_printed"] = found["p_states"] = None
    assert alone == row.to_dict()


def test_a_row_is_the_model_s_own_test(keystrokes, tests_of_users):
    """The same as `goodness_of_fit` of the model, by each way to make its distribution."""
    user, sequences = next(iter(intervals_by_user(keystrokes).items()))
    for name, settings in (("hmm", "recommended"), ("pohmm", "published")):
        own = tests_of_users[(tests_of_users["user"] == user) & (tests_of_users["model"] == name)]
        row = own[own["settings"] == settings].iloc[0]
        for kind, marginal in (("p_value", "exact"), ("p_printed", "printed"), ("p_states", "states")):
            if name == "hmm" and kind != "p_value":
                assert np.isnan(row[kind])
                continue
            found = pattern(name, settings).goodness_of_fit(
                sequences,
                n_surrogates=5,
                n_second=2,
                marginal=marginal,
                random_state=stream(0, "goodness of fit", "fable", user, name, settings),
            )
            assert row[kind] == found.p_value
        assert rejections_by_marginal(tests_of_users)["exact"].item() == np.mean(
            tests_of_users.query("model == 'pohmm' and settings == 'published'")["p_value"] <= 0.05
        )


def test_rejected_shares():
    rows = [
        ("essay", u, "pohmm", "published", p, 2 * p, np.nan, 100)
        for u, p in enumerate((0.01, 0.05, 0.06, 0.9))
    ]
    columns = ["dataset", "user", "model", "settings", "p_value", "p_one_sided", "p_double", "surrogates"]
    table = pd.DataFrame(rows, columns=columns)
    found = rejections(table)
    assert list(found.columns) == [
        "dataset",
        "model",
        "settings",
        "rejected",
        "users",
        "surrogates",
        "published_rejected",
    ]
    assert found.iloc[0].tolist() == ["essay", "pohmm", "published", 0.5, 4, 100, 0.40]
    by_kind = rejections_by_p_value(table).iloc[0]
    assert (by_kind["p_value"], by_kind["p_one_sided"]) == (0.5, 0.25)
    assert "p_double" not in by_kind
    assert set(PUBLISHED) == {(d, m) for d in ("fable", "essay") for m in ("hmm", "pohmm")}
    assert np.isnan(rejections(table.assign(dataset="mine"))["published_rejected"].item())


def test_p_value_figure(tests_of_users, tmp_path):
    figures.draw_p_values(tests_of_users, tmp_path / "p_values.png")
    assert (tmp_path / "p_values.png").stat().st_size > 5000


def test_residuals_of_users():
    keystrokes = make_typists(n_users=3, n_samples=2, text="copied", n_keys=60, random_state=3)
    rows = called(residual_calls(keystrokes, "mine"))
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
    draw_residual_rows({"one": (residuals, sequences.lengths)}, tmp_path / "residuals.png")
    assert (tmp_path / "residuals.png").stat().st_size > 5000
