"""Error rates against hand-worked cases, scikit-learn and what must hold for any scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from keydyn.evaluation.penalty import first_above, rank_penalty, ranks
from keydyn.evaluation.rates import equal_error_rate, error_rates, zero_miss_rate

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12).map(np.array)


@pytest.mark.parametrize(
    ("genuine", "impostor", "eer", "zero_miss"),
    [
        ([3.0, 4.0], [1.0, 2.0], 0.0, 0.0),
        ([1.0, 2.0], [3.0, 4.0], 1.0, 1.0),
        ([1.0, 3.0], [2.0, 4.0], 0.5, 1.0),
        ([1.0], [1.0], 0.5, 1.0),
        ([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 0.7, 1.5], 0.25, 0.25),
    ],
)
def test_worked_by_hand(genuine, impostor, eer, zero_miss):
    assert equal_error_rate(np.array(genuine), np.array(impostor)) == pytest.approx(eer)
    assert zero_miss_rate(np.array(genuine), np.array(impostor)) == pytest.approx(zero_miss)


@given(scores, scores)
def test_points_are_those_of_scikit_learn(genuine, impostor):
    accepted, rejected = error_rates(genuine, impostor)
    truth = np.concatenate([np.ones(len(genuine)), np.zeros(len(impostor))])
    false, true, _ = roc_curve(truth, np.concatenate([genuine, impostor]), drop_intermediate=False)
    np.testing.assert_allclose(accepted, false)
    np.testing.assert_allclose(rejected, 1 - true)


@given(scores, scores)
def test_the_rates_cross_at_the_equal_error_rate(genuine, impostor):
    """Reading the piecewise-linear curves there gives the same rate for both."""
    eer = equal_error_rate(genuine, impostor)
    accepted, rejected = error_rates(genuine, impostor)
    # Both as functions of their sum's place along the curve: the crossing lies on one of its lines.
    on_line = [
        abs(a + s * (b - a) - eer) < 1e-9 and abs(c + s * (d - c) - eer) < 1e-9
        for a, b, c, d in zip(accepted[:-1], accepted[1:], rejected[:-1], rejected[1:], strict=True)
        for s in [(c - a) / (c - a + b - d) if (c - a + b - d) else 0.0]
    ]
    assert any(on_line)
    assert 0.0 <= eer <= 1.0
    # Swapping the roles and the direction swaps the errors.
    assert equal_error_rate(-impostor, -genuine) == pytest.approx(eer)


def test_what_cannot_be_rated():
    one = np.array([1.0])
    with pytest.raises(ValueError, match="there are no genuine scores"):
        equal_error_rate(np.array([]), one)
    with pytest.raises(ValueError, match="impostor score 1 is NaN"):
        equal_error_rate(one, np.array([0.0, np.nan]))


def test_rank_penalty_worked_by_hand():
    """Three templates, two samples of four and one events, a window of two."""
    event_scores = np.array(
        [[0.0, -1.0, -2.0], [-2.0, 0.0, -1.0], [0.0, 0.0, -1.0], [-1.0, -1.0, -1.0], [-2, -1, 0]]
    )
    expected_ranks = [[0, 1, 2], [2, 0, 1], [0.5, 0.5, 2], [1, 1, 1], [2, 1, 0]]
    np.testing.assert_allclose(ranks(event_scores), expected_ranks)
    penalty = rank_penalty(event_scores, np.array([0, 4, 5]), window=2)
    np.testing.assert_allclose(penalty, [[0, 1, 2], [2, 1, 3], [2.5, 0.5, 3], [1.5, 1.5, 3], [2, 1, 0]])
    assert first_above(penalty[:4, 0], 2.0) == 2
    assert first_above(penalty[:4, 0], 2.5) == 4


def test_scores_that_differ_by_rounding_are_ties():
    np.testing.assert_allclose(ranks(np.array([[-1.0, -1.0 + 1e-13, -2.0]])), [[0.5, 0.5, 2.0]])
    with pytest.raises(ValueError, match="event 0 has a score that is NaN"):
        ranks(np.array([[np.nan, 1.0]]))
