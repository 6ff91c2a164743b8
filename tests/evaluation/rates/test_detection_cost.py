"""Costs by brute force over all thresholds, hulls against scipy, and closed forms for normal scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.stats import norm

from keydyn.evaluation.rates.detection_cost import (
    DetectionCost,
    actual_dcf,
    min_dcf,
    rates_at,
)
from keydyn.evaluation.rates.error_curve import ErrorCurve
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr, pooled_ratios
from tests.evaluation.rates.test_conventions import score_sets

COSTS = (DetectionCost(), DetectionCost(0.01, 1.0, 10.0), DetectionCost(0.97, 2.0, 5.0))


def by_hand(genuine: list[float], impostor: list[float], threshold: float, cost: DetectionCost) -> float:
    """The cost by the definition of NIST's evaluations."""
    misses = sum(score < threshold for score in genuine) / len(genuine)
    matches = sum(score >= threshold for score in impostor) / len(impostor)
    weights = cost.prior * cost.miss, (1 - cost.prior) * cost.false_match
    return (weights[0] * misses + weights[1] * matches) / min(weights)


def test_costs_are_those_of_brute_force_over_all_thresholds() -> None:
    for genuine, impostor in score_sets(120):
        both = np.concatenate([genuine, impostor]).tolist()
        for cost in COSTS:
            every = [
                by_hand(genuine.tolist(), impostor.tolist(), at, cost) for at in (*both, max(both) + 1.0)
            ]
            assert min_dcf(genuine, impostor, cost) == pytest.approx(min(every), rel=1e-12)
            odds = (1 - cost.prior) * cost.false_match / (cost.prior * cost.miss)
            bayes = by_hand(genuine.tolist(), impostor.tolist(), float(np.log(odds)), cost)
            assert actual_dcf(genuine, impostor, cost) == pytest.approx(bayes, rel=1e-12)


def test_the_hull_is_that_of_scipy() -> None:
    checked = 0
    for genuine, impostor in score_sets(300):
        curve = ErrorCurve.of(genuine, impostor)
        points = np.stack([curve.fmr, curve.fnmr], axis=1)
        # The corner (1, 1) lies above every curve, so that what is left of the hull is its lower part.
        cornered = np.unique(np.concatenate([points, [[1.0, 1.0]]]), axis=0)
        hull = curve.hull
        ours = {(round(x, 9), round(y, 9)) for x, y in zip(hull.fmr, hull.fnmr, strict=True)}
        theirs = {tuple(np.round(cornered[v], 9)) for v in ConvexHull(cornered).vertices}
        # Points of ours that scipy does not have lie on a straight edge, up to rounding.
        assert theirs - {(1.0, 1.0)} <= ours
        across, down = np.diff(hull.fmr), -np.diff(hull.fnmr)
        turns = down[:-1] * across[1:] - down[1:] * across[:-1]
        assert (turns >= -1e-12).all()
        checked += len(theirs) > 4
    assert checked > 100


def test_the_hulls_equal_error_rate_is_the_largest_error_over_priors() -> None:
    """The identity of the BOSARIS toolkit; the best prior lies between two of a fine grid."""
    priors = np.linspace(0.0, 1.0, 4001)[:, None]
    for genuine, impostor in score_sets(150):
        curve = ErrorCurve.of(genuine, impostor)
        least = (priors * curve.fnmr + (1 - priors) * curve.fmr).min(axis=1)
        found = curve.hull.eer
        # Between two priors of the grid the error changes by their distance at most.
        assert least.max() <= found + 1e-12 <= least.max() + 1 / 4000 + 1e-12
        assert found <= curve.eer + 1e-12


def test_normal_scores_have_the_closed_forms() -> None:
    random = np.random.default_rng(5)
    n, gap = 200_000, 2.0
    genuine, impostor = random.normal(gap / 2, 1, n), random.normal(-gap / 2, 1, n)
    # Both rates are equal at 0, where they are Φ(−1); four standard errors of a share of n.
    eer, margin = norm.cdf(-gap / 2), 4 * np.sqrt(0.25 / n)
    assert ErrorCurve.of(genuine, impostor).hull.eer == pytest.approx(eer, abs=margin)
    assert sum(rates_at(genuine, impostor, 0.0)) / 2 == pytest.approx(eer, abs=margin)
    cost = DetectionCost(0.2, 1.0, 3.0)
    # The log-likelihood ratio of x is gap · x.
    at = cost.threshold / gap
    exact = float(cost.of(norm.sf(at, -gap / 2), norm.cdf(at, gap / 2)))
    assert actual_dcf(gap * genuine, gap * impostor, cost) == pytest.approx(exact, abs=13 * margin)
    assert min_dcf(genuine, impostor, cost) == pytest.approx(exact, abs=13 * margin)


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.99])
def test_cllr_at_a_prior_is_the_cross_entropy_beside_that_of_the_prior(prior: float) -> None:
    for genuine, impostor in score_sets(60):
        odds = prior / (1 - prior)
        entropy = -prior * np.log2(prior) - (1 - prior) * np.log2(1 - prior)
        own = [np.log2(1 + np.exp(-x) / odds) for x in genuine]
        others = [np.log2(1 + np.exp(x) * odds) for x in impostor]
        by_definition = (prior * np.mean(own) + (1 - prior) * np.mean(others)) / entropy
        assert cllr(genuine, impostor, prior) == pytest.approx(by_definition, rel=1e-10)
        least = min_cllr(genuine, impostor, prior)
        assert least <= cllr(genuine, impostor, prior) + 1e-12
        assert least == pytest.approx(cllr(*pooled_ratios(genuine, impostor), prior), rel=1e-12)
    assert cllr(np.zeros(3), np.zeros(4), prior) == pytest.approx(1.0)


def test_what_is_no_prior_or_cost_is_refused() -> None:
    for prior in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="a prior lies between 0 and 1"):
            DetectionCost(prior)
        with pytest.raises(ValueError, match="a prior lies between 0 and 1"):
            cllr(np.ones(2), np.ones(2), prior)
    with pytest.raises(ValueError, match="cost of a false match must be above 0"):
        DetectionCost(0.5, 1.0, 0.0)
    with pytest.raises(ValueError, match="no genuine scores"):
        actual_dcf(np.ones(0), np.ones(2))
