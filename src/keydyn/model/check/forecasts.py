"""Compiled: the probability of each state at an event whose own values are not looked at."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.log_kernels import log_backward, log_forward, log_sum_exp, safe_log


@compiled
def state_forecasts(
    log_density: Floats,
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    from_later: bool,
    log_weights: Floats,
    increments: Floats,
) -> None:
    """ln P(z_n | x_1..n−1, Ω) into `log_weights` (N, M), or, `from_later`, given all events but the n-th.

    In the log domain throughout: the posterior divided by the event's own density would be 0/0 just where
    it matters, at an outlier. `increments` (N,) gets ln P(x_n | x_1..n−1, Ω).
    """
    n_states = log_density.shape[1]
    terms = np.empty(n_states)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        log_filtered = np.empty((last - first, n_states))
        start = startprob[start_index[s]]
        log_forward(log_density, first, last, start, trans_index, transmat, log_filtered, increments)
        if increments[last - 1] == -math.inf:
            continue
        log_beta = np.zeros((last - first, n_states))
        if from_later:
            # Into `log_weights` go posteriors, overwritten below.
            log_backward(
                log_density,
                first,
                last,
                trans_index,
                transmat,
                log_filtered,
                increments,
                log_beta,
                log_weights,
            )
        for n in range(first, last):
            for j in range(n_states):
                if n == first:
                    forecast = safe_log(start[j])
                else:
                    for i in range(n_states):
                        terms[i] = log_filtered[n - first - 1, i] + safe_log(transmat[trans_index[n], i, j])
                    forecast = log_sum_exp(terms)
                log_weights[n, j] = forecast + log_beta[n - first, j]
            total = log_sum_exp(log_weights[n])
            for j in range(n_states):
                log_weights[n, j] -= total
