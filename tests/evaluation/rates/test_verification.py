"""Verification figures against the plain rates, direct resampling, and cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.evaluation.rates.error_curve import ErrorCurve, equal_error_rate, zero_miss_rate
from keydyn.evaluation.rates.replicates import replicated_curves
from keydyn.evaluation.rates.verification import (
    FMR_TARGETS,
    ONE,
    OWN,
    TITLES,
    _figures,
    mean_curve,
    replicated_figures,
    verification,
)
from keydyn.evaluation.scores import Scores


def made_up(n_users=6, n_samples=10, apart=2.0, seed=0, **changes):
    """Made-up scores of users who differ in how well they are distinguished from others."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_users), n_samples)
    raw = rng.normal(size=(len(owners), n_users))
    raw[np.arange(len(owners)), owners] += apart * np.linspace(0.5, 1.5, n_users)[owners]
    given = {
        "owners": owners,
        "sessions": np.tile(np.arange(n_samples), n_users),
        "folds": np.zeros(len(owners), dtype=np.int64),
        "users": np.arange(n_users),
        "raw": raw,
        "trials": np.ones(raw.shape, dtype=bool),
    }
    return Scores(**(given | changes))


@pytest.mark.parametrize("open_set", [False, True])
def test_each_users_figures_are_the_plain_rates(open_set):
    scores = made_up()
    result = verification(scores, open_set=open_set)
    values = scores.open_set if open_set else scores.normalised
    for u in range(6):
        genuine, impostor = scores.trials_of(u, values)
        row = result.per_user.loc[u]
        assert row["eer"] == equal_error_rate(genuine, impostor)
        assert row["zero_miss"] == zero_miss_rate(genuine, impostor)
        for name, target in FMR_TARGETS.items():
            assert row[name] == ErrorCurve.of(genuine, impostor).fnmr_at_fmr(target)
    assert result.own["eer"].value == pytest.approx(result.per_user["eer"].mean())
    assert result.own["eer"].std == pytest.approx(result.per_user["eer"].std())
    own = scores.own
    assert result.one["eer"].value == equal_error_rate(values[own], values[~own])
    assert result.open_set == open_set


def test_replicates_are_those_of_pooling_the_users_drawn():
    """Few scores, so that every one of them is a threshold: equal to the last digit but rounding."""
    scores = made_up(5, 4)
    parts = [scores.trials_of(u) for u in range(5)]
    genuine, impostor = [np.sort(g) for g, _ in parts], [np.sort(i) for _, i in parts]
    result = replicated_figures(replicated_curves(genuine, impostor, 50, 7))
    drawn = np.random.default_rng(7).multinomial(5, [0.2] * 5, size=50)
    for row, counts in zip(result, drawn, strict=True):
        who = np.repeat(np.arange(5), counts)
        curve = ErrorCurve.of(
            np.concatenate([genuine[u] for u in who]), np.concatenate([impostor[u] for u in who])
        )
        np.testing.assert_allclose(row, _figures(curve), atol=1e-12)


def test_replicates_of_many_scores_are_near_those_of_pooling():
    """Read between some hundred thresholds: within 1 % of all genuine trials."""
    scores = made_up(8, 150, seed=1, normalisation="none")
    parts = [scores.trials_of(u) for u in range(8)]
    genuine, impostor = [np.sort(g) for g, _ in parts], [np.sort(i) for _, i in parts]
    result = replicated_figures(replicated_curves(genuine, impostor, 20, 3))
    drawn = np.random.default_rng(3).multinomial(8, [1 / 8] * 8, size=20)
    for row, counts in zip(result, drawn, strict=True):
        who = np.repeat(np.arange(8), counts)
        curve = ErrorCurve.of(
            np.concatenate([genuine[u] for u in who]), np.concatenate([impostor[u] for u in who])
        )
        np.testing.assert_allclose(row, _figures(curve), atol=0.01)


def test_rates_that_the_trials_cannot_support_are_no_numbers():
    """60 samples, 50 of them an impostor's for each user: enough for 10 %, not for 1 %."""
    result = verification(made_up())
    assert result.own["fnmr_at_fmr_10"].supported
    assert result.one["fnmr_at_fmr_10"].supported
    for name in ("fnmr_at_fmr_1", "fnmr_at_fmr_0.1", "fnmr_at_fmr_0.01"):
        assert result.own[name].value is None
        assert result.own[name].trials == 50
        # Each sample was compared with 5 other templates and is one trial all the same.
        assert result.one[name].text() == "not supported by 60 trials"
    frame = result.to_frame()
    assert len(frame) == 2 * len(TITLES)
    assert set(frame["thresholds"]) == {OWN, ONE}
    assert frame["value"].isna().sum() == 6


def test_no_error_at_all_is_below_three_in_n():
    result = verification(made_up(apart=100.0))
    assert result.own["eer"].text() == result.one["eer"].text() == "< 5.0 %"  # 3 of 60 samples
    assert result.own["zero_rejection"].text() == "< 6.0 %"  # 3 of 50 impostors' samples


def test_all_scores_equal():
    result = verification(made_up(raw=np.zeros((60, 6))))
    assert result.per_user["eer"].tolist() == [0.5] * 6
    assert result.one["eer"].value == 0.5
    assert result.own["zero_miss"].value == result.own["zero_rejection"].value == 1.0
    np.testing.assert_allclose(mean_curve(result.curves).fnmr, 1.0 - mean_curve(result.curves).fmr)


def test_minus_infinity_is_the_worst_score():
    raw = made_up(apart=100.0).raw.copy()
    raw[0, 0] = -np.inf
    for normalisation in ("none", "min-max"):
        result = verification(made_up(raw=raw, normalisation=normalisation))
        assert result.per_user.loc[0, "zero_miss"] == pytest.approx(0.1)
        assert np.isfinite(result.per_user.to_numpy(dtype=float)).all()


def test_users_without_trials_are_named():
    """User 5 typed nothing; user 0 meets no impostor."""
    scores = made_up()
    trials = scores.trials.copy()
    trials[scores.owners == 5, 5] = False
    trials[scores.owners != 0, 0] = False
    result = verification(made_up(trials=trials))
    assert result.left_out == (0, 5)
    assert result.per_user.index.tolist() == [1, 2, 3, 4]


def test_one_user_cannot_be_verified_against_anybody():
    with pytest.raises(ValueError, match="two users or more"):
        verification(made_up(1, 3))


def test_one_user_with_impostors_has_no_interval():
    trials = np.zeros((60, 6), dtype=bool)
    trials[:, 2] = True
    result = verification(made_up(trials=trials))
    assert result.own["eer"].low is None
    assert result.one["eer"].high is None
    assert result.own["eer"].value == result.one["eer"].value


def test_one_genuine_trial():
    """The user's only sample scores above all impostors or not: no rate between."""
    trials = made_up().trials.copy()
    trials[1:10, 0] = False
    result = verification(made_up(apart=100.0, trials=trials))
    assert result.per_user.loc[0, ["genuine", "impostor"]].tolist() == [1, 50]
    assert result.per_user.loc[0, "zero_miss"] == 0.0


def test_the_same_seed_gives_the_same_figures():
    one, two, other = (verification(made_up(), seed=seed).to_frame() for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one["low"].equals(other["low"])


def test_the_band_holds_the_mean_curve():
    result = mean_curve(verification(made_up(20, 20)).curves)
    assert (result.low <= result.fnmr + 1e-12).all()
    assert (result.fnmr <= result.high + 1e-12).all()
    assert (np.diff(result.fnmr) <= 1e-12).all()
    assert result.fnmr[-1] == 0.0
