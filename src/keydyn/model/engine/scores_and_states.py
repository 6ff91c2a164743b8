"""Likelihood and hidden states of sequences under one model, from log-densities (N, M, 1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.model.engine.densities import ON_LOG_SCALE, log_densities
from keydyn.model.engine.elementary import logarithm
from keydyn.model.engine.expectation import end_of_block
from keydyn.model.engine.layout import Variant
from keydyn.model.engine.log_domain import (
    filtered_in_logs,
    log_backward,
    log_forward,
    log_predicted,
    log_sum_exp,
    posterior_in_logs,
    safe_log,
)
from keydyn.model.engine.recursions import backward, forward, scale_densities

# So many events, if they are more than a sequence, keep all that is known of them in a core's own cache.
BLOCK = 4096


def room_for(longest: int, n_events: int) -> int:
    """How many events there must be room for: those of a block, or of the longest sequence."""
    return min(max(longest, BLOCK), n_events)


@compiled
def score(
    variant: Variant,
    values: Floats,
    source: Integers,
    offsets: Integers,
    places: Integers,
    step_rows: Integers,
    given_steps: Integers,
    features: Integers,
    cells: Floats,
    log_floor: float,
    given: Floats,
    start: Floats,
    transitions: Floats,
    x: Floats,
    same_x: Floats,
    scores: Floats,
    increments: Floats,
) -> None:
    """ln P(x | Ω) of each sequence, and of each event given those before it if `increments` has rows.

    NaN or −inf where underflow threatens: that is for the log domain.

    `values` (N · K) are those of all events, one after the other. `places` is the model's code of each type
    in the source, and of no type, last. `step_rows` (m + 1)² is the row of the transition table for each pair
    of codes; where that would be too large, `given_steps` (N,) is the row of each event. `x` (n, K, 1), with
    `same_x` (n · K) the same memory, is room for a block of events, the longest sequence at least.
    """
    n_codes, n_states, n_features, room = len(start), start.shape[1], len(features), len(x)
    codes, steps = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    states, density = np.empty((room, n_states, 1)), np.empty((room, n_states, 1))
    largest, worst = np.empty((room, 1)), np.empty(1)
    own, rows = np.empty(room + 1, dtype=np.int64), np.empty(room, dtype=np.int64)
    of_sequences, of_events = np.empty((room, 1)), np.empty(room if len(increments) else 0)
    # Numbers that the compiler does not know: a constant would be a variant of its own.
    none = len(offsets) * 0
    first = none
    while first < len(offsets) - 1:
        end = end_of_block(offsets, first, len(offsets) - 1, room)
        begin, n_events = offsets[first], offsets[end] - offsets[first]
        scaled_values(begin * n_features, n_events * n_features, values, features, same_x)
        before = 0
        for n in range(n_events):
            codes[n] = places[source[begin + n]]
            steps[n] = given_steps[begin + n] if len(given_steps) else step_rows[before * n_codes + codes[n]]
            before = codes[n]
        others = given[begin : begin + n_events]
        log_densities(variant, none, n_events, codes, x, features, cells, log_floor, others, density)
        scale_densities(variant, n_events, density, largest)
        own[0] = 0
        for s in range(end - first):
            own[s + 1] = offsets[first + s + 1] - begin
            rows[s] = codes[own[s]]
        forward(
            variant,
            none,
            end - first,
            own,
            rows,
            steps,
            start,
            transitions,
            density,
            largest,
            states,
            of_sequences,
            worst,
            of_events,
        )
        for s in range(end - first):
            scores[first + s] = of_sequences[s, 0]
        for n in range(n_events if len(increments) else 0):
            increments[begin + n] = of_events[n]
        first = end


@inner
def scaled_values(begin: int, n_values: int, values: Floats, features: Integers, scaled: Floats) -> None:
    """Values on the scale that densities are taken on; a missing one stays NaN."""
    n_features, on_log_scale = len(features), 0
    for k in range(n_features):
        on_log_scale += features[k, ON_LOG_SCALE]
    for n in range(n_values):
        value = values[begin + n]
        scaled[n] = logarithm(value) if value == value else value
    if on_log_scale < n_features:
        # All of them in one loop above, in vector instructions; these are put back.
        for n in range(n_values):
            if features[n % n_features, ON_LOG_SCALE] == 0:
                scaled[n] = values[begin + n]


class Lattice(NamedTuple):
    """All that the functions below see of sequences and a model, in one lane.

    Attributes
    ----------
    log_density : (N, M, 1); offsets : (S + 1,) sequences
    start_rows : (S,) the row of `start` for each sequence; steps : (N,) that of `transitions` for each event
    start : (R, M, 1); transitions : (T, M, M, 1)
    """

    log_density: Floats
    offsets: Integers
    start_rows: Integers
    steps: Integers
    start: Floats
    transitions: Floats


@compiled
def filter_states(
    variant: Variant,
    lattice: Lattice,
    states: Floats,
    increments: Floats,
) -> None:
    """P(z_n | x_1..n, Ω) into `states` (N, M, 1), not normalised, and ln P(x_n | x_1..n−1, Ω).

    Where underflow threatens, the increments of a sequence are NaN.
    """
    scores = np.empty((len(lattice.offsets) - 1, 1))
    forward_all(variant, lattice, states, scores, increments)
    for s in range(len(scores)):
        if not scores[s, 0] > -math.inf:
            increments[lattice.offsets[s] : lattice.offsets[s + 1]] = math.nan


@compiled
def smooth_states(
    variant: Variant,
    weights: Floats,
    lattice: Lattice,
    states: Floats,
    scores: Floats,
    step_sums: Floats,
) -> None:
    """γ (Eq. 10), times the weight, into `states` (N, M, 1), ln P(x | Ω) (S, 1), and Σ ξ by row (T, M, M, 1).

    Where underflow threatens, the score of a sequence is NaN or −inf, and the sequence adds nothing.
    """
    none, n_sequences, inverse = len(weights) * 0, len(weights), np.empty(states.shape[1:])
    forward_all(variant, lattice, states, scores, np.empty(0))
    backward(
        variant,
        none,
        n_sequences,
        lattice.offsets,
        weights,
        lattice.steps,
        lattice.transitions,
        states,
        scores,
        inverse,
        step_sums,
    )


@inner
def forward_all(
    variant: Variant, lattice: Lattice, states: Floats, scores: Floats, increments: Floats
) -> None:
    """`forward` along all sequences."""
    density, largest = lattice.log_density.copy(), np.empty((len(states), 1))
    scale_densities(variant, len(states), density, largest)
    forward(
        variant,
        len(scores) * 0,
        len(scores),
        lattice.offsets,
        lattice.start_rows,
        lattice.steps,
        lattice.start,
        lattice.transitions,
        density,
        largest,
        states,
        scores,
        np.empty(1),
        increments,
    )


@compiled
def filter_in_logs(
    which: Integers,
    lattice: Lattice,
    states: Floats,
    increments: Floats,
) -> None:
    """`filter_states` for some sequences, in the log domain."""
    _, offsets, _, steps, start, transitions = lattice
    for s in which:
        first, last = offsets[s], offsets[s + 1]
        density, row = lattice.log_density[first:last], lattice.start_rows[s]
        filtered_in_logs(first, last, row, steps, start, transitions, density, states, increments)


@compiled
def smooth_in_logs(
    which: Integers,
    weights: Floats,
    lattice: Lattice,
    states: Floats,
    scores: Floats,
    step_sums: Floats,
) -> None:
    """`smooth_states` for some sequences, in the log domain.

    A sequence that the model cannot produce has a score of −inf, γ = 0 and adds nothing to the sums.
    """
    _, offsets, _, steps, start, transitions = lattice
    for s in which:
        first, last = offsets[s], offsets[s + 1]
        density, row = lattice.log_density[first:last], lattice.start_rows[s]
        scores[s, 0] = posterior_in_logs(
            first, last, row, weights[s], steps, start, transitions, density, states, step_sums
        )


@compiled
def viterbi(
    lattice: Lattice,
    states: Integers,
    log_probability: Floats,
) -> None:
    """The most probable path of each sequence and its ln P(x, z | Ω); ties go to the lower state."""
    log_density, offsets, start_rows, steps, start, transitions = lattice
    n_states = log_density.shape[1]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    came_from = np.empty((longest, n_states), dtype=np.int32)
    log_transitions = np.empty((len(transitions), n_states, n_states))
    for row in range(len(transitions)):
        for i in range(n_states):
            for j in range(n_states):
                log_transitions[row, i, j] = safe_log(transitions[row, i, j, 0])
    best, previous = np.empty(n_states), np.empty(n_states)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        for j in range(n_states):
            best[j] = safe_log(start[start_rows[s], j, 0]) + log_density[first, j, 0]
        for n in range(first + 1, last):
            for j in range(n_states):
                previous[j] = best[j]
            for j in range(n_states):
                top, argtop = -math.inf, 0
                for i in range(n_states):
                    value = previous[i] + log_transitions[steps[n], i, j]
                    if value > top:
                        top, argtop = value, i
                best[j] = top + log_density[n, j, 0]
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
def forecast_states(
    lattice: Lattice,
    from_later: bool,
    log_weights: Floats,
    increments: Floats,
) -> None:
    """ln P(z_n | x_1..n−1, Ω) into `log_weights` (N, M), or, `from_later`, given all events but the n-th.

    In the log domain throughout: the posterior divided by the event's own density would be 0/0 just where
    it matters, at an outlier. `increments` (N,) gets ln P(x_n | x_1..n−1, Ω).
    """
    log_density, offsets, start_rows, steps, start, transitions = lattice
    n_states = log_density.shape[1]
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        density, row = log_density[first:last], start_rows[s]
        log_filtered, log_beta = np.empty((last - first, n_states)), np.zeros((last - first, n_states))
        found = increments[first:last]
        log_forward(first, last, row, steps, start, transitions, density, log_filtered, found)
        if found[last - first - 1] == -math.inf:
            continue
        if from_later:
            log_backward(first, last, steps, transitions, density, found, log_beta)
        for n in range(first, last):
            for j in range(n_states):
                if n == first:
                    forecast = safe_log(start[row, j, 0])
                else:
                    forecast = log_predicted(log_filtered[n - first - 1], transitions, steps[n], j)
                log_weights[n, j] = forecast + log_beta[n - first, j]
            total = log_sum_exp(log_weights[n])
            for j in range(n_states):
                log_weights[n, j] -= total
