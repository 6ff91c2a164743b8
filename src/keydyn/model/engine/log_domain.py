"""The recursions in the log domain, which are slower but correct where scaled probabilities underflow.

The functions take one model, whose tables have a single lane, and one of its sequences, number `s`, whose n
events have the log-densities `log_density` (n, M, 1).
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, inner
from keydyn.model.engine.layout import Walk


@inner
def log_sum_exp(values: Floats) -> float:
    """ln Σ exp(v); −inf if every v is −inf."""
    largest = -math.inf
    for value in values:
        largest = max(largest, value)
    if largest == -math.inf:
        return largest
    total = 0.0
    for value in values:
        total += math.exp(value - largest)
    return largest + math.log(total)


@inner
def safe_log(value: float) -> float:
    """ln v; −inf at zero."""
    return math.log(value) if value > 0.0 else -math.inf


@inner
def log_predicted(log_before: Floats, transitions: Floats, step: int, j: int) -> float:
    """ln Σ α[i] a[i, j] over i, the log-probability of state j after a step."""
    terms = np.empty(len(log_before))
    for i in range(len(log_before)):
        terms[i] = log_before[i] + safe_log(transitions[step, i, j, 0])
    return log_sum_exp(terms)


@inner
def log_forward(s: int, walk: Walk, log_density: Floats, log_filtered: Floats, increments: Floats) -> None:
    """Compute ln α (n, M) of a sequence, normalised at each step, and ln P(x_n | x_1..n−1, Ω) (n,).

    From the first impossible event on, every increment is −inf.
    """
    n_states, first, last = log_density.shape[1], walk.offsets[s], walk.offsets[s + 1]
    for row in range(last - first):
        for j in range(n_states):
            if row == 0:
                predicted = safe_log(walk.start[walk.start_rows[s], j, 0])
            else:
                predicted = log_predicted(log_filtered[row - 1], walk.transitions, walk.steps[first + row], j)
            log_filtered[row, j] = predicted + log_density[row, j, 0]
        total = log_sum_exp(log_filtered[row])
        increments[row] = total
        if total > -math.inf:
            for j in range(n_states):
                log_filtered[row, j] -= total


@inner
def log_backward(s: int, walk: Walk, log_density: Floats, increments: Floats, log_beta: Floats) -> None:
    """Compute ln β (n, M) of a sequence, scaled like ln α of `log_forward`."""
    n_states, first, last = log_density.shape[1], walk.offsets[s], walk.offsets[s + 1]
    terms = np.empty(n_states)
    log_beta[last - first - 1] = 0.0
    for row in range(last - first - 2, -1, -1):
        for i in range(n_states):
            for j in range(n_states):
                terms[j] = (
                    safe_log(walk.transitions[walk.steps[first + row + 1], i, j, 0])
                    + log_density[row + 1, j, 0]
                    + log_beta[row + 1, j]
                )
            log_beta[row, i] = log_sum_exp(terms) - increments[row + 1]


@inner
def posterior_in_logs(s: int, walk: Walk, log_density: Floats, states: Floats, step_sums: Floats) -> float:
    """Write γ of a sequence times its weight to `states`, and add ξ to `step_sums`; return ln P(x | Ω).

    A sequence that the model cannot produce gives −inf and γ = 0, and adds nothing to the sums.
    """
    n_states, first, last, weight = (
        log_density.shape[1],
        walk.offsets[s],
        walk.offsets[s + 1],
        walk.weights[s],
    )
    alpha, beta = np.empty((last - first, n_states)), np.empty((last - first, n_states))
    increments, terms = np.empty(last - first), np.empty(n_states)
    log_forward(s, walk, log_density, alpha, increments)
    if increments[last - first - 1] == -math.inf:
        states[first:last] = 0.0
        return -math.inf
    log_backward(s, walk, log_density, increments, beta)
    for row in range(last - first):
        for j in range(n_states):
            terms[j] = alpha[row, j] + beta[row, j]
        total = log_sum_exp(terms)
        for j in range(n_states):
            states[first + row, j, 0] = weight * math.exp(terms[j] - total)
    joint = np.empty((n_states, n_states))
    for row in range(1, last - first):
        step = walk.steps[first + row]
        for i in range(n_states):
            for j in range(n_states):
                joint[i, j] = (
                    alpha[row - 1, i]
                    + safe_log(walk.transitions[step, i, j, 0])
                    + log_density[row, j, 0]
                    + beta[row, j]
                )
        total = log_sum_exp(joint.ravel())
        for i in range(n_states):
            for j in range(n_states):
                step_sums[step, i, j, 0] += weight * math.exp(joint[i, j] - total)
    return float(increments.sum())
