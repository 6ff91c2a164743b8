"""Means, variances and sums of parts put together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keydyn.arrays import Floats, compiled


@compiled
def mixture_of_state(mean: Floats, variance: Floats, weights: Floats, j: int) -> tuple[float, float]:
    """Mean and variance of a mixture over event types (Eqs. 29 and 31) in one state; arrays (m, M)."""
    together, spread = 0.0, 0.0
    for row in range(len(weights)):
        together += weights[row, j] * mean[row, j]
    for row in range(len(weights)):
        spread += weights[row, j] * ((mean[row, j] - together) ** 2 + variance[row, j])
    return together, spread


def mixture_moments(mean: Floats, variance: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The same for all states, (M,) each."""
    of_states = [mixture_of_state(mean, variance, weights, j) for j in range(weights.shape[1])]
    together, spread = np.array(of_states).T
    return together, spread


def add_stats(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: a[name] + b[name] for name in a}


def merge_moments(
    a: Mapping[str, Floats], b: Mapping[str, Floats], weight: str = "count"
) -> dict[str, Floats]:
    """Weights, means and squared deviations of two sets together (Chan, Golub and LeVeque)."""
    total = a[weight] + b[weight]
    share = np.divide(b[weight], total, out=np.zeros_like(total), where=total > 0)
    difference = b["mean"] - a["mean"]
    return {
        weight: total,
        "mean": a["mean"] + difference * share,
        "square": a["square"] + b["square"] + difference**2 * a[weight] * share,
    }
