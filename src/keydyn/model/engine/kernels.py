"""The inner loops, compiled.

They see arrays only. For every event there is a row of log-densities, one a state, and an index into the
transition tables for the step that leads to it; for every sequence an index into the start tables. Which
model these came from (a POHMM, whose transition index is the observed pair of event types; a plain HMM;
the m·M lattice of key recovery) is not known here.

Forward and backward work on densities divided by the step's largest and rescale at each step, which needs
no logarithm but one an event. Two things can go wrong with that, and both send the sequence to the
log-domain twin of the loop: a step whose scaled sum is too small, and a probability that was lost to
underflow at a place where nothing larger has covered it since (`lost` and `underflows` below).
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.log_kernels import log_backward, log_forward, safe_log

TINY = 1e-280
# Underflow takes less than 2.3e-308. Of a step whose sum is at least FAINT that is at most 1e-279, and a
# probability of COVERED or more leaves thirty digits above it.
COVERED = 1e-250
FAINT = 1e-28


@compiled
def underflows(probability: Floats, weight: Floats) -> bool:
    """Whether a term p·w of a sum is too small to be held, though neither p nor w is zero."""
    for i in range(len(probability)):
        if probability[i] > 0.0 and weight[i] > 0.0 and probability[i] * weight[i] < TINY:
            return True
    return False


@compiled
def scaled_forward(
    log_density: Floats,
    first: int,
    last: int,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    filtered: Floats,
    increments: Floats,
) -> bool:
    """α (Eqs. 3–4), normalised at each step, into `filtered`; ln of each step's scale into `increments`.

    Events `first` … `last` − 1 are one sequence. False if the log domain is needed.
    """
    n_states = log_density.shape[1]
    lost = False
    for n in range(first, last):
        largest = -math.inf
        for j in range(n_states):
            largest = max(largest, log_density[n, j])
        if largest == -math.inf:
            return False
        for j in range(n_states):
            filtered[n, j] = startprob[j] if n == first else 0.0
        if n > first:
            for i in range(n_states):
                for j in range(n_states):
                    filtered[n, j] += filtered[n - 1, i] * transmat[trans_index[n], i, j]
        total = 0.0
        for j in range(n_states):
            predicted = filtered[n, j]
            if predicted < COVERED and (
                lost or (n > first and underflows(filtered[n - 1], transmat[trans_index[n], :, j]))
            ):
                return False
            value = predicted * math.exp(log_density[n, j] - largest)
            if value < TINY and predicted > 0.0 and log_density[n, j] > -math.inf:
                lost = True
            filtered[n, j] = value
            total += value
        if total < (FAINT if lost else TINY):
            return False
        for j in range(n_states):
            filtered[n, j] /= total
        increments[n] = math.log(total) + largest
    return True


@compiled
def forward(
    log_density: Floats,
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    filtered: Floats,
    increments: Floats,
) -> None:
    """Every sequence: P(z_n | x_1..n, Ω) into `filtered`, ln P(x_n | x_1..n−1, Ω) into `increments`."""
    n_states = log_density.shape[1]
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        start = startprob[start_index[s]]
        if not scaled_forward(log_density, first, last, start, trans_index, transmat, filtered, increments):
            log_filtered = np.empty((last - first, n_states))
            log_forward(log_density, first, last, start, trans_index, transmat, log_filtered, increments)
            for n in range(first, last):
                for j in range(n_states):
                    filtered[n, j] = math.exp(log_filtered[n - first, j])


@compiled
def scaled_backward(
    log_density: Floats,
    first: int,
    last: int,
    trans_index: Integers,
    transmat: Floats,
    density: Floats,
    beta: Floats,
    posterior: Floats,
) -> bool:
    """β (Eqs. 8–9), divided by its largest at each step, and γ (Eq. 10).

    `posterior` holds the filtered probabilities and gets γ. `density` and `beta` are scratch, one row an
    event of this sequence; `density` then holds the density times β (but for the first event), for ξ.
    False if the log domain is needed.
    """
    n_states = log_density.shape[1]
    lost = False
    for n in range(last - 1, first - 1, -1):
        row = n - first
        scale = 1.0
        if n == last - 1:
            for j in range(n_states):
                beta[row, j] = 1.0
        else:
            for j in range(n_states):
                density[row + 1, j] *= beta[row + 1, j]
            scale = 0.0
            for i in range(n_states):
                value = 0.0
                for j in range(n_states):
                    value += transmat[trans_index[n + 1], i, j] * density[row + 1, j]
                if value < COVERED and (
                    lost or underflows(density[row + 1], transmat[trans_index[n + 1], i])
                ):
                    return False
                beta[row, i] = value
                scale = max(scale, value)
            if scale < TINY:
                return False
            for i in range(n_states):
                beta[row, i] /= scale
        largest = -math.inf
        for j in range(n_states):
            largest = max(largest, log_density[n, j])
        total = 0.0
        for j in range(n_states):
            density[row, j] = math.exp(log_density[n, j] - largest)
            if density[row, j] * beta[row, j] < TINY and log_density[n, j] > -math.inf:
                lost = True
            posterior[n, j] *= beta[row, j]
            total += posterior[n, j]
        # scale · total is what ξ of the step from here adds up to, before it is normalised.
        if scale * total < COVERED:
            return False
        for j in range(n_states):
            posterior[n, j] /= total
    return True


@compiled
def forward_backward(
    log_density: Floats,
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    weights: Floats,
    posterior: Floats,
    increments: Floats,
    transitions: Floats,
) -> None:
    """The expectation step: γ into `posterior`, Σ w ξ (Eq. 13, corrected) added to `transitions`.

    ξ is summed by transition index, `weights` has one entry a sequence. A sequence that the model cannot
    produce gets increments of −inf, γ = 0 and adds nothing.
    """
    n_states = log_density.shape[1]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    density = np.empty((longest, n_states))
    beta = np.empty((longest, n_states))
    alpha = np.empty((longest, n_states))
    joint = np.empty((n_states, n_states))
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        start = startprob[start_index[s]]
        in_logs = not scaled_forward(
            log_density, first, last, start, trans_index, transmat, posterior, increments
        )
        if not in_logs:
            for n in range(first, last):
                for j in range(n_states):
                    alpha[n - first, j] = posterior[n, j]
            in_logs = not scaled_backward(
                log_density, first, last, trans_index, transmat, density, beta, posterior
            )
        if in_logs:
            log_forward(log_density, first, last, start, trans_index, transmat, alpha, increments)
            if increments[last - 1] == -math.inf:
                posterior[first:last] = 0.0
                continue
            log_backward(log_density, first, last, trans_index, transmat, alpha, increments, beta, posterior)
        for n in range(first + 1, last):
            row, table = n - first, trans_index[n]
            total = 0.0
            for i in range(n_states):
                for j in range(n_states):
                    if in_logs:
                        joint[i, j] = math.exp(
                            alpha[row - 1, i]
                            + safe_log(transmat[table, i, j])
                            + log_density[n, j]
                            + beta[row, j]
                            - increments[n]
                        )
                    else:
                        joint[i, j] = alpha[row - 1, i] * transmat[table, i, j] * density[row, j]
                    total += joint[i, j]
            for i in range(n_states):
                for j in range(n_states):
                    transitions[table, i, j] += weights[s] * joint[i, j] / total


@compiled
def viterbi(
    log_density: Floats,
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    states: Integers,
    log_probability: Floats,
) -> None:
    """The most probable path of each sequence and its ln P(x, z | Ω); ties go to the lower state."""
    n_states = log_density.shape[1]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    came_from = np.empty((longest, n_states), dtype=np.int32)
    log_transmat = np.empty_like(transmat)
    for table in range(len(transmat)):
        for i in range(n_states):
            for j in range(n_states):
                log_transmat[table, i, j] = safe_log(transmat[table, i, j])
    best = np.empty(n_states)
    previous = np.empty(n_states)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        for j in range(n_states):
            best[j] = safe_log(startprob[start_index[s], j]) + log_density[first, j]
        for n in range(first + 1, last):
            for j in range(n_states):
                previous[j] = best[j]
            for j in range(n_states):
                top, argtop = -math.inf, 0
                for i in range(n_states):
                    value = previous[i] + log_transmat[trans_index[n], i, j]
                    if value > top:
                        top, argtop = value, i
                best[j] = top + log_density[n, j]
                came_from[n - first, j] = argtop
        state = 0
        for j in range(n_states):
            if best[j] > best[state]:
                state = j
        log_probability[s] = best[state]
        for n in range(last - 1, first - 1, -1):
            states[n] = state
            if n > first:
                state = came_from[n - first, state]
