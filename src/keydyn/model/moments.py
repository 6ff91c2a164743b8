"""Means, variances and sums of parts put together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keydyn.arrays import Floats


def mixture_moments(mean: Floats, variance: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture over event types (Eqs. 29 and 31), (M,) each; arrays (m, M)."""
    together = np.sum(weights * mean, axis=0)
    return together, np.sum(weights * ((mean - together) ** 2 + variance), axis=0)


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
