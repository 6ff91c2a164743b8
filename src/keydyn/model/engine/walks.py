"""Compiled walks along event sequences: prior state probabilities, and random types and states."""

from __future__ import annotations

from typing import NamedTuple

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.layout import Walk


@compiled
def propagate(walk: Walk, occupancy: Floats) -> None:
    """Write P(z_n | Ω), without regard to emissions, to `occupancy` (N, M)."""
    offsets, _, start_rows, steps, start, transitions = walk
    n_states = start.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for j in range(n_states):
                if n == offsets[s]:
                    occupancy[n, j] = start[start_rows[s], j, 0]
                else:
                    value = 0.0
                    for i in range(n_states):
                        value += occupancy[n - 1, i] * transitions[steps[n], i, j, 0]
                    occupancy[n, j] = value


class SparseChain(NamedTuple):
    """A chain of event types: the first type of each sequence, and the possible successors of each type.

    Type r is followed by successors[first[r]:first[r + 1]] with cumulative probabilities `bounds`, or, if
    that is empty, by any type with equal probability.
    """

    start: Integers
    first: Integers
    successors: Integers
    bounds: Floats


@compiled
def walk_events(offsets: Integers, chain: SparseChain, uniforms: Floats, path: Integers) -> None:
    """Draw event types from the chain into `path`, with one uniform number per event."""
    start, first, successors, bounds = chain
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
def walk_states(walk: Walk, uniforms: Floats, states: Integers) -> None:
    """Draw hidden states along given event sequences, with one uniform number per event."""
    offsets, _, start_rows, steps, start, transitions = walk
    n_states = start.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            below, state = 0.0, 0
            for j in range(n_states):
                if n == offsets[s]:
                    probability = start[start_rows[s], j, 0]
                else:
                    probability = transitions[steps[n], states[n - 1], j, 0]
                if probability > 0.0:
                    state = j
                below += probability
                if uniforms[n] < below:
                    break
            states[n] = state
