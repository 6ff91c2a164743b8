"""Algorithm 1 for many models over the same event sequences, compiled: fixed text, folds, surrogates.

A model takes a lane, and when it stops the next one takes its place. Each stops by its own log-likelihood,
and everything but the expectation step is done for it alone: its result is that of a fit on its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.algorithm import GOES_ON, maximisation, smooth, why_stop
from keydyn.model.estimation.cold_start import share_of_states
from keydyn.model.estimation.densities import HALF_LOG_TAU
from keydyn.model.estimation.gathering import sum_first_occurrences
from keydyn.model.estimation.lanes import LANES, Lanes, expectation_in_lanes, new_lanes
from keydyn.model.estimation.tables import Events, Fit, Rules, Shape, Truths, carve
from keydyn.model.sums import NOTHING

# A lane with an α below this has something to watch for: its model is fitted alone.
TOO_SMALL = 1e-200
ALONE = -3


class Outcomes(NamedTuple):
    """How the fits ended, one entry or row a model.

    Attributes
    ----------
    reason : (B,) as of `run`, or `ALONE`; log_likelihood, n_iter : (B,)
    history : (B, n) log-likelihood at each expectation step, the first `n_iter` of a row
    """

    reason: Integers
    log_likelihood: Floats
    n_iter: Integers
    history: Floats


@compiled
def fit_shared(
    codes: Integers,
    offsets: Integers,
    steps: Integers,
    weights: Floats,
    x: Floats,
    first_seen: Integers,
    pairs: Integers,
    memory: Floats,
    floored: Truths,
    shape: Shape,
    rules: Rules,
) -> Outcomes:
    """Fits of models to `x` (B, N, K), from what `memory` (B, room) holds, which then has the results."""
    n_models, n_events, n_features = x.shape
    reason = np.full(n_models, GOES_ON)
    log_likelihood, n_iter = np.full(n_models, math.nan), np.zeros(n_models, dtype=np.int64)
    history = np.empty((n_models, min(rules.max_iter, 64)))
    lanes = new_lanes(n_events, n_features, shape[1], shape[3])
    states = np.empty((n_events, 2))
    taken, waiting, busy = np.full(LANES, -1), 0, 0
    while waiting < n_models or busy > 0:
        for lane in range(LANES):
            if taken[lane] < 0 and waiting < n_models:
                taken[lane] = waiting
                busy += 1
                put_values(lane, x[waiting], lanes.x)
                load(lane, carve(memory[waiting], shape, pairs[0], pairs[1], floored[waiting]), lanes)
                waiting += 1
        events = Events(codes, offsets, steps, weights, x[0], first_seen)
        expectation_in_lanes(events, rules.density, lanes)
        for lane in range(LANES):
            b = taken[lane]
            if b < 0:
                continue
            fit = carve(memory[b], shape, pairs[0], pairs[1], floored[b])
            log_likelihood[b] = lanes.log_likelihood[lane]
            if not lanes.worst[lane] >= TOO_SMALL:
                reason[b] = ALONE
            elif n_iter[b] == rules.max_iter:
                reason[b] = 2
            else:
                if n_iter[b] == history.shape[1]:
                    history = np.concatenate((history, np.empty_like(history)), axis=1)
                history[b, n_iter[b]] = log_likelihood[b]
                gain = log_likelihood[b] - history[b, n_iter[b] - 1] if n_iter[b] > 0 else math.inf
                n_iter[b] += 1
                reason[b] = why_stop(log_likelihood[b], gain, rules.tol)
                unload(lane, events, fit, lanes)
                if rules.first_occurrence or reason[b] != GOES_ON or n_iter[b] == rules.max_iter:
                    unload_first_seen(lane, events, lanes.states, states)
                    sum_first_occurrences(events, fit.sums, states)
                if reason[b] == GOES_ON:
                    maximisation(fit.basis, rules, fit.sums, fit.tables)
                    smooth(fit.basis, rules, fit.tables)
                    # After the last iteration once more, for the log-likelihood of the result.
                    load(lane, fit, lanes)
            if reason[b] != GOES_ON:
                share_of_states(events, fit.tables, states, fit.stationary)
                taken[lane] = -1
                busy -= 1
    return Outcomes(reason, log_likelihood, n_iter, history)


@compiled
def put_values(lane: int, x: Floats, lanes_x: Floats) -> None:
    """A model's values into its lane."""
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            lanes_x[n, k, lane] = x[n, k]


@compiled
def load(lane: int, fit: Fit, lanes: Lanes) -> None:
    """A model's parameters into its lane."""
    tables = fit.tables
    n_features, n_types, _ = fit.sums.mass.shape
    for row in range(n_types):
        for j in range(2):
            lanes.start[row, j, lane] = tables.startprob[row, j]
            for k in range(n_features):
                lanes.cells[row, k, j, lane] = tables.loc[k, row, j]
                lanes.cells[row, k, 2 + j, lane] = 1.0 / tables.scale[k, row, j]
                lanes.cells[row, k, 4 + j, lane] = -HALF_LOG_TAU - math.log(tables.scale[k, row, j])
    for pair in range(len(tables.transmat)):
        for i in range(2):
            for j in range(2):
                lanes.transmat[pair, 2 * i + j, lane] = tables.transmat[pair, i, j]


@compiled
def unload_first_seen(lane: int, events: Events, source: Floats, states: Floats) -> None:
    """γ of the events that are the first of their type, out of a lane."""
    for n in events.first_seen:
        for j in range(2):
            states[n, j] = source[n, j, lane]


@compiled
def unload(lane: int, events: Events, fit: Fit, lanes: Lanes) -> None:
    """The sums of a lane's expectation step, but those at first occurrences."""
    sums = fit.sums
    n_features, n_types, _ = sums.mass.shape
    sums.start[:] = 0.0
    sums.start_all[:] = 0.0
    for s in range(len(events.weights)):
        n = events.offsets[s]
        for j in range(2):
            sums.start[events.codes[n], j] += lanes.states[n, j, lane]
            sums.start_all[j] += lanes.states[n, j, lane]
    for row in range(n_types):
        for j in range(2):
            mass = lanes.mass[row, j, lane]
            sums.occupancy[row, j] = mass
            for k in range(n_features):
                sums.mass[k, row, j] = mass
                sums.mean[k, row, j] = lanes.mean[row, k, j, lane] if mass > NOTHING else 0.0
                sums.square[k, row, j] = lanes.square[row, k, j, lane] if mass > NOTHING else 0.0
    for pair in range(len(sums.transitions)):
        for i in range(2):
            for j in range(2):
                sums.transitions[pair, i, j] = lanes.transitions[pair, 2 * i + j, lane]
