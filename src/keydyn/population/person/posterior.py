"""The Gaussian posterior of a person's effects, given some values. Compiled.

A cell's weighted mean is ȳ = V_c z + a_key + b_c + noise, with z ~ N(0, I), a ~ N(0, κ), b ~ N(0, λ) and
noise of variance v = σ²/W, infinite for untyped cells. The effects b and a are integrated out, so that only
the R × R system of z is solved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, merged, within
from keydyn.population.cells import Cells


class Differences(NamedTuple):
    """How people differ."""

    loadings: Floats  # V, (C, R)
    key: Integers  # (C,) the key of each cell
    feature: Integers  # (G,) the feature of each key
    # (F,) λ and κ
    cell_variance: Floats
    key_variance: Floats

    @classmethod
    def of(cls, cells: Cells, loadings: Floats, cell_variance: Floats, key_variance: Floats) -> Differences:
        """Make the differences, with the numbering of these cells."""
        return cls(loadings, cells.key, cells.key_feature, cell_variance, key_variance)


class Posterior(NamedTuple):
    """The posterior of a person's factors and of each key's effect, which `effects` fills in."""

    # (R, R) covariance and (R,) mean of the person's factors
    S: Floats
    z: Floats
    # (G,) mean and variance of each key's a, given z
    key_mean: Floats
    key_spread: Floats
    pull: Floats  # (G, R) coefficients of −z in each key's a
    # (R,), (G,) and (G,) work arrays
    linear: Floats
    product: Floats
    precision: Floats

    @classmethod
    def room(cls, differences: Differences) -> Posterior:
        """Empty arrays for the posterior of one person."""
        R, G = differences.loadings.shape[1], len(differences.feature)
        shapes = (R, R), (R,), (G,), (G,), (G, R), (R,), (G,), (G,)
        return cls(*map(np.empty, shapes))


@within
def inverted(A: Floats) -> None:
    """Replace a symmetric positive definite matrix by its inverse; only the lower triangle is read."""
    n = len(A)
    for j in range(n):
        for i in range(j, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(total) if i == j else total / A[j, j]
    for j in range(n):
        A[j, j] = 1.0 / A[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= A[i, k] * A[k, j]
            A[i, j] = total / A[i, i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += A[k, i] * A[k, j]
            A[i, j] = total
            A[j, i] = total


@within
def effects(variance: Floats, mean: Floats, differences: Differences, posterior: Posterior) -> None:
    """Compute the posterior of z and of each key's a, from means of cells and their variances, (C,) each."""
    loadings, cell_key, key_feature, cell_variance, key_variance = differences
    S, z, key_mean, key_spread, pull, linear, product, precision = posterior
    C, R = loadings.shape
    G = len(key_feature)
    for i in range(R):
        linear[i] = 0.0
        for j in range(R):
            S[i, j] = 1.0 if i == j else 0.0
    for key in range(G):
        precision[key], product[key] = 0.0, 0.0
        for i in range(R):
            pull[key, i] = 0.0
    for c in range(C):
        if variance[c] < np.inf:
            key = cell_key[c]
            p = 1.0 / (variance[c] + cell_variance[key_feature[key]])
            precision[key] += p
            product[key] += p * mean[c]
            for i in range(R):
                v = p * loadings[c, i]
                pull[key, i] += v
                linear[i] += v * mean[c]
                for j in range(i + 1):
                    S[i, j] += v * loadings[c, j]
    for key in range(G):
        total = 1.0 / key_variance[key_feature[key]] + precision[key]
        key_spread[key] = 1.0 / total
        key_mean[key] = product[key] / total
        if precision[key] > 0.0:
            for i in range(R):
                linear[i] -= pull[key, i] * key_mean[key]
                for j in range(i + 1):
                    S[i, j] -= pull[key, i] * pull[key, j] / total
            for i in range(R):
                pull[key, i] /= total
    inverted(S)
    for i in range(R):
        z[i] = 0.0
        for j in range(R):
            z[i] += S[i, j] * linear[j]
    for key in range(G):
        for i in range(R):
            key_mean[key] -= pull[key, i] * z[i]


@merged
def expected(c: int, differences: Differences, posterior: Posterior) -> float:
    """V_c z + E[a], the expected effect in a cell before its own mean is considered."""
    loadings, z = differences.loadings, posterior.z
    total: float = posterior.key_mean[differences.key[c]]
    for i in range(len(z)):
        total += loadings[c, i] * z[i]
    return total


@merged
def uncertainty(c: int, differences: Differences, posterior: Posterior) -> float:
    """The variance of V_c z + a."""
    loadings, S, pull, products = differences.loadings, posterior.S, posterior.pull, posterior.linear
    key = differences.key[c]
    total: float = posterior.key_spread[key]
    R = len(S)
    for j in range(R):
        products[j] = 0.0
    for i in range(R):
        v = loadings[c, i] - pull[key, i]
        for j in range(R):
            products[j] += v * S[i, j]
    for i in range(R):
        total += (loadings[c, i] - pull[key, i]) * products[i]
    return total
