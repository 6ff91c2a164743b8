"""Compiled sums over events by event type and state."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled

# Below this a sum of weights is nothing to divide by.
NOTHING = 1e-280


@compiled
def weighted_sums(rows: Integers, n_rows: int, weights: Floats) -> Floats:
    """Σ of the weights (N, M) by row index, (n_rows, M); an index of n_rows or more is left out."""
    n_states = weights.shape[1]
    sums = np.zeros((n_rows, n_states))
    for n in range(len(rows)):
        if rows[n] < n_rows:
            for j in range(n_states):
                sums[rows[n], j] += weights[n, j]
    return sums


@compiled
def weighted_moments(
    rows: Integers, n_rows: int, weights: Floats, values: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and sum of squared deviations by row index and state, in two passes.

    A NaN among the values has no weight; an index of n_rows or more is left out. Where a cell has no
    weight, its mean is 0.
    """
    n_states = weights.shape[1]
    count = np.zeros((n_rows, n_states))
    mean = np.zeros((n_rows, n_states))
    square = np.zeros((n_rows, n_states))
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
    return count, mean, square
