"""The expectation step, compiled: γ and ξ of every event, and their sums by event type and pair."""

from __future__ import annotations

import math

import numpy as np

from keydyn.model import kernels
from keydyn.model.arrays import Floats, compiled
from keydyn.model.estimation.densities import divide_by_largest, log_densities, prepare_cells
from keydyn.model.estimation.recursions import backward, forward
from keydyn.model.estimation.tables import Events, Rules, Scratch, Sums, Tables
from keydyn.model.estimation.two_states import backward_two, forward_two
from keydyn.model.sums import NOTHING


@compiled
def expectation(events: Events, rules: Rules, tables: Tables, sums: Sums, scratch: Scratch) -> float:
    """Weighted ln P(x | Ω); −inf, and the sums undefined, if the model cannot produce some sequence."""
    log_likelihood = posteriors(events, rules, tables, sums.transitions, scratch)
    if log_likelihood > -math.inf:
        sum_states(events, sums, scratch.states)
        for k in range(events.x.shape[1]):
            if math.isinf(rules.df[k]):
                moments(k, events, scratch.states, sums)
            else:
                precise_moments(k, events, rules.df[k], tables, scratch, sums)
    return log_likelihood


@compiled
def densities(events: Events, rules: Rules, tables: Tables, scratch: Scratch) -> None:
    """Densities of all events, divided by the largest of each."""
    prepare_cells(tables.scale, rules.df, scratch.inverse, scratch.constant)
    log_densities(
        0,
        len(events.codes),
        events.codes,
        events.x,
        tables.loc,
        scratch.inverse,
        scratch.constant,
        rules.df,
        rules.log_scale,
        rules.log_floor,
        scratch.density,
    )
    divide_by_largest(scratch.density, scratch.largest)


@compiled
def posteriors(events: Events, rules: Rules, tables: Tables, transitions: Floats, scratch: Scratch) -> float:
    """Weighted γ of every event into `scratch.states`, Σ ξ into `transitions`; weighted ln P(x | Ω)."""
    densities(events, rules, tables, scratch)
    transitions[:] = 0.0
    two = scratch.states.shape[1] == 2
    log_likelihood = 0.0
    for s in range(len(events.offsets) - 1):
        first, last, weight = events.offsets[s], events.offsets[s + 1], events.weights[s]
        score = sequence_forward(two, first, last, events, tables, scratch)
        if score != score:
            score = careful_posterior(s, events, rules, tables, transitions, scratch)
            if score == -math.inf:
                return score
        elif two:
            backward_two(first, last, weight, events.steps, tables.transmat, scratch.states, transitions)
        else:
            backward(first, last, weight, events.steps, tables.transmat, scratch.states, transitions)
        log_likelihood += weight * score
    return log_likelihood


@compiled
def sequence_forward(
    two: bool, first: int, last: int, events: Events, tables: Tables, scratch: Scratch
) -> float:
    """ln P(x | Ω) of a sequence and its α, or NaN where the careful way is needed."""
    run = (
        first,
        last,
        events.codes[first],
        events.steps,
        tables.startprob,
        tables.transmat,
        scratch.density,
        scratch.largest,
        scratch.states,
    )
    return forward_two(*run) if two else forward(*run)


@compiled
def careful_posterior(
    s: int, events: Events, rules: Rules, tables: Tables, transitions: Floats, scratch: Scratch
) -> float:
    """The same for one sequence by the loops that watch for underflow at every step; ln P(x | Ω)."""
    first, last = events.offsets[s], events.offsets[s + 1]
    rows = careful_densities(first, last, events, rules, tables, scratch)
    posterior, increments = np.empty_like(rows), np.empty(last - first)
    kernels.forward_backward(
        rows,
        np.array([0, last - first]),
        events.codes[first : first + 1],
        tables.startprob,
        events.steps[first:last],
        tables.transmat,
        events.weights[s : s + 1],
        posterior,
        increments,
        transitions,
    )
    for n in range(first, last):
        for j in range(rows.shape[1]):
            scratch.states[n, j] = events.weights[s] * posterior[n - first, j]
    return float(increments.sum())


@compiled
def careful_score(
    first: int, last: int, events: Events, rules: Rules, tables: Tables, scratch: Scratch
) -> float:
    """ln P(x | Ω) of a sequence by the loops that watch for underflow at every step."""
    rows = careful_densities(first, last, events, rules, tables, scratch)
    filtered, increments = np.empty_like(rows), np.empty(last - first)
    kernels.forward(
        rows,
        np.array([0, last - first]),
        events.codes[first : first + 1],
        tables.startprob,
        events.steps[first:last],
        tables.transmat,
        filtered,
        increments,
    )
    return float(increments.sum())


@compiled
def careful_densities(
    first: int, last: int, events: Events, rules: Rules, tables: Tables, scratch: Scratch
) -> Floats:
    """Log-densities of a sequence, (n, M)."""
    rows = np.empty((last - first, tables.loc.shape[2]))
    log_densities(
        first,
        last,
        events.codes,
        events.x,
        tables.loc,
        scratch.inverse,
        scratch.constant,
        rules.df,
        rules.log_scale,
        rules.log_floor,
        rows,
    )
    return rows


@compiled
def likelihood(events: Events, rules: Rules, tables: Tables, scratch: Scratch) -> float:
    """Weighted ln P(x | Ω) alone."""
    densities(events, rules, tables, scratch)
    two = scratch.states.shape[1] == 2
    log_likelihood = 0.0
    for s in range(len(events.offsets) - 1):
        first, last = events.offsets[s], events.offsets[s + 1]
        score = sequence_forward(two, first, last, events, tables, scratch)
        if score != score:
            score = careful_score(first, last, events, rules, tables, scratch)
        log_likelihood += events.weights[s] * score
    return log_likelihood


@compiled
def sum_states(events: Events, sums: Sums, states: Floats) -> None:
    """Expected counts of states: at starts, at first occurrences, and over all events, by type."""
    n_types, n_states = sums.occupancy.shape
    sums.start[:] = 0.0
    sums.start_all[:] = 0.0
    sums.first_occurrence[:] = 0.0
    sums.occupancy[:] = 0.0
    for s in range(len(events.offsets) - 1):
        n = events.offsets[s]
        for j in range(n_states):
            sums.start_all[j] += states[n, j]
            if events.codes[n] < n_types:
                sums.start[events.codes[n], j] += states[n, j]
    for n in events.first_seen:
        if events.codes[n] < n_types:
            for j in range(n_states):
                sums.first_occurrence[events.codes[n], j] += states[n, j]
    for n in range(len(events.codes)):
        if events.codes[n] < n_types:
            for j in range(n_states):
                sums.occupancy[events.codes[n], j] += states[n, j]


@compiled
def moments(k: int, events: Events, states: Floats, sums: Sums) -> None:
    """Weight, mean and squared deviations of a feature by type and state, in two passes."""
    n_types, n_states = sums.occupancy.shape
    for row in range(n_types):
        for j in range(n_states):
            sums.mass[k, row, j] = sums.mean[k, row, j] = sums.square[k, row, j] = 0.0
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                sums.mass[k, code, j] += states[n, j]
                sums.mean[k, code, j] += states[n, j] * value
    for row in range(n_types):
        for j in range(n_states):
            weight = sums.mass[k, row, j]
            sums.mean[k, row, j] = sums.mean[k, row, j] / weight if weight > NOTHING else 0.0
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                deviation = value - sums.mean[k, code, j]
                sums.square[k, code, j] += states[n, j] * deviation * deviation


@compiled
def precise_moments(k: int, events: Events, df: float, tables: Tables, scratch: Scratch, sums: Sums) -> None:
    """The same for Student's t, whose events weigh γ times their expected precision (Liu and Rubin)."""
    n_types, n_states = sums.occupancy.shape
    for row in range(n_types):
        for j in range(n_states):
            sums.mass[k, row, j] = sums.mean[k, row, j] = sums.square[k, row, j] = 0.0
            sums.precision[k, row, j] = sums.log_precision[k, row, j] = 0.0
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                standard = (value - tables.loc[k, code, j]) * scratch.inverse[k, code, j]
                precision = (df + 1.0) / (df + standard * standard)
                weight = scratch.states[n, j] * precision
                sums.mass[k, code, j] += scratch.states[n, j]
                sums.precision[k, code, j] += weight
                sums.mean[k, code, j] += weight * value
                sums.log_precision[k, code, j] += scratch.states[n, j] * (math.log(precision) - precision)
    for row in range(n_types):
        for j in range(n_states):
            weight = sums.precision[k, row, j]
            sums.mean[k, row, j] = sums.mean[k, row, j] / weight if weight > NOTHING else 0.0
    for n in range(len(events.codes)):
        code, value = events.codes[n], events.x[n, k]
        if code < n_types and value == value:
            for j in range(n_states):
                standard = (value - tables.loc[k, code, j]) * scratch.inverse[k, code, j]
                weight = scratch.states[n, j] * (df + 1.0) / (df + standard * standard)
                deviation = value - sums.mean[k, code, j]
                sums.square[k, code, j] += weight * deviation * deviation
