"""Published definitions against a second implementation, on a thousand sets of scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from keydyn.arrays import Floats
from keydyn.evaluation.rates.conventions import corners, nearest_eer, nearest_fnmr_at_fmr

# Both sides divide the same counts; 1e-12 leaves room for the order of operations.
NEAR = 1e-12


def score_sets(n: int = 1000) -> Iterator[tuple[Floats, Floats]]:
    """Sets of 1 to 60 scores of each kind; every second set has ties, and some scores are all equal."""
    random = np.random.default_rng(34)
    for k in range(n):
        sizes = random.integers(1, 4 if k % 5 == 0 else 60, 2)
        genuine, impostor = random.normal(random.uniform(0, 3), 1, sizes[0]), random.normal(0, 1, sizes[1])
        if k % 2:
            genuine, impostor = np.round(genuine, k % 3), np.round(impostor, k % 3)
        yield (genuine * 0, impostor * 0) if k % 50 == 7 else (genuine, impostor)


def roc_of_the_challenge(genuine: Floats, impostor: Floats) -> tuple[Floats, Floats]:
    """The points of scikit-learn's ROC with its defaults, which the programs of the challenge take."""
    truth = np.repeat([1, 0], [len(genuine), len(impostor)])
    fpr, tpr, _ = roc_curve(truth, np.concatenate([genuine, impostor]))
    return fpr, 1 - tpr


def test_the_rates_of_the_challenge_are_those_at_the_nearest_point() -> None:
    for genuine, impostor in score_sets():
        fpr, fnr = roc_of_the_challenge(genuine, impostor)
        at = np.nanargmin(np.absolute(fnr - fpr))
        assert nearest_eer(genuine, impostor) == pytest.approx(np.mean([fpr[at], fnr[at]]), abs=NEAR)
        for target in (0.1, 0.01, 0.001):
            expected = fnr[np.nanargmin(np.absolute(fpr - target))]
            assert nearest_fnmr_at_fmr(genuine, impostor, target) == pytest.approx(expected, abs=NEAR)


def test_points_within_straight_runs_are_no_corners() -> None:
    fewer = 0
    for genuine, impostor in score_sets(100):
        fmr, fnmr = corners(genuine, impostor)
        theirs = roc_of_the_challenge(genuine, impostor)
        np.testing.assert_allclose(np.stack([fmr, fnmr]), np.stack(theirs), atol=NEAR)
        fewer += len(fmr) < len(np.unique(np.concatenate([genuine, impostor])))
    assert fewer > 50


def test_no_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="no impostor scores"):
        nearest_eer(np.ones(2), np.ones(0))
    with pytest.raises(ValueError, match="genuine score 1 is NaN"):
        nearest_fnmr_at_fmr(np.array([0.0, np.nan]), np.ones(2), 0.1)
