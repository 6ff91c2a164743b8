"""What EM does at every step with normal and log-normal emissions, compiled: densities, and lines.

Other families go by their own methods, which say the same in general.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.sums import NOTHING
from keydyn.model.families.family import Family, Stats
from keydyn.model.families.normal import HALF_LOG_TAU, LogNormal, Normal


def is_normal(family: Family) -> bool:
    """Whether these are the family's formulas; a subclass may have others."""
    return type(family) in (Normal, LogNormal)


class Seen(NamedTuple):
    """A feature of N events on its family's working scale, and u, the deviation of the value before each."""

    y: Floats
    deviation: Floats


class NormalTable(NamedTuple):
    """Rows of normal distributions, (R, M); `slopes` (M,) is how much their location changes with u."""

    loc: Floats
    scale: Floats
    slopes: Floats
    on_log_scale: bool


@compiled
def add_normal(seen: Seen, rows: Integers, table: NormalTable, least: float, total: Floats) -> None:
    """Add ln f(x_n; loc + slope · u_n, scale), at least `least`, to `total` (N, M); nothing where missing."""
    y, deviation, (loc, scale, slopes, on_log_scale) = seen.y, seen.deviation, table
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


def level_moments(seen: Seen, weights: Floats, slopes: Floats) -> Stats:
    """Weight, mean and squared deviations of y − slope · u in each state, (1, M), in two passes."""
    moments = np.zeros((3, 1, weights.shape[1]))
    add_level_moments(seen, weights, slopes, moments)
    return dict(zip(("count", "mean", "square"), moments, strict=True))


@compiled
def add_level_moments(seen: Seen, weights: Floats, slopes: Floats, moments: Floats) -> None:
    """`level_moments` into sums that are zero."""
    y, deviation = seen.y, seen.deviation
    count, mean, square = moments[0, 0], moments[1, 0], moments[2, 0]
    n_states = weights.shape[1]
    for n in range(len(y)):
        if not math.isnan(y[n]):
            for j in range(n_states):
                count[j] += weights[n, j]
                mean[j] += weights[n, j] * (y[n] - slopes[j] * deviation[n])
    for j in range(n_states):
        mean[j] = mean[j] / count[j] if count[j] > NOTHING else 0.0
    for n in range(len(y)):
        if not math.isnan(y[n]):
            for j in range(n_states):
                around = y[n] - slopes[j] * deviation[n] - mean[j]
                square[j] += weights[n, j] * around * around
