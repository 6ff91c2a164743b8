"""Compiled walks along event sequences: prior state probabilities, and draws of types and states."""

from __future__ import annotations

from keydyn.arrays import Floats, Integers, compiled


@compiled
def propagate(
    offsets: Integers,
    start_index: Integers,
    startprob: Floats,
    trans_index: Integers,
    transmat: Floats,
    occupancy: Floats,
) -> None:
    """P(z_n | Ω), emissions unseen, into `occupancy` (one row per event)."""
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
