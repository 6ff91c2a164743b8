"""The open-set score against its definition, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.calibration.trials import HIGHEST, LOWEST, TEMPER, open_set_scores


def test_scores_are_the_tempered_ratio_to_the_mean_of_the_cohort() -> None:
    random = np.random.default_rng(0)
    claimed, cohort = random.normal(-50, 5, (4, 3)), random.normal(-55, 8, (4, 6))
    left_out = random.random((4, 6)) < 0.3
    left_out[:, 0] = False
    scores = open_set_scores(claimed, cohort, left_out)
    for n in range(4):
        mean = np.mean([np.exp(TEMPER * x) for x, out in zip(cohort[n], left_out[n], strict=True) if not out])
        for u in range(3):
            assert scores[n, u] == pytest.approx(TEMPER * claimed[n, u] - np.log(mean), rel=1e-12)


def test_what_nobody_explains_is_a_number() -> None:
    nothing, something = -np.inf, -10.0
    scores = open_set_scores(
        np.array([[nothing], [something], [nothing]]), np.array([[something], [nothing], [nothing]])
    )
    assert scores[:, 0].tolist() == [LOWEST, HIGHEST, LOWEST]


def test_a_cohort_needs_somebody() -> None:
    with pytest.raises(ValueError, match="nobody in the cohort"):
        open_set_scores(np.zeros((2, 1)), np.zeros((2, 0)))
    with pytest.raises(ValueError, match="everybody in the cohort is left out"):
        open_set_scores(np.zeros((1, 1)), np.zeros((1, 2)), np.ones((1, 2), dtype=bool))
