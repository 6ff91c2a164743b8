"""Densities of the location-scale families, an event at a time, compiled."""

from __future__ import annotations

import math

from keydyn.model.arrays import Floats, Integers, compiled

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@compiled
def prepare_cells(scale: Floats, df: Floats, inverse: Floats, constant: Floats) -> None:
    """1 / scale, and ln f at the location, of each feature, type and state; ν = inf is the normal."""
    n_features, n_types, n_states = scale.shape
    for k in range(n_features):
        if math.isinf(df[k]):
            height = -HALF_LOG_TAU
        else:
            half = 0.5 * df[k]
            height = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(math.pi * df[k])
        for row in range(n_types):
            for j in range(n_states):
                inverse[k, row, j] = 1.0 / scale[k, row, j]
                constant[k, row, j] = height - math.log(scale[k, row, j])


@compiled
def log_densities(
    first: int,
    last: int,
    codes: Integers,
    x: Floats,
    loc: Floats,
    inverse: Floats,
    constant: Floats,
    df: Floats,
    log_scale: Floats,
    log_floor: float,
    rows: Floats,
) -> None:
    """ln f(x_n; b[j | Ω_n]) of events `first` … `last` − 1 into `rows`, features multiplied.

    A missing value drops its factor. No single feature's density is less than the floor.
    """
    n_features, n_states = x.shape[1], loc.shape[2]
    for n in range(first, last):
        code = codes[n]
        for j in range(n_states):
            total = 0.0
            for k in range(n_features):
                value = x[n, k]
                if value == value:
                    standard = (value - loc[k, code, j]) * inverse[k, code, j]
                    if math.isinf(df[k]):
                        log_density = constant[k, code, j] - 0.5 * standard * standard
                    else:
                        log_density = constant[k, code, j] - 0.5 * (df[k] + 1.0) * math.log1p(
                            standard * standard / df[k]
                        )
                    total += max(log_density - log_scale[k] * value, log_floor)
            rows[n - first, j] = total


@compiled
def divide_by_largest(rows: Floats, largest: Floats) -> None:
    """Log-densities (N, M) become densities divided by their event's largest, whose logarithm is kept."""
    n_events, n_states = rows.shape
    for n in range(n_events):
        top = rows[n, 0]
        for j in range(1, n_states):
            top = max(top, rows[n, j])
        largest[n] = top
        for j in range(n_states):
            rows[n, j] = math.exp(rows[n, j] - top)
