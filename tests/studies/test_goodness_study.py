"""Goodness of fit of users, its calibration and power, the choice of models: small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn import HMM, POHMM
from keydyn.datasets import make_typists
from keydyn.figures import goodness_of_fit as figures
from keydyn.figures.model_choice_lines import draw_model_choice
from keydyn.figures.residuals import draw_residual_checks
from keydyn.studies.calibration import (
    calibration,
    calibration_table,
    distance_from_uniform,
    power,
    power_table,
)
from keydyn.studies.compared_models import pattern
from keydyn.studies.goodness_tests import (
    PUBLISHED,
    goodness_of_fit,
    goodness_rows,
    rejections,
    rejections_by_marginal,
    rejections_by_p_value,
    user_goodness,
)
from keydyn.studies.model_choice import (
    MAX_ITERATIONS,
    TOLERANCE,
    choice_table,
    left_out,
    model_choice,
)
from keydyn.studies.user_intervals import intervals_by_user, stream


@pytest.fixture(scope="module")
def keystrokes():
    return make_typists(n_users=2, n_samples=2, text="copied", n_keys=40, random_state=0)


@pytest.fixture(scope="module")
def tests_of_users(keystrokes):
    return goodness_of_fit(keystrokes, "fable", n_surrogates=5, n_second=2)


def test_the_intervals_are_all_but_the_first(keystrokes):
    by_user = intervals_by_user(keystrokes)
    assert list(by_user) == list(keystrokes["user"].unique())
    for user, sequences in by_user.items():
        own = keystrokes[keystrokes["user"] == user]
        expected = np.concatenate([np.diff(sample["timepress"]) for _, sample in own.groupby("session")])
        np.testing.assert_allclose(sequences.X[:, 0], expected)
        keys = np.concatenate([sample["keyname"][1:] for _, sample in own.groupby("session")])
        np.testing.assert_array_equal(sequences.labels(), keys)
        np.testing.assert_array_equal(sequences.lengths, own.groupby("session").size() - 1)


def test_every_user_model_and_setting_has_a_row(keystrokes, tests_of_users):
    assert len(tests_of_users) == 2 * 2 * 2
    for name in ("p_value", "p_one_sided", "p_double"):
        # Multiples of 1/6.
        np.testing.assert_allclose(np.round(6 * tests_of_users[name]), 6 * tests_of_users[name])
        assert tests_of_users[name].between(1 / 6, 1).all()
    # A row does not depend on those before it: what was interrupted goes on to the same result.
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


def test_streams_are_apart():
    a, b, c = stream(0, "x", 1), stream(0, "x", 2), stream(1, "x", 1)
    assert len({float(g.random()) for g in (a, b, c, stream(0, "x", 1))}) == 3


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


def test_patterns():
    assert pattern("hmm", "published").density_floor == 1e-5
    assert type(pattern("hmm", "recommended")) is HMM
    assert type(pattern("pohmm", "recommended", n_states=3)) is POHMM
    assert pattern("pohmm", "recommended", n_states=3).n_states == 3
    with pytest.raises(ValueError, match="models are hmm, pohmm"):
        pattern("svm", "published")


def test_distance_from_uniform():
    steps = np.arange(1, 11) / 10
    assert distance_from_uniform(steps, 9) == pytest.approx(0.0)
    assert distance_from_uniform(np.full(50, 0.1), 9) == pytest.approx(0.9)
    assert distance_from_uniform(np.ones(50), 9) == pytest.approx(0.9)


def test_calibration_and_power(keystrokes, tmp_path):
    told = []
    found = calibration(keystrokes, "mine", n_surrogates=5, repeats=2, progress=told.append)
    assert told == list(range(1, 9))
    table = calibration_table(found)
    assert set(table["p"]) == {"p_value", "p_one_sided", "p_double"}
    assert (table["tests"] == 4).all()
    assert table["ks_distance"].between(0, 1).all()
    exponential = {"one exponential": {"n_states": 1, "emission": "exponential"}}
    wrong = power(keystrokes, "mine", models=("hmm",), wrong=exponential, n_surrogates=19)
    # A single exponential is nothing like intervals.
    assert power_table(wrong)["one_sided"].tolist() == [1.0]
    figures.draw_calibration(found, tmp_path / "calibration.png")
    figures.draw_power(power_table(wrong), tmp_path / "power.png")
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())


def test_p_value_figure(tests_of_users, tmp_path):
    for p in ("p_value", "p_one_sided", "p_double"):
        figures.draw_p_values(tests_of_users, tmp_path / f"{p}.png", p)
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())


def test_model_choice(keystrokes, tmp_path):
    found = model_choice(keystrokes, "mine", states=(1, 2), families=("lognormal", "gamma"))
    assert len(found) == 2 * 2 * 2 * 2
    # BIC and held-out likelihood again, by hand, of one of them.
    user, sequences = next(iter(intervals_by_user(keystrokes).items()))
    settings = {"n_states": 2, "emission": "gamma", "tol": TOLERANCE, "max_iter": MAX_ITERATIONS}
    model = pattern("pohmm", "recommended", **settings)
    held_out = sum(
        pattern("pohmm", "recommended", **settings).fit(sequences[1 - s]).score(sequences[s]) for s in (0, 1)
    )
    chosen = (found["user"] == user) & (found["states"] == 2) & (found["family"] == "gamma")
    row = found[chosen & (found["smoothing"] == "frequency")].iloc[0]
    assert row["bic"] == pytest.approx(float(model.fit(sequences).bic(sequences)), rel=1e-6)
    assert row["held_out"] == pytest.approx(held_out / sequences.n_events, rel=1e-6)
    table = choice_table(found)
    paper = table.query("states == 2 and family == 'lognormal' and smoothing == 'frequency'").iloc[0]
    assert (paper["bic"], paper["held_out"]) == (0.0, 0.0)
    assert table["best_by_bic"].sum() == pytest.approx(1.0)
    draw_model_choice(table, tmp_path / "choice.png")
    assert (tmp_path / "choice.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="the paper's choice"):
        choice_table(found[found["states"] == 1])


def test_which_samples_are_left_out():
    assert [left_out(n) for n in (1, 2, 3, 4, 6)] == [[], [0, 1], [0, 1, 2], [0, 2, 3], [0, 2, 5]]


def test_a_user_with_one_sample_has_nothing_held_out(keystrokes):
    one = keystrokes[keystrokes["session"] == 0]
    found = model_choice(one, "mine", states=(2,), families=("lognormal",), smoothing=("frequency",))
    assert found["held_out"].isna().all()
    assert found["bic"].notna().all()


def test_residual_figure(keystrokes, tmp_path):
    sequences = next(iter(intervals_by_user(keystrokes).values()))
    residuals = {
        name: pattern(name, "recommended").fit(sequences).forecast_residuals(sequences)[:, 0]
        for name in ("hmm", "pohmm")
    }
    draw_residual_checks(residuals, tmp_path / "residuals.png", sequences.lengths)
    assert (tmp_path / "residuals.png").stat().st_size > 5000
