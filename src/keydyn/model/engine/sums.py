"""Sums over events by event type and state, and merging of moments."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from keydyn.arrays import Floats, Integers, compiled

# Sums of weights below this count as zero and are not divided by.
NOTHING = 1e-280


def weighted_sums(rows: Integers, n_rows: int, weights: Floats) -> Floats:
    """Sums of the weights (N, M) by row index, (n_rows, M); indices of n_rows or more are left out."""
    sums = np.zeros((n_rows, weights.shape[1]))
    add_weights(rows, weights, sums)
    return sums


def weighted_moments(
    rows: Integers, n_rows: int, weights: Floats, values: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and sum of squared deviations by row index and state, in two passes.

    NaN values have no weight; indices of n_rows or more are left out. A cell without weight has mean 0.
    """
    count, mean, square = np.zeros((3, n_rows, weights.shape[1]))
    add_moments(rows, weights, values, count, mean, square)
    return count, mean, square


@compiled
def add_weights(rows: Integers, weights: Floats, sums: Floats) -> None:
    """The compiled part of `weighted_sums`: add the weights to `sums`, which must be zero."""
    for n in range(len(rows)):
        if rows[n] < len(sums):
            for j in range(weights.shape[1]):
                sums[rows[n], j] += weights[n, j]


@compiled
def add_moments(
    rows: Integers, weights: Floats, values: Floats, count: Floats, mean: Floats, square: Floats
) -> None:
    """The compiled part of `weighted_moments`: fill `count`, `mean` and `square`, which must be zero."""
    n_rows, n_states = count.shape
    for n in range(len(rows)):
        if rows[n] < n_rows and not math.isnan(values[n]):
            for j in range(n_states):
                count[rows[n], j] += weights[n, j]
                mean[rows[n], j] += weights[n, j] * values[n]
    for row in range(n_rows):
        for j in range(n_states):
            mean[row, j] = mean[row, j] / count[row, j] if count[row, j] > NOTHING else 0.0
    for n in range(len(rows)):
        if rows[n] < n_rows and not math.isnan(values[n]):
            for j in range(n_states):
                deviation = values[n] - mean[rows[n], j]
                square[rows[n], j] += weights[n, j] * deviation * deviation


def mixture_moments(mean: Floats, variance: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture over event types (Eqs. 29 and 31), (M,) each, from arrays (m, M)."""
    together = np.sum(weights * mean, axis=0)
    return together, np.sum(weights * ((mean - together) ** 2 + variance), axis=0)


def merge_moments(
    a: Mapping[str, Floats], b: Mapping[str, Floats], weight: str = "count"
) -> dict[str, Floats]:
    """Weights, means and squared deviations of two sets combined (Chan, Golub and LeVeque)."""
    total = a[weight] + b[weight]
    share = np.divide(b[weight], total, out=np.zeros_like(total), where=total > 0)
    difference = b["mean"] - a["mean"]
    return {
        weight: total,
        "mean": a["mean"] + difference * share,
        "square": a["square"] + b["square"] + difference**2 * a[weight] * share,
    }
