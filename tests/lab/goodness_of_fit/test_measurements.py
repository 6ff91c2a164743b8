"""Goodness of fit of users, small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.lab.frame.compared_models import pattern
from keydyn.lab.frame.user_intervals import intervals_by_user, stream
from keydyn.lab.goodness_of_fit import figures
from keydyn.lab.goodness_of_fit.measurements import (
    PUBLISHED,
    goodness_of_fit,
    goodness_rows,
    rejections,
    rejections_by_marginal,
    rejections_by_p_value,
    user_goodness,
)


@pytest.fixture(scope="module")
def tests_of_users(keystrokes):
    return goodness_of_fit(keystrokes, "fable", n_surrogates=5, n_second=2)


def test_every_user_model_and_setting_has_a_row(keystrokes, tests_of_users):
    assert len(tests_of_users) == 2 * 2 * 2
    for name in ("p_value", "p_one_sided", "p_double"):
        # Multiples of 1/6.
        np.testing.assert_allclose(np.round(6 * tests_of_users[name]), 6 * tests_of_users[name])
        assert tests_of_users[name].between(1 / 6, 1).all()
    # A row does not depend on those before it: work that was interrupted resumes to the same result.
    user, sequences = list(intervals_by_user(keystrokes).items())[1]
    alone = user_goodness(sequences, "fable", user, "hmm", "recommended", 5, 2, n_jobs=2)
    own = tests_of_users[tests_of_users["user"] == user]
    row = own[(own["model"] == "hmm") & (own["settings"] == "recommended")].iloc[0]
    assert pd.isna(alone["p_printed"])
    for found in (alone, row):
        found["p_printed"] = found["p_states"] = None
    assert alone == row.to_dict()
    skip = {
        (u, m, s) for u, m, s in zip(*(tests_of_users[c] for c in ("user", "model", "settings")), strict=True)
    }
    skip.remove((user, "hmm", "recommended"))
    left = list(goodness_rows(keystrokes, "fable", n_surrogates=5, n_second=2, skip=skip, n_jobs=2))
    left[0]["p_printed"] = left[0]["p_states"] = None
    assert left == [alone]


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
    for p in ("p_value", "p_one_sided", "p_double"):
        figures.draw_p_values(tests_of_users, tmp_path / f"{p}.png", p)
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())
