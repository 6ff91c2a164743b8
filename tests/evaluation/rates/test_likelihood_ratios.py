"""Cllr, its minimum by PAV, and reliability, against definitions and known distributions."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr, pooled_ratios, reliability


def test_cllr_is_the_mean_cost_in_bits() -> None:
    genuine, impostor = np.array([2.0, -1.0]), np.array([-3.0, 0.5, 0.0])
    by_hand = 0.5 * (
        np.mean([np.log2(1 + np.exp(-x)) for x in genuine])
        + np.mean([np.log2(1 + np.exp(x)) for x in impostor])
    )
    assert cllr(genuine, impostor) == pytest.approx(by_hand, rel=1e-12)
    assert cllr(np.zeros(3), np.zeros(5)) == pytest.approx(1.0)
    assert cllr(np.array([np.inf]), np.array([-np.inf])) == 0.0


def test_the_minimum_does_not_depend_on_a_monotone_map_and_is_not_above_the_cost() -> None:
    random = np.random.default_rng(1)
    genuine, impostor = random.normal(1, 1, 300), random.normal(-1, 1, 900)
    least = min_cllr(genuine, impostor)
    assert min_cllr(np.exp(genuine), np.exp(impostor)) == pytest.approx(least, rel=1e-12)
    for scale in (0.3, 1.0, 2.0, 5.0):
        assert least <= cllr(scale * genuine, scale * impostor)


def test_true_ratios_of_normals_are_calibrated() -> None:
    random = np.random.default_rng(2)
    # With unit variance and means ±1, the log-likelihood ratio is 2 x.
    genuine, impostor = random.normal(1, 1, 20_000), random.normal(-1, 1, 20_000)
    assert cllr(2 * genuine, 2 * impostor) == pytest.approx(min_cllr(genuine, impostor), rel=0.01)
    table = reliability(2 * genuine, 2 * impostor)
    plenty = table[table[["genuine", "impostor"]].min(axis=1) > 100]
    assert len(plenty) > 5
    assert np.abs(plenty["stated"] - plenty["observed"]).max() < 0.25


def test_pooling_gives_the_shares_of_blocks() -> None:
    # One impostor among the genuine: pooled with the genuine trial below it.
    genuine, impostor = np.array([1.0, 2.0, 4.0]), np.array([-1.0, 3.0])
    own, others = pooled_ratios(genuine, impostor)
    pooled = np.log((2 / 3) / (1 / 2))
    assert own == pytest.approx([pooled, pooled, np.inf])
    assert others == pytest.approx([-np.inf, pooled])


@pytest.mark.parametrize("function", [cllr, min_cllr, reliability])
def test_no_trials_and_nan_are_refused(function: object) -> None:
    call = function if callable(function) else cllr
    with pytest.raises(ValueError, match="no impostor scores"):
        call(np.ones(2), np.ones(0))
    with pytest.raises(ValueError, match="genuine score 1 is NaN"):
        call(np.array([0.0, np.nan]), np.ones(2))
