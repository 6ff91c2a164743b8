"""The set of bold figures against scipy, the published tables, and cases with an obvious answer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from keydyn.evaluation.rates.confidence import compare_with_best, signed_rank_p


def test_p_is_the_share_of_signs_that_are_as_extreme():
    """Every way to give the ranks their signs is as likely."""
    difference = np.array([0.3, -0.1, 0.4, 0.6, -0.2, 0.8, 0.5])
    ranks = np.argsort(np.argsort(np.abs(difference))) + 1
    statistic = ranks[difference > 0].sum()
    half = ranks.sum() / 2
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=7)]
    extreme = np.mean([abs(s - half) >= abs(statistic - half) for s in sums])
    assert signed_rank_p(difference, np.zeros(7)) == pytest.approx(extreme)


def test_zeros_are_left_out_as_scipy_does():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 6, size=(2, 40)) / 5.0
    assert (one == other).any()
    # In fifths differences would be ties but for rounding; in whole numbers they are.
    truth = wilcoxon(np.round(5 * one), np.round(5 * other), zero_method="wilcox").pvalue
    assert signed_rank_p(one, other) == pytest.approx(truth)


def test_nothing_differs():
    assert signed_rank_p(np.ones(5), np.ones(5)) == 1.0
    result = compare_with_best(pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, 0.5]}), higher_is_better=True)
    assert result["bold"].all()
    assert result["best"].tolist() == [True, False]


def test_one_user_shows_nothing():
    result = compare_with_best(pd.DataFrame({"a": [0.9], "b": [0.1]}), higher_is_better=True)
    assert result["p"].tolist() == [1.0, 1.0]
    assert result["bold"].all()


def test_one_detector_is_the_best():
    result = compare_with_best(pd.DataFrame({"a": [0.1, 0.2]}), higher_is_better=False)
    assert result.loc["a", ["best", "p", "bold"]].tolist() == [True, 1.0, True]
    assert result.loc["a", "level"] == 0.05


def test_what_cannot_be_compared():
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_with_best(pd.DataFrame(), higher_is_better=True)
    with pytest.raises(ValueError, match="user u2 has no figure of b"):
        compare_with_best(pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, None]}, index=["u1", "u2"]), True)
    with pytest.raises(ValueError, match="no users"):
        signed_rank_p(np.array([]), np.array([]))
    with pytest.raises(ValueError, match="user 0 has no figure"):
        signed_rank_p(np.array([np.nan]), np.array([1.0]))
