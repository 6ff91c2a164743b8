"""Intervals against scipy's bootstrap and the binomial distribution, the rule of three by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, bootstrap

from keydyn.evaluation.rates.confidence import (
    Rate,
    bootstrap_mean,
    mean_rate,
    trials_needed,
    unsupported,
    user_weights,
)


def test_the_interval_is_that_of_scipy():
    """Two runs of a random method: they agree to what 20,000 replicates leave open."""
    values = np.random.default_rng(3).beta(1, 5, size=40)
    low, high = bootstrap_mean(values[:, None], replicates=20_000, seed=1)
    theirs = bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(2)
    )
    width = high[0] - low[0]
    assert low[0] == pytest.approx(theirs.confidence_interval.low, abs=0.05 * width)
    assert high[0] == pytest.approx(theirs.confidence_interval.high, abs=0.05 * width)


def test_replicates_draw_as_many_users_as_there_are():
    weights = user_weights(7, 200, 5)
    assert (weights.sum(axis=1) == 7).all()
    np.testing.assert_array_equal(weights, user_weights.__wrapped__(7, 200, 5))
    assert (weights != user_weights(7, 200, 6)).any()


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_the_rule_of_three_is_the_binomials(n):
    """At a rate of 3/n no error in n trials has a probability of 5 %, a little less."""
    assert 0.04 < binom.pmf(0, n, 3 / n) <= 0.05
    assert trials_needed(3 / n) == n


def test_trials_needed():
    assert [trials_needed(rate) for rate in (0.1, 0.01, 0.001, 0.0001)] == [30, 300, 3000, 30_000]
    for wrong in (0.0, -0.1, 1.1):
        with pytest.raises(ValueError, match="a rate must be above 0"):
            trials_needed(wrong)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(0.042, 0.031, 0.055, 500), "4.2 % (3.1–5.5)"),
        (Rate(0.042, None, None, 500), "4.2 %"),
        (Rate(0.0, 0.0, 0.0, 1000), "< 0.3 %"),
        (Rate(0.0, 0.0, 0.0, 1020), "< 0.3 %"),
        (Rate(0.0, 0.0, 0.0, 7), "< 42.9 %"),
        (Rate(0.0, None, None, 2), "< 100.0 %"),
        (Rate(1.0, 1.0, 1.0, 1020), "> 99.7 %"),
        (Rate(1.0, None, None, 2), "> 0.0 %"),
        (unsupported(240, 3000), "not supported by 240 trials"),
        (unsupported(2400, 30_000), "not supported by 2,400 trials"),
    ],
)
def test_texts(rate, text):
    assert rate.text() == text
    assert rate.supported == (not text.startswith("not"))


def test_an_upper_bound_is_rounded_upwards():
    """3 of 1,020 is 0.294 %: "< 0.2 %" would be false."""
    assert Rate(0.0, None, None, 1020).text(2) == "< 0.30 %"
    assert Rate(0.0, None, None, 1020).text(3) == "< 0.295 %"


def test_means_of_users():
    rate = mean_rate(np.array([0.0, 0.5, 1.0]), trials=30)
    assert (rate.value, rate.std, rate.trials) == (0.5, 0.5, 30)
    assert rate.low is not None
    assert 0.0 <= rate.low < 0.5 < rate.high <= 1.0


def test_one_user_has_no_interval_and_none_no_mean():
    assert mean_rate(np.array([0.25]), trials=4) == Rate(0.25, None, None, 4)
    with pytest.raises(ValueError, match="no users"):
        mean_rate(np.array([]), trials=0)
    with pytest.raises(ValueError, match="user 1 has no rate"):
        mean_rate(np.array([0.1, np.nan]), trials=4)
    with pytest.raises(ValueError, match="no users to draw"):
        user_weights(0)
    with pytest.raises(ValueError, match="replicates"):
        user_weights(2, 0)
