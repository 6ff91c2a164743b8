"""What EM does at every step with normal and log-normal emissions, compiled: densities, and lines.

Other families go by their own methods, which say the same in general.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.sums import NOTHING
from keydyn.model.families.family import Family
from keydyn.model.families.normal import HALF_LOG_TAU, LogNormal, Normal


def is_normal(family: Family) -> bool:
    """Whether these are the family's formulas; a subclass may have others."""
    return type(family) in (Normal, LogNormal)


@compiled
def add_normal(
    y: Floats,
    rows: Integers,
    loc: Floats,
    scale: Floats,
    slopes: Floats,
    deviation: Floats,
    on_log_scale: bool,
    least: float,
    total: Floats,
) -> None:
    """ln f(x_n; loc + slope · u_n, scale) of a feature, at least `least`, added to `total` (N, M).

    `y` (N,) is x or, if it is on the log scale, ln x; NaN where it is missing, which adds nothing. `loc` and
    `scale` are (R, M), `slopes` (M,), `deviation` (N,).
    """
    n_states = total.shape[1]
    log_scale = np.log(scale) + HALF_LOG_TAU
    for n in range(len(y)):
        if math.isnan(y[n]):
            continue
        row = rows[n]
        jacobian = y[n] if on_log_scale else 0.0
        for j in range(n_states):
            standard = (y[n] - (loc[row, j] + slopes[j] * deviation[n])) / scale[row, j]
            total[n, j] += max(-0.5 * standard * standard - log_scale[row, j] - jacobian, least)


def level_moments(
    y: Floats, deviation: Floats, weights: Floats, slopes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and squared deviations of y − slope · u in each state, (1, M), in two passes."""
    count, mean, square = np.zeros((3, 1, weights.shape[1]))
    add_level_moments(y, deviation, weights, slopes, count, mean, square)
    return count, mean, square


@compiled
def add_level_moments(
    y: Floats,
    deviation: Floats,
    weights: Floats,
    slopes: Floats,
    count: Floats,
    mean: Floats,
    square: Floats,
) -> None:
    """`level_moments` into sums that are zero."""
    n_states = weights.shape[1]
    for n in range(len(y)):
        if not math.isnan(y[n]):
            for j in range(n_states):
                count[0, j] += weights[n, j]
                mean[0, j] += weights[n, j] * (y[n] - slopes[j] * deviation[n])
    for j in range(n_states):
        mean[0, j] = mean[0, j] / count[0, j] if count[0, j] > NOTHING else 0.0
    for n in range(len(y)):
        if not math.isnan(y[n]):
            for j in range(n_states):
                around = y[n] - slopes[j] * deviation[n] - mean[0, j]
                square[0, j] += weights[n, j] * around * around
