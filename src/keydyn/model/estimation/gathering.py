"""Sums of γ by event type and state, and moments of each feature weighted by it, compiled."""

from __future__ import annotations

import math

from keydyn.arrays import Floats, compiled, inlined
from keydyn.model.engine.sums import NOTHING
from keydyn.model.estimation.densities import INVERSE, LOC
from keydyn.model.estimation.tables import Events, Sums


@compiled
def sum_states(events: Events, sums: Sums, states: Floats) -> None:
    """Expected counts of states at starts and over all events, by type."""
    n_types, n_states = sums.occupancy.shape
    sums.start[:] = 0.0
    sums.start_all[:] = 0.0
    sums.occupancy[:] = 0.0
    for s in range(len(events.offsets) - 1):
        n = events.offsets[s]
        for j in range(n_states):
            sums.start_all[j] += states[n, j]
            if events.codes[n] < n_types:
                sums.start[events.codes[n], j] += states[n, j]
    for n in range(len(events.codes)):
        if events.codes[n] < n_types:
            for j in range(n_states):
                sums.occupancy[events.codes[n], j] += states[n, j]


@compiled
def sum_first_occurrences(events: Events, sums: Sums, states: Floats) -> None:
    """Expected counts of states at the first event of each type in each sequence."""
    n_types, n_states = sums.occupancy.shape
    sums.first_occurrence[:] = 0.0
    for n in events.first_seen:
        if events.codes[n] < n_types:
            for j in range(n_states):
                sums.first_occurrence[events.codes[n], j] += states[n, j]


@inlined
def sum_moments(events: Events, df: Floats, states: Floats, cells: Floats, sums: Sums) -> None:
    """Weight, mean and squared deviations of each feature by type and state, in two passes."""
    sums.mean[:] = 0.0
    sums.square[:] = 0.0
    if states.shape[1] == 2 and is_plain(df, events.x):
        moments_two(events, states, sums)
    else:
        for k in range(len(df)):
            sums.mass[k] = 0.0
            if math.isinf(df[k]):
                first_moments(k, events, states, sums)
                divide(sums.mass[k], sums.mean[k])
                second_moments(k, events, states, sums)
            else:
                sums.precision[k] = 0.0
                sums.log_precision[k] = 0.0
                precise_first_moments(k, events, df[k], states, cells, sums)
                divide(sums.precision[k], sums.mean[k])
                precise_second_moments(k, events, df[k], states, cells, sums)


@compiled
def is_plain(df: Floats, x: Floats) -> bool:
    """Whether all features are normal and no value is missing."""
    whole = True
    for k in range(len(df)):
        whole = whole and math.isinf(df[k])
    missing = 0
    for value in x.ravel():
        missing += value != value
    return whole and missing == 0


@compiled
def moments_two(events: Events, states: Floats, sums: Sums) -> None:
    """Moments of two states and normal features without a gap.

    Every event has all its values, so that a feature's weights are those of the states.
    """
    n_features, n_types, _ = sums.mass.shape
    for k in range(n_features):
        for n in range(len(events.codes)):
            code, value = events.codes[n], events.x[n, k]
            if code < n_types:
                sums.mean[k, code, 0] += states[n, 0] * value
                sums.mean[k, code, 1] += states[n, 1] * value
        for row in range(n_types):
            sums.mass[k, row, 0], sums.mass[k, row, 1] = sums.occupancy[row, 0], sums.occupancy[row, 1]
        divide(sums.mass[k], sums.mean[k])
        for n in range(len(events.codes)):
            code, value = events.codes[n], events.x[n, k]
            if code < n_types:
                deviation0, deviation1 = value - sums.mean[k, code, 0], value - sums.mean[k, code, 1]
                sums.square[k, code, 0] += states[n, 0] * deviation0 * deviation0
                sums.square[k, code, 1] += states[n, 1] * deviation1 * deviation1


@compiled
def divide(weight: Floats, total: Floats) -> None:
    """Means of cells from their sums; 0 where there is nothing to divide by."""
    n_types, n_states = weight.shape
    for row in range(n_types):
        for j in range(n_states):
            total[row, j] = total[row, j] / weight[row, j] if weight[row, j] > NOTHING else 0.0


@compiled
def first_moments(k: int, events: Events, states: Floats, sums: Sums) -> None:
    """Σγ and Σγx."""
    n_types, n_states = sums.occupancy.shape
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                sums.mass[k, code, j] += states[n, j]
                sums.mean[k, code, j] += states[n, j] * value


@compiled
def second_moments(k: int, events: Events, states: Floats, sums: Sums) -> None:
    """Σγ(x − mean)²."""
    n_types, n_states = sums.occupancy.shape
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                deviation = value - sums.mean[k, code, j]
                sums.square[k, code, j] += states[n, j] * deviation * deviation


@compiled
def precise_first_moments(
    k: int, events: Events, df: float, states: Floats, cells: Floats, sums: Sums
) -> None:
    """The same for Student's t, whose events weigh γ times their expected precision (Liu and Rubin)."""
    n_types, n_states = sums.occupancy.shape
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                standard = (value - cells[k, code, LOC, j]) * cells[k, code, INVERSE, j]
                precision = (df + 1.0) / (df + standard * standard)
                weight = states[n, j] * precision
                sums.mass[k, code, j] += states[n, j]
                sums.precision[k, code, j] += weight
                sums.mean[k, code, j] += weight * value
                sums.log_precision[k, code, j] += states[n, j] * (math.log(precision) - precision)


@compiled
def precise_second_moments(
    k: int, events: Events, df: float, states: Floats, cells: Floats, sums: Sums
) -> None:
    """The same for Student's t."""
    n_types, n_states = sums.occupancy.shape
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                standard = (value - cells[k, code, LOC, j]) * cells[k, code, INVERSE, j]
                weight = states[n, j] * (df + 1.0) / (df + standard * standard)
                deviation = value - sums.mean[k, code, j]
                sums.square[k, code, j] += weight * deviation * deviation
