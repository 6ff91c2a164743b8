"""The open-set score against its definition, and at the edges."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from keydyn.decisions.calibration.calibration import HIGHEST, LOWEST, SPREAD_LEANS, open_set_scores


def by_hand(claimed: float, cohort: list[float], keys: float) -> float:
    """The definition, without arrays: the best tenth, and the spread of the upper half."""
    ordered = sorted(cohort, reverse=True)
    best = ordered[: max(round(len(ordered) / 10), 3)]
    middle = statistics.median(ordered)
    upper = ordered[: (len(ordered) + 1) // 2]
    squares = sum((value - middle) ** 2 for value in upper)
    spread = ((squares + SPREAD_LEANS * keys) / (len(upper) + SPREAD_LEANS)) ** 0.5
    return (claimed - statistics.fmean(best)) / spread


@pytest.mark.parametrize("size", [1, 2, 5, 26, 115])
def test_scores_follow_the_definition(size: int) -> None:
    random = np.random.default_rng(size)
    claimed, cohort = random.normal(-50, 5, (4, 3)), random.normal(-55, 8, (4, size))
    left_out = random.random((4, size)) < 0.3
    left_out[:, 0] = False
    keys = np.array([1, 12, 50, 400])
    scores = open_set_scores(claimed, cohort, keys, left_out)
    for n in range(4):
        others = cohort[n, ~left_out[n]].tolist()
        for u in range(3):
            assert scores[n, u] == pytest.approx(by_hand(claimed[n, u], others, int(keys[n])), rel=1e-12)


def test_scores_do_not_depend_on_what_all_templates_share() -> None:
    """More keys, or another unit of time, change all log-likelihoods of a sample alike."""
    random = np.random.default_rng(1)
    claimed, cohort = random.normal(0, 30, (5, 2)), random.normal(0, 30, (5, 40))
    keys = np.full(5, 60)
    scores = open_set_scores(claimed, cohort, keys)
    assert open_set_scores(claimed - 700.0, cohort - 700.0, keys) == pytest.approx(scores, rel=1e-9)
    # Everything twice as far apart, after four times as many keys.
    assert open_set_scores(2 * claimed, 2 * cohort, 4 * keys) == pytest.approx(scores, rel=1e-12)


def test_what_nobody_explains_is_a_number() -> None:
    nothing, something = -np.inf, -10.0
    scores = open_set_scores(
        np.array([[nothing], [something], [nothing], [np.nan]]),
        np.array([[something], [nothing], [nothing], [something]]),
        np.full(4, 20),
    )
    assert scores[[0, 2, 3], 0].tolist() == [LOWEST] * 3
    assert 1e4 < scores[1, 0] <= HIGHEST


def test_a_cohort_needs_somebody() -> None:
    with pytest.raises(ValueError, match="nobody in the cohort"):
        open_set_scores(np.zeros((2, 1)), np.zeros((2, 0)), np.ones(2))
    left_out = np.array([[False, False], [True, True]])
    with pytest.raises(ValueError, match="everybody in the cohort is left out"):
        open_set_scores(np.zeros((2, 1)), np.zeros((2, 2)), np.ones(2), left_out)
