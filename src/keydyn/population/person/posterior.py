"""What is known of a person after some values: Gaussian algebra, compiled.

A cell's weighted mean is ȳ = V_c z + a_key + b_c + noise, with z ~ N(0, I), a ~ N(0, κ), b ~ N(0, λ) and
noise of variance v = σ²/W, infinite where nothing was typed. The effects b and a are integrated out, so that
only the R × R system of z is solved.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, inner


@inner
def inverted(A: Floats) -> None:
    """A symmetric positive definite matrix replaced by its inverse; the lower triangle is read."""
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


@inner
def effects(
    variance: Floats,
    mean: Floats,
    loadings: Floats,
    cell_key: Integers,
    key_feature: Integers,
    cell_variance: Floats,
    key_variance: Floats,
    S: Floats,
    z: Floats,
    key_mean: Floats,
    key_spread: Floats,
    pull: Floats,
) -> None:
    """The posterior of z (mean, covariance S), of each key's a given z, and how a moves with z: −pull · z."""
    C, R = loadings.shape
    G = len(key_feature)
    linear = np.zeros(R)
    precision, product = np.zeros(G), np.zeros(G)
    for i in range(R):
        for j in range(R):
            S[i, j] = 1.0 if i == j else 0.0
        for key in range(G):
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


@inner
def expected(c: int, key: int, loadings: Floats, z: Floats, key_mean: Floats) -> float:
    """V_c z + E[a]: what a cell's effect is expected to be without its own mean."""
    total: float = key_mean[key]
    for i in range(len(z)):
        total += loadings[c, i] * z[i]
    return total


@inner
def uncertainty(
    c: int, key: int, loadings: Floats, S: Floats, key_spread: Floats, pull: Floats, room: Floats
) -> float:
    """The variance of V_c z + a; `room`, (R,), is there to work in."""
    total: float = key_spread[key]
    R = len(S)
    for j in range(R):
        room[j] = 0.0
    for i in range(R):
        v = loadings[c, i] - pull[key, i]
        for j in range(R):
            room[j] += v * S[i, j]
    for i in range(R):
        total += (loadings[c, i] - pull[key, i]) * room[i]
    return total
