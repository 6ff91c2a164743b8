"""Error rates against cases worked by hand, scikit-learn, and properties that hold for any scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import det_curve, roc_curve

from keydyn.evaluation.rates.error_curve import (
    ErrorCurve,
    common_grid,
    curves_on,
    equal_error_rate,
    zero_miss_rate,
)

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
    curve = ErrorCurve.of(genuine, impostor)
    truth = np.concatenate([np.ones(len(genuine)), np.zeros(len(impostor))])
    false, true, _ = roc_curve(truth, np.concatenate([genuine, impostor]), drop_intermediate=False)
    np.testing.assert_allclose(curve.fmr, false)
    np.testing.assert_allclose(curve.fnmr, 1 - true)


@given(scores, scores)
def test_points_are_on_the_det_curve_of_scikit_learn(genuine, impostor):
    """scikit-learn leaves out points at the ends; what it has must be ours."""
    curve = ErrorCurve.of(genuine, impostor)
    truth = np.concatenate([np.ones(len(genuine)), np.zeros(len(impostor))])
    if len(np.unique(np.concatenate([genuine, impostor]))) < 2:
        return
    theirs = det_curve(truth, np.concatenate([genuine, impostor]))
    ours = {tuple(np.round(point, 12)) for point in zip(curve.fmr, curve.fnmr, strict=True)}
    assert {tuple(np.round(point, 12)) for point in zip(*theirs[:2], strict=True)} <= ours


@given(scores, scores, st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_rates_at_a_target_by_trying_every_threshold(genuine, impostor, target):
    """The definition itself: the best of the thresholds that keep to the target."""
    levels = [np.inf, *np.concatenate([genuine, impostor])]
    tried = [((impostor >= t).mean(), (genuine < t).mean()) for t in levels]
    curve = ErrorCurve.of(genuine, impostor)
    assert curve.fnmr_at_fmr(target) == min(fnmr for fmr, fnmr in tried if fmr <= target)
    assert curve.fmr_at_fnmr(target) == min(fmr for fmr, fnmr in tried if fnmr <= target)
    assert zero_miss_rate(genuine, impostor) == curve.fnmr_at_fmr(0.0)


def test_one_in_a_hundred_is_not_above_one_per_cent():
    """100 of 10,000 impostors accepted is FMR 1 %, however fractions are rounded."""
    impostor = np.arange(10_000.0)
    assert ErrorCurve.of(np.array([9_900.0]), impostor).fnmr_at_fmr(0.01) == 0.0
    assert ErrorCurve.of(np.array([9_899.0]), impostor).fnmr_at_fmr(0.01) == 1.0


def test_scores_of_minus_infinity():
    """They are the lowest scores: 2 of 4 genuine tie with the only impostor."""
    genuine, impostor = np.array([-np.inf, -np.inf, 0.0, 1.0]), np.array([-np.inf])
    np.testing.assert_array_equal(ErrorCurve.of(genuine, impostor).fmr, [0, 0, 0, 1])
    assert zero_miss_rate(genuine, impostor) == 0.5
    assert ErrorCurve.of(genuine, impostor).fmr_at_fnmr(0.0) == 1.0
    assert equal_error_rate(genuine, impostor) == pytest.approx(1 / 3)


def test_curves_on_a_grid_worked_by_hand():
    """Genuine 1 3, impostors 2 4: points (0, 1), (.5, 1), (.5, .5), (1, .5), (1, 0)."""
    curve = ErrorCurve.of(np.array([1.0, 3.0]), np.array([2.0, 4.0]))
    straight = ErrorCurve.of(np.array([1.0]), np.array([1.0]))
    grid = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(
        curves_on([curve, straight], grid), [[1, 1, 0.5, 0.5, 0], [1, 0.75, 0.5, 0.25, 0]]
    )
    with pytest.raises(ValueError, match="from 0 to 1"):
        curves_on([curve], [1.5])
    assert common_grid()[[0, -1]].tolist() == [0.0, 1.0]
    assert (np.diff(common_grid()) > 0).all()


@given(scores, scores)
def test_the_rates_cross_at_the_equal_error_rate(genuine, impostor):
    """Reading the piecewise-linear curves there gives the same rate for both."""
    eer = equal_error_rate(genuine, impostor)
    curve = ErrorCurve.of(genuine, impostor)
    accepted, rejected = curve.fmr, curve.fnmr
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
