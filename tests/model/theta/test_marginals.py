"""Marginals and stationary distributions of given parameters, against long walks and the printed formulas."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM
from tests.model.enumeration import Truth

# Sums of a few hundred terms in double precision.
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def test_stationary_distribution_of_a_chain_that_hardly_moves():
    """The two halves are equally likely, however rare the step between them."""
    rare = [[1.0, 1e-20], [1e-20, 1.0]]
    model = POHMM.from_parameters(
        ["a", "b"],
        np.ones((2, 1)),
        np.ones((2, 2, 1, 1)),
        [("normal", np.zeros((2, 1)), np.ones((2, 1)))],
        event_transmat=rare,
    )
    np.testing.assert_allclose(model.event_prob_, [0.5, 0.5])


def test_marginals_follow_the_printed_formulas():
    truth = Truth.random(np.random.default_rng(5), m=3, n_states=3)
    marginal = POHMM.from_parameters(*truth.arguments()).marginal_
    np.testing.assert_allclose(marginal.startprob, truth.startprob(3), **CLOSE)
    np.testing.assert_allclose(marginal.transmat, truth.step(3, 3), **CLOSE)
    for w in range(3):
        np.testing.assert_allclose(marginal.transmat_from[w], truth.step(w, 3), **CLOSE)
        np.testing.assert_allclose(marginal.transmat_to[w], truth.step(3, w), **CLOSE)
    for k, emission in enumerate(marginal.emission):
        for j in range(3):
            for name, value in truth.params(k, 3, j).items():
                assert emission.params[name][j] == pytest.approx(value, rel=1e-9)


def test_stationary_distribution_of_types_and_states():
    """Π[ω] and Π[j | ω] are what a very long walk of the joint chain spends its time in."""
    truth = Truth.random(np.random.default_rng(6), m=3, n_states=2)
    model = POHMM.from_parameters(*truth.arguments())
    joint = np.block([[truth.trans[v, w] * truth.event_trans[v, w] for w in range(3)] for v in range(3)])
    shares = np.linalg.matrix_power(joint, 4096)[0].reshape(3, 2)
    np.testing.assert_allclose(model.event_prob_, shares.sum(axis=1), **CLOSE)
    np.testing.assert_allclose(model.stationary_, shares / shares.sum(axis=1, keepdims=True), **CLOSE)


def test_exact_marginals_are_those_of_the_joint_process():
    """a[i, j] = P(z' = j | z = i) and the mean of x given z = j, in the stationary joint process."""
    truth = Truth.random(np.random.default_rng(7), m=3, n_states=2, families=("normal",))
    marginal = POHMM.from_parameters(*truth.arguments(), marginals="exact").marginal_
    joint = np.block([[truth.trans[v, w] * truth.event_trans[v, w] for w in range(3)] for v in range(3)])
    shares = np.linalg.matrix_power(joint, 4096)[0]
    flow = (shares[:, None] * joint).reshape(3, 2, 3, 2).sum(axis=(0, 2))
    np.testing.assert_allclose(marginal.transmat, flow / flow.sum(axis=1, keepdims=True), **CLOSE)
    weights = shares.reshape(3, 2) / shares.reshape(3, 2).sum(axis=0)
    loc = truth.emission[0][1]["loc"]
    np.testing.assert_allclose(marginal.emission[0].loc, (weights * loc).sum(axis=0), **CLOSE)
