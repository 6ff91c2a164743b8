"""How strongly people, keys and samples differ: λ, κ, η, β0, τ², estimated or fixed by reason.

λ and κ come from people that the loadings were not learnt from: in the others they come out far too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.population.cells import Cells
from keydyn.population.parameters import Strengths
from keydyn.population.person import DEGREES, Person
from keydyn.population.posterior import effects, expected, uncertainty

# Before anything is known.
CELL, KEY, TEMPO, NOISE = 0.2, 0.05, 0.04, 0.5
LEAST_VARIANCE = 1e-3
ITERATIONS = 50
# What final fits take instead of λ as estimated, and how much of η: what was found on other people.
CELL_FACTOR, TEMPO_FACTOR = 1.7, 1.25
LEAST_TEMPO, LEAST_SLOPE_VARIANCE = 0.004, 0.001
# A sample's mean tempo counts up to this many robust deviations: a few samples on another keyboard would
# dominate the variance.
TEMPO_CLIP = 3.0
TEMPO_STEPS = 5


def initial_strengths(n_features: int) -> Strengths:
    """Where estimation begins: no slopes known, any slope possible."""
    return Strengths(
        np.full(n_features, CELL),
        np.full(n_features, KEY),
        np.full(n_features, TEMPO),
        np.full(n_features, NOISE),
        np.zeros((n_features, 3)),
        np.ones((n_features, 3)),
        np.ones(n_features),
    )


def cell_and_key_variances(
    people: Sequence[Person], cells: Cells, loadings: Floats, start: Strengths
) -> tuple[Floats, Floats]:
    """λ and κ by EM over these people, each feature's own."""
    weight = np.array([person.weight for person in people])
    mean = np.array([person.cell_mean for person in people])
    noise = np.array([person.noise for person in people])
    cell, key = start.cell.copy(), start.key.copy()
    for _ in range(ITERATIONS):
        sums = np.zeros((cells.n_features, 4))
        _second_moments(weight, mean, noise, loadings, cells.key, cells.key_feature, cell, key, sums)
        # A feature that nobody has keeps what it has.
        some = (sums[:, 1] > 0) & (sums[:, 3] > 0)
        cell[some] = np.maximum(sums[some, 0] / sums[some, 1], LEAST_VARIANCE)
        key[some] = np.maximum(sums[some, 2] / sums[some, 3], LEAST_VARIANCE)
    return cell, key


@compiled
def _second_moments(
    weight: Floats,
    mean: Floats,
    noise: Floats,
    loadings: Floats,
    cell_key: Integers,
    key_feature: Integers,
    cell_variance: Floats,
    key_variance: Floats,
    sums: Floats,
) -> None:
    """Σ E[b²] and the number of cells typed, Σ E[a²] and the number of keys typed, of each feature."""
    U, C = weight.shape
    R, G = loadings.shape[1], len(key_feature)
    S, z = np.empty((R, R)), np.empty(R)
    key_mean, key_spread, pull = np.empty(G), np.empty(G), np.empty((G, R))
    for u in range(U):
        effects(
            weight[u], mean[u], noise[u], loadings, cell_key, key_feature, cell_variance, key_variance,
            S, z, key_mean, key_spread, pull,
        )  # fmt: skip
        typed = np.zeros(G)
        for c in range(C):
            if weight[u, c] > 0.0:
                key = cell_key[c]
                f = key_feature[key]
                typed[key] = 1.0
                lam = cell_variance[f]
                k = lam / (lam + noise[u, c] / weight[u, c])
                gap = mean[u, c] - expected(c, key, loadings, z, key_mean)
                unsure = uncertainty(c, key, loadings, S, key_spread, pull)
                sums[f, 0] += k * k * (gap * gap + unsure) + lam * (1.0 - k)
                sums[f, 1] += 1.0
        for key in range(G):
            if typed[key] > 0.0:
                f = key_feature[key]
                total = key_mean[key] ** 2 + key_spread[key]
                for i in range(R):
                    for j in range(R):
                        total += pull[key, i] * S[i, j] * pull[key, j]
                sums[f, 2] += total
                sums[f, 3] += 1.0


def tempo_variance(residuals: Sequence[Floats], fallback: Floats) -> Floats:
    """η from the residuals of held-out samples, (n, F) each: the variance of their means beyond noise."""
    means, noise = [], []
    for r in residuals:
        there, values = np.isfinite(r), np.nan_to_num(r)
        mean, total = np.zeros(r.shape[1]), there.sum(axis=0, dtype=np.float64)
        some = total > 0
        for _ in range(TEMPO_STEPS):
            w = there * (DEGREES + 1) / (DEGREES + (values - mean) ** 2)
            total = np.where(some, w.sum(axis=0), 1.0)
            mean = (w * values).sum(axis=0) / total
        means.append(np.where(some, mean, np.nan))
        # The variance of a Student t's weighted mean.
        noise.append(np.where(some, (DEGREES + 3) / (DEGREES + 1) / total, np.nan))
    if not means:
        return fallback
    result = fallback.copy()
    for f in range(len(fallback)):
        d, v = np.array(means)[:, f], np.array(noise)[:, f]
        d, v = d[np.isfinite(d)], v[np.isfinite(v)]
        if len(d) < 2:
            continue
        limit = TEMPO_CLIP * 1.4826 * np.median(np.abs(d))
        clipped = np.clip(d, -limit, limit)
        result[f] = max(TEMPO_FACTOR * float(np.mean(clipped**2 - v)), LEAST_TEMPO)
    return result


def with_slopes(strengths: Strengths, people: Sequence[Person]) -> Strengths:
    """β0 and τ² by moments over people who were fitted with any slope possible; σ² and g² as means.

    A slope's estimate is shrunk to 0 by a prior of variance 1, hardly so with more than a few keys.
    """
    slopes = np.array([person.slopes for person in people])
    unsure = np.array([person.slope_spread for person in people])
    mean = slopes.mean(axis=0)
    variance = slopes.var(axis=0, ddof=1) - unsure.mean(axis=0)
    sums = np.array([person.gain_sums for person in people]).sum(axis=0)
    gain = np.where(sums[:, 0] > 0, sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], 1.0), 1.0)
    return replace(
        strengths,
        noise=np.array([person.own_noise for person in people]).mean(axis=0),
        slope=mean,
        slope_variance=np.maximum(variance, LEAST_SLOPE_VARIANCE),
        gain=np.clip(gain, 0.1, 1.0),
    )
