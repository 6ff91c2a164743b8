"""Algorithm 1 for many models over the same event sequences, compiled: fixed text, folds, surrogates.

A model takes a lane, and when it stops the next one takes its place. Each stops by its own log-likelihood:
its result is that of a fit on its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.estimation.algorithm import GOES_ON, why_stop
from keydyn.model.estimation.cold_start import Prepared, share_of_states, start, working
from keydyn.model.estimation.lane_updates import cells_in_lanes, maximisation_in_lanes, smooth_in_lanes
from keydyn.model.estimation.lanes import LANES, Lanes, expectation_in_lanes, log_precision, new_lanes
from keydyn.model.estimation.tables import Events, Fit, Rules, Truths, carve

# A lane with a probability below this has something to watch for: its model is fitted alone.
TOO_SMALL = 1e-200
ALONE = -3


class Outcomes(NamedTuple):
    """How the fits ended, one entry or row a model.

    Attributes
    ----------
    memory : (B, room) for `carve`; floored : (B, K, m, 2)
    reason : (B,) as of `run`, or `ALONE`; log_likelihood, n_iter : (B,)
    history : (B, n) log-likelihood at each expectation step, the first `n_iter` of a row
    """

    memory: Floats
    floored: Truths
    reason: Integers
    log_likelihood: Floats
    n_iter: Integers
    history: Floats


@compiled
def is_whole(X: Floats, codes: Integers) -> bool:
    """Whether every value is there, and all events have a type or none has."""
    missing, without = 0, 0
    for value in X.ravel():
        missing += value != value
    for code in codes:
        without += code < 0
    return missing == 0 and (without == 0 or without == len(codes))


@compiled
def fit_shared(X: Floats, offsets: Integers, weights: Floats, like: Prepared, rules: Rules) -> Outcomes:
    """Fits from data alone of models to `X` (B, N, K); `like` is the first of them, prepared."""
    n_models, n_events, n_features = X.shape
    n_types, n_pairs = max(len(like.seen), 1), like.n_pairs
    shape = (n_features, n_types, 2, n_pairs, n_pairs)
    memory = np.empty((n_models, len(like.memory)))
    floored = np.zeros((n_models, n_features, n_types, 2), dtype=np.bool_)
    reason, n_iter = np.full(n_models, GOES_ON), np.zeros(n_models, dtype=np.int64)
    log_likelihood = np.full(n_models, math.nan)
    history = np.empty((n_models, min(rules.max_iter, 64)))
    longest = 0
    for s in range(len(weights)):
        longest = max(longest, offsets[s + 1] - offsets[s])
    lanes = new_lanes(n_events, longest, n_features, n_types, n_pairs)
    events = Events(like.codes, offsets, like.steps, weights, like.x, like.first_seen)
    basis = carve(like.memory, shape, like.pairs[0], like.pairs[1], floored[0]).basis
    states = np.empty((n_events, 2))
    taken, waiting, busy = np.full(LANES, -1), 0, 0
    while waiting < n_models or busy > 0:
        for lane in range(LANES):
            if taken[lane] < 0 and waiting < n_models:
                taken[lane] = waiting
                busy += 1
                memory[waiting] = like.memory
                fit = carve(memory[waiting], shape, like.pairs[0], like.pairs[1], floored[waiting])
                x = working(X[waiting], rules.density.log_scale)
                own = Events(like.codes, offsets, like.steps, weights, x, like.first_seen)
                start(X[waiting], own, rules, fit.basis, fit.overall, fit.tables)
                load(lane, x, fit, lanes)
                waiting += 1
        cells_in_lanes(rules.density.df, lanes.loc, lanes.scale, lanes.cells)
        expectation_in_lanes(events, rules.density, lanes)
        for lane in range(LANES):
            b = taken[lane]
            if b < 0:
                continue
            reached, last = lanes.log_likelihood[lane], n_iter[b] == rules.max_iter
            log_likelihood[b] = reached
            if not lanes.worst[lane] >= TOO_SMALL:
                reason[b] = ALONE
            elif last:
                # One expectation step more than iterations, for the log-likelihood of the result.
                reason[b] = 2
            else:
                if n_iter[b] == history.shape[1]:
                    history = np.concatenate((history, np.empty_like(history)), axis=1)
                history[b, n_iter[b]] = reached
                gain = reached - history[b, n_iter[b] - 1] if n_iter[b] > 0 else math.inf
                n_iter[b] += 1
                reason[b] = why_stop(reached, gain, rules.tol)
            if reason[b] != GOES_ON or n_iter[b] == rules.max_iter:
                fit = carve(memory[b], shape, like.pairs[0], like.pairs[1], floored[b])
                if not last:
                    unload_sums(lane, like.codes, rules.density.df, fit, lanes)
                if reason[b] != GOES_ON:
                    unload_tables(lane, fit, lanes)
                    share_of_states(events, fit.tables, states, fit.stationary)
                    taken[lane] = -1
                    busy -= 1
        maximisation_in_lanes(basis, rules, lanes)
        smooth_in_lanes(basis, rules, lanes)
    return Outcomes(memory, floored, reason, log_likelihood, n_iter, history)


@compiled
def load(lane: int, x: Floats, fit: Fit, lanes: Lanes) -> None:
    """A model's values and the parameters that it starts from into its lane."""
    tables = fit.tables
    n_features, n_rows, _ = tables.loc.shape
    for n in range(x.shape[0]):
        for k in range(n_features):
            lanes.x[n, k, lane] = x[n, k]
    for j in range(2):
        for row in range(n_rows):
            lanes.start[row, j, lane] = tables.startprob[row, j]
            for k in range(n_features):
                lanes.loc[k, row, j, lane] = tables.loc[k, row, j]
                lanes.scale[k, row, j, lane] = tables.scale[k, row, j]
                if row < n_rows - 1:
                    lanes.floored[k, row, j, lane] = 0.0
    for k in range(n_features):
        lanes.min_scale[k, lane] = fit.basis.min_scale[k]
    for pair in range(len(tables.transmat)):
        for i in range(2):
            for j in range(2):
                lanes.transmat[pair, 2 * i + j, lane] = tables.transmat[pair, i, j]
    for row in range(n_rows - 1):
        for i in range(2):
            for j in range(2):
                lanes.from_type[row, 2 * i + j, lane] = tables.from_type[row, i, j]
                lanes.to_type[row, 2 * i + j, lane] = tables.to_type[row, i, j]
                lanes.of_all[2 * i + j, lane] = tables.of_all[i, j]


@compiled
def unload_tables(lane: int, fit: Fit, lanes: Lanes) -> None:
    """A lane's parameters."""
    tables = fit.tables
    n_features, n_rows, _ = tables.loc.shape
    for j in range(2):
        for row in range(n_rows):
            tables.startprob[row, j] = lanes.start[row, j, lane]
            for k in range(n_features):
                tables.loc[k, row, j] = lanes.loc[k, row, j, lane]
                tables.scale[k, row, j] = lanes.scale[k, row, j, lane]
                if row < n_rows - 1:
                    tables.floored[k, row, j] = lanes.floored[k, row, j, lane] > 0.0
    for pair in range(len(tables.transmat)):
        for i in range(2):
            for j in range(2):
                tables.transmat[pair, i, j] = lanes.transmat[pair, 2 * i + j, lane]
    for i in range(2):
        for j in range(2):
            tables.of_all[i, j] = lanes.of_all[2 * i + j, lane]
            for row in range(n_rows - 1):
                tables.from_type[row, i, j] = lanes.from_type[row, 2 * i + j, lane]
                tables.to_type[row, i, j] = lanes.to_type[row, 2 * i + j, lane]


@compiled
def unload_sums(lane: int, codes: Integers, df: Floats, fit: Fit, lanes: Lanes) -> None:
    """The sums of a lane's expectation step."""
    sums = fit.sums
    n_features, n_types, _ = sums.mass.shape
    for j in range(2):
        sums.start_all[j] = lanes.start_sums[n_types, j, lane]
        for row in range(n_types):
            sums.start[row, j] = lanes.start_sums[row, j, lane]
            sums.first_occurrence[row, j] = lanes.first_occurrence[row, j, lane]
            sums.occupancy[row, j] = lanes.mass[row, j, lane]
            for k in range(n_features):
                sums.mass[k, row, j] = lanes.mass[row, j, lane]
                sums.mean[k, row, j] = lanes.mean[row, k, j, lane]
                sums.square[k, row, j] = lanes.square[row, k, j, lane]
                sums.precision[k, row, j] = lanes.precision[row, k, j, lane]
    for k in range(n_features):
        if not math.isinf(df[k]):
            log_precision(codes, k, df[k], lane, lanes, sums.log_precision[k])
    for pair in range(len(sums.transitions)):
        for i in range(2):
            for j in range(2):
                sums.transitions[pair, i, j] = lanes.transitions[pair, 2 * i + j, lane]
