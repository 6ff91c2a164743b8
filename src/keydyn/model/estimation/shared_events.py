"""Algorithm 1 for many models over the same event sequences, compiled: fixed text, folds, surrogates.

A model takes a lane, and when it stops the next one takes its place. Each stops by its own log-likelihood,
and everything but the expectation step is done for it alone: its result is that of a fit on its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.algorithm import (
    GOES_ON,
    IMPOSSIBLE,
    maximisation,
    smooth,
    why_stop,
)
from keydyn.model.estimation.cold_start import NO_VALUES, count, share_of_states, start, working
from keydyn.model.estimation.densities import HALF_LOG_TAU
from keydyn.model.estimation.expectation import expectation, scores
from keydyn.model.estimation.gathering import sum_first_occurrences
from keydyn.model.estimation.indexing import index_steps
from keydyn.model.estimation.lanes import LANES, Lanes, expectation_in_lanes, new_lanes
from keydyn.model.estimation.tables import Events, Fit, Rules, Scratch, Truths, carve, new_scratch, room
from keydyn.model.sums import NOTHING, first_occurrences

# A lane with an α below this does its expectation step alone, where underflow is watched for.
TOO_SMALL = 1e-200


class Outcomes(NamedTuple):
    """What the fits hand over, one row a model; see `Outcome`.

    Attributes
    ----------
    reason, log_likelihood, n_iter : (B,)
    history : (B, n) log-likelihood at each expectation step, the first `n_iter` of a row
    pairs : (2, P); memory : (B, room); floored : (B, K, m, 2)
    """

    reason: Integers
    log_likelihood: Floats
    n_iter: Integers
    history: Floats
    pairs: Integers
    memory: Floats
    floored: Truths


@compiled
def fit_shared(X: Floats, codes: Integers, offsets: Integers, weights: Floats, rules: Rules) -> Outcomes:
    """A model of each of `X` (B, N, K), from data alone; every code from 0 to the largest occurs."""
    n_models, n_events, n_features = X.shape
    n_types = codes.max() + 1
    pairs, steps, n_pairs = index_steps(codes, offsets, n_types)
    shape = (n_features, n_types, 2, n_pairs, n_pairs)
    memory = np.zeros((n_models, room(shape)))
    floored = np.zeros((n_models, n_features, n_types, 2), dtype=np.bool_)
    reason = np.full(n_models, NO_VALUES)
    log_likelihood, n_iter = np.full(n_models, math.nan), np.zeros(n_models, dtype=np.int64)
    history = np.empty((n_models, min(rules.max_iter, 64)))
    first_seen = first_occurrences(codes, offsets, n_types)
    lanes = new_lanes(n_events, n_features, n_types, n_pairs)
    x = np.empty((LANES, n_events, n_features))
    taken, waiting, busy = np.full(LANES, -1), 0, 0
    scratch = new_scratch(len(weights), n_events, n_features, n_types, 2)
    while waiting < n_models or busy > 0:
        for lane in range(LANES):
            while taken[lane] < 0 and waiting < n_models:
                b = waiting
                waiting += 1
                x[lane] = working(X[b], rules.density.log_scale)
                events = Events(codes, offsets, steps, weights, x[lane], first_seen)
                fit = carve(memory[b], shape, pairs[0], pairs[1], floored[b])
                count(events, rules, fit.basis, fit.counted)
                if start(X[b], events, rules, fit.basis, fit.overall, fit.tables):
                    taken[lane] = b
                    busy += 1
                    lanes.x[:, :, lane] = x[lane]
                    load(lane, fit, lanes)
        expectation_in_lanes(Events(codes, offsets, steps, weights, x[0], first_seen), rules.density, lanes)
        for lane in range(LANES):
            b = taken[lane]
            if b < 0:
                continue
            events = Events(codes, offsets, steps, weights, x[lane], first_seen)
            fit = carve(memory[b], shape, pairs[0], pairs[1], floored[b])
            if n_iter[b] == history.shape[1]:
                history = np.concatenate((history, np.empty_like(history)), axis=1)
            reason[b], log_likelihood[b] = one_iteration(
                lane, events, rules, fit, lanes, scratch, n_iter[b], history[b]
            )
            n_iter[b] += 1
            if reason[b] != GOES_ON:
                share_of_states(events, fit.tables, scratch.states, fit.stationary)
                taken[lane] = -1
                busy -= 1
    return Outcomes(reason, log_likelihood, n_iter, history, pairs, memory, floored)


@compiled
def one_iteration(
    lane: int,
    events: Events,
    rules: Rules,
    fit: Fit,
    lanes: Lanes,
    scratch: Scratch,
    iteration: int,
    history: Floats,
) -> tuple[int, float]:
    """What `run` does after and before an expectation step; the reason to stop and the log-likelihood."""
    log_likelihood = lanes.log_likelihood[lane]
    in_lane = lanes.worst[lane] >= TOO_SMALL
    if in_lane:
        unload(lane, events, fit, lanes)
    else:
        log_likelihood = expectation(events, rules, fit.tables, fit.sums, scratch)
        if not log_likelihood > -math.inf:
            return IMPOSSIBLE, log_likelihood
    history[iteration] = log_likelihood
    gain = log_likelihood - history[iteration - 1] if iteration > 0 else math.inf
    reason = why_stop(log_likelihood, gain, rules.tol)
    last = iteration + 1 == rules.max_iter
    if reason != GOES_ON or last or rules.first_occurrence:
        if in_lane:
            unload_first_seen(lane, events, lanes.states, scratch.states)
        sum_first_occurrences(events, fit.sums, scratch.states)
    if reason != GOES_ON:
        return reason, log_likelihood
    maximisation(fit.basis, rules, fit.sums, fit.tables)
    smooth(fit.basis, rules, fit.tables)
    if last:
        scores(events, rules.density, fit.tables, scratch)
        return 2, float(events.weights @ scratch.scores)
    load(lane, fit, lanes)
    return GOES_ON, log_likelihood


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
