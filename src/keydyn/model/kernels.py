"""The inner loops, compiled.

They see arrays only. For every event there is a row of log-densities, one a state, and an index into the
transition tables for the step that leads to it; for every sequence an index into the start tables. Which
model these came from (a POHMM, whose transition index is the observed pair of event types; a plain HMM;
the m·M lattice of key recovery) is not known here.

Forward and backward work on densities divided by the step's largest and rescale at each step, which needs
no logarithm but one an event. Two things can go wrong with that, and both send the sequence to the
log-domain twin of the loop: a step whose scaled sum is below `TINY`, and a probability that was lost to
underflow at a place where nothing larger has covered it since (`lost` below).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TINY = 1e-280
# A value that was lost is at most TINY of its step's sum; 1e-250 leaves thirty digits above it.
COVERED = 1e-250

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile for this machine, keep the result on disk, and let other threads run meanwhile."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


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
            if lost and predicted < COVERED:
                return False
            value = predicted * math.exp(log_density[n, j] - largest)
            if value < TINY and predicted > 0.0 and log_density[n, j] > -math.inf:
                lost = True
            filtered[n, j] = value
            total += value
        if total < TINY:
            return False
        for j in range(n_states):
            filtered[n, j] /= total
        increments[n] = math.log(total) + largest
    return True


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
    event of this sequence; both are read again for ξ.
    False if the log domain is needed.
    """
    n_states = log_density.shape[1]
    lost = False
    for n in range(last - 1, first - 1, -1):
        row = n - first
        if n == last - 1:
            for j in range(n_states):
                beta[row, j] = 1.0
        else:
            largest = 0.0
            for i in range(n_states):
                value = 0.0
                for j in range(n_states):
                    value += transmat[trans_index[n + 1], i, j] * density[row + 1, j] * beta[row + 1, j]
                if lost and value < COVERED:
                    return False
                beta[row, i] = value
                largest = max(largest, value)
            if largest < TINY:
                return False
            for i in range(n_states):
                beta[row, i] /= largest
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
        if total < COVERED:
            return False
        for j in range(n_states):
            posterior[n, j] /= total
    return True


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
                        joint[i, j] = (
                            alpha[row - 1, i] * transmat[table, i, j] * density[row, j] * beta[row, j]
                        )
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


@compiled
def propagate(
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    occupancy: Floats,
) -> None:
    """P(z_n | Ω), emissions unseen, into `occupancy` (one row an event)."""
    n_states = startprob.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for j in range(n_states):
                if n == offsets[s]:
                    occupancy[n, j] = startprob[start_index[s], j]
                else:
                    value = 0.0
                    for i in range(n_states):
                        value += occupancy[n - 1, i] * transmat[trans_index[n], i, j]
                    occupancy[n, j] = value


@compiled
def weighted_sums(rows: Integers, n_rows: int, weights: Floats) -> Floats:
    """Σ of the weights (N, M) by row index, (n_rows, M); an index of n_rows or more is left out."""
    n_states = weights.shape[1]
    sums = np.zeros((n_rows, n_states))
    for n in range(len(rows)):
        if rows[n] < n_rows:
            for j in range(n_states):
                sums[rows[n], j] += weights[n, j]
    return sums


@compiled
def weighted_moments(
    rows: Integers, n_rows: int, weights: Floats, values: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and sum of squared deviations by row index and state, in two passes.

    A NaN among the values has no weight; an index of n_rows or more is left out. Where a cell has no
    weight, its mean is 0.
    """
    n_states = weights.shape[1]
    count = np.zeros((n_rows, n_states))
    mean = np.zeros((n_rows, n_states))
    square = np.zeros((n_rows, n_states))
    for n in range(len(rows)):
        if rows[n] < n_rows and not math.isnan(values[n]):
            for j in range(n_states):
                count[rows[n], j] += weights[n, j]
                mean[rows[n], j] += weights[n, j] * values[n]
    for row in range(n_rows):
        for j in range(n_states):
            mean[row, j] = mean[row, j] / count[row, j] if count[row, j] > TINY else 0.0
    for n in range(len(rows)):
        if rows[n] < n_rows and not math.isnan(values[n]):
            for j in range(n_states):
                deviation = values[n] - mean[rows[n], j]
                square[rows[n], j] += weights[n, j] * deviation * deviation
    return count, mean, square


@compiled
def walk_events(
    offsets: Integers,
    start: Integers,
    first: Integers,
    successors: Integers,
    bounds: Floats,
    uniforms: Floats,
    path: Integers,
) -> None:
    """Draw event types from a sparse chain.

    `start` holds the first type of each sequence; type r is followed by successors[first[r]:first[r + 1]]
    with cumulative probabilities `bounds`, or, if that is empty, by any type with equal probability.
    """
    n_types = len(first) - 1
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            if n == offsets[s]:
                path[n] = start[s]
                continue
            low, high = first[path[n - 1]], first[path[n - 1] + 1] - 1
            if low > high:
                path[n] = min(int(uniforms[n] * n_types), n_types - 1)
                continue
            while low < high:
                middle = (low + high) // 2
                if uniforms[n] < bounds[middle]:
                    high = middle
                else:
                    low = middle + 1
            path[n] = successors[low]


@compiled
def walk_states(
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    uniforms: Floats,
    states: Integers,
) -> None:
    """Draw hidden states along given event sequences."""
    n_states = startprob.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            below, state = 0.0, 0
            for j in range(n_states):
                if n == offsets[s]:
                    probability = startprob[start_index[s], j]
                else:
                    probability = transmat[trans_index[n], states[n - 1], j]
                if probability > 0.0:
                    state = j
                below += probability
                if uniforms[n] < below:
                    break
            states[n] = state


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
