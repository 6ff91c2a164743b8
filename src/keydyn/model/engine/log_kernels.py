"""The recursions in the log domain: slower, and right wherever scaled probabilities underflow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, compiled


@compiled
def log_sum_exp(values: Floats) -> float:
    """ln Σ exp(v), −inf where every v is."""
    largest = -math.inf
    for value in values:
        largest = max(largest, value)
    if largest == -math.inf:
        return largest
    total = 0.0
    for value in values:
        total += math.exp(value - largest)
    return largest + math.log(total)


@compiled
def safe_log(value: float) -> float:
    """ln v, −inf at zero."""
    return math.log(value) if value > 0.0 else -math.inf


@compiled
def log_forward(
    log_density: Floats,
    first: int,
    last: int,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    log_filtered: Floats,
    increments: Floats,
) -> None:
    """The same in the log domain: ln α, normalised at each step (row n − first of `log_filtered`).

    From the first impossible event on, every increment is −inf.
    """
    n_states = log_density.shape[1]
    terms = np.empty(n_states)
    for n in range(first, last):
        row = n - first
        for j in range(n_states):
            if row == 0:
                predicted = safe_log(startprob[j])
            else:
                for i in range(n_states):
                    terms[i] = log_filtered[row - 1, i] + safe_log(transmat[trans_index[n], i, j])
                predicted = log_sum_exp(terms)
            log_filtered[row, j] = predicted + log_density[n, j]
        total = log_sum_exp(log_filtered[row])
        increments[n] = total
        if total > -math.inf:
            for j in range(n_states):
                log_filtered[row, j] -= total


@compiled
def log_backward(
    log_density: Floats,
    first: int,
    last: int,
    trans_index: Integers,
    transmat: Floats,
    log_filtered: Floats,
    increments: Floats,
    log_beta: Floats,
    posterior: Floats,
) -> None:
    """ln β with the forward loop's scale, and γ."""
    n_states = log_density.shape[1]
    terms = np.empty(n_states)
    for n in range(last - 1, first - 1, -1):
        row = n - first
        for i in range(n_states):
            if n == last - 1:
                log_beta[row, i] = 0.0
            else:
                for j in range(n_states):
                    terms[j] = (
                        safe_log(transmat[trans_index[n + 1], i, j])
                        + log_density[n + 1, j]
                        + log_beta[row + 1, j]
                    )
                log_beta[row, i] = log_sum_exp(terms) - increments[n + 1]
        for j in range(n_states):
            terms[j] = log_filtered[row, j] + log_beta[row, j]
        total = log_sum_exp(terms)
        for j in range(n_states):
            posterior[n, j] = math.exp(terms[j] - total)


@compiled
def filter_step(
    log_filtered: Floats,
    begun: NDArray[np.bool_],
    startprob: Floats,
    transmat: Floats,
    log_density: Floats,
    increments: Floats,
) -> None:
    """One step of the forward recursion in each of B streams, in the log domain.

    `log_filtered` (B, M) is replaced. `startprob` (B, M) is used by streams that have not begun, `transmat`
    (B, M, M) by the others.
    """
    n_states = log_filtered.shape[1]
    terms = np.empty(n_states)
    joint = np.empty(n_states)
    for b in range(len(log_filtered)):
        for j in range(n_states):
            if begun[b]:
                for i in range(n_states):
                    terms[i] = log_filtered[b, i] + safe_log(transmat[b, i, j])
                joint[j] = log_sum_exp(terms) + log_density[b, j]
            else:
                joint[j] = safe_log(startprob[b, j]) + log_density[b, j]
        total = log_sum_exp(joint)
        increments[b] = total
        for j in range(n_states):
            log_filtered[b, j] = joint[j] - total if total > -math.inf else -math.inf
