"""The scaled recursions and their retreat to the log domain, against plain log-domain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from keydyn import HMM
from keydyn.arrays import compiled
from keydyn.model.engine.layout import FitRoom, Walk, variant_of
from keydyn.model.engine.recursions import forward, scale_densities
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.theta.lattice import filtered, posterior

CLOSE = 1e-8


def in_logs(log_density, start, transmat):
    """ln P, filtered and smoothed probabilities and Σξ, with nothing scaled."""
    with np.errstate(divide="ignore"):
        log_start, log_a = np.log(start), np.log(transmat)
    n, _ = log_density.shape
    alpha, beta = np.empty_like(log_density), np.zeros_like(log_density)
    alpha[0] = log_start + log_density[0]
    for k in range(1, n):
        alpha[k] = logsumexp(alpha[k - 1][:, None] + log_a, axis=0) + log_density[k]
    for k in range(n - 2, -1, -1):
        beta[k] = logsumexp(log_a + log_density[k + 1] + beta[k + 1], axis=1)
    total = logsumexp(alpha[-1])
    if total == -np.inf:
        return total, None, None, None
    steps = [np.exp(alpha[k - 1][:, None] + log_a + log_density[k] + beta[k] - total) for k in range(1, n)]
    shares = np.exp(alpha - logsumexp(alpha, axis=1, keepdims=True))
    return total, shares, np.exp(alpha + beta - total), np.sum(steps, axis=0)


def random_problem(rng):
    """Transitions and densities over hundreds of orders of magnitude, some of them zero."""
    n_states, n = int(rng.integers(2, 6)), int(rng.integers(2, 25))
    size = rng.choice([1.0, 30.0, 150.0, 300.0, 700.0])
    transmat = np.exp(-rng.uniform(0, size, (n_states, n_states)))
    if rng.random() < 0.4:
        transmat[rng.random(transmat.shape) < 0.3] = 0.0
    transmat[np.diag_indices(n_states)] += rng.choice([0.0, 1e-3, 1.0])
    transmat[transmat.sum(axis=1) == 0, 0] = 1.0
    start = np.exp(-rng.uniform(0, size, n_states))
    log_density = -rng.uniform(0, rng.choice([1.0, 100.0, 600.0, 800.0, 2000.0]), (n, n_states))
    if rng.random() < 0.2:
        log_density[rng.random(log_density.shape) < 0.05] = -np.inf
    return log_density, start / start.sum(), transmat / transmat.sum(axis=1, keepdims=True)


def lattice_of(log_density, start, transmat):
    n = len(log_density)
    zeros = np.zeros(n, dtype=np.int64)
    walk = Walk.along(np.array([0, n]), zeros[:1], start[None], zeros, transmat[None])
    return Lattice.of(log_density, walk)


def check(log_density, start, transmat):
    lattice = lattice_of(log_density, start, transmat)
    probabilities, increments = filtered(lattice)
    found = posterior(lattice)
    with np.errstate(invalid="ignore"):
        total, shares, gamma, xi = in_logs(log_density, start, transmat)
    if total == -np.inf:
        assert increments.sum() == -np.inf
        assert found.scores[0] == -np.inf
        return
    assert increments.sum() == pytest.approx(total, rel=CLOSE, abs=CLOSE)
    assert found.scores[0] == pytest.approx(total, rel=CLOSE, abs=CLOSE)
    np.testing.assert_allclose(probabilities, shares, atol=CLOSE)
    np.testing.assert_allclose(found.states, gamma, atol=CLOSE)
    np.testing.assert_allclose(found.transitions[0], xi, atol=CLOSE)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))])
def test_random_extremes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(400):
        check(*random_problem(rng))


@compiled
def scaled_score(variant, walk, work):
    """ln P of one sequence by the scaled recursion alone: NaN where it gives up."""
    scale_densities(variant, len(work.density), work.density, work.largest)
    forward(variant, 0, 1, walk, work)
    return work.scores[0, 0]


def test_both_ways_are_taken():
    """Otherwise the test above would say nothing of one of them."""
    rng = np.random.default_rng(0)
    scaled = 0
    for _ in range(200):
        log_density, start, transmat = random_problem(rng)
        density, walk = lattice_of(log_density.copy(), start, transmat)
        largest, inverse, scores = np.empty((len(density), 1)), np.empty((len(start), 1)), np.empty((1, 1))
        work = FitRoom(density, largest, np.empty_like(density), inverse, scores, np.empty(1), np.empty(0))
        scaled += scaled_score(variant_of(len(start)), walk, work) > -np.inf
    assert 20 < scaled < 180


def test_a_product_that_underflows_to_zero_is_noticed():
    """Neither factor is tiny by itself; the truth is the sum of both paths, worked in logs."""
    model = HMM.from_parameters([0.5, 0.5], [[1, 0], [1, 1e-150]], [("normal", [0.0, 100.0], [1.0, 1.0])])
    x = np.array([[45.4], [56.0], [56.0]])
    density = np.stack([-0.5 * x[:, 0] ** 2, -0.5 * (x[:, 0] - 100) ** 2], axis=1) - 0.5 * np.log(2 * np.pi)
    expected = in_logs(density, np.array([0.5, 0.5]), np.array([[1, 0], [1, 1e-150]]))[0]
    assert model.score(x) == pytest.approx(expected, rel=1e-12)


def test_a_faint_step_that_lost_something_is_noticed():
    log_density = np.array([[-560.0, -760.0, 0.0], [-500.0, 0.0, -500.0]])
    start = np.array([0.5, 0.5, 1e-249])
    transmat = np.array([[1, 1e-240, 1e-249], [0, 1, 1e-249], [0, 0, 1.0]])
    check(log_density, start, transmat)


def test_a_state_lost_before_alpha_is_scaled_back():
    """What was lost to underflow must not pass for evidence once the rest of α was small and is scaled up.

    Transitions are the identity, so that ln P is a sum over two paths, each a product of three densities. The
    first event makes state 0 faint (1e-190), the second loses state 1 (1e-391), the third wants it back.
    """
    x = np.array([54.37, 41.0, 56.0])
    model = HMM.from_parameters([0.5, 0.5], np.eye(2), [("normal", [0.0, 100.0], [1.0, 1.0])])
    log_density = stats.norm.logpdf(x[:, None], [0.0, 100.0])
    paths = np.log(0.5) + log_density.sum(axis=0)
    assert model.score(x[:, None]) == pytest.approx(logsumexp(paths), rel=1e-12)
    shares = np.exp(paths - logsumexp(paths))
    np.testing.assert_allclose(model.predict_proba(x[:, None]), np.tile(shares, (3, 1)), rtol=1e-9)
