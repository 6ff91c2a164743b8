"""Compiled likelihoods and hidden states of sequences under one model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner, plain
from keydyn.model.engine.densities import ON_LOG_SCALE, Densities, log_densities, logarithm
from keydyn.model.engine.expectation import end_of_block
from keydyn.model.engine.layout import FitRoom, Observed, Variant, Walk, check_shape
from keydyn.model.engine.log_domain import (
    log_backward,
    log_forward,
    log_predicted,
    log_sum_exp,
    posterior_in_logs,
    safe_log,
)
from keydyn.model.engine.recursions import backward, forward, scale_densities


class GivenSequences(NamedTuple):
    """Sequences in the caller's own coding.

    Attributes
    ----------
    values : (N · K,) of all events, one after the other; codes : (N,) into the source's own event types
    offsets : (S + 1,) bounds of the sequences
    given : (N, M, 1) ln f of the features whose family is not compiled; no rows if there are none
    """

    values: Floats
    codes: Integers
    offsets: Integers
    given: Floats


class Scored(NamedTuple):
    """A model in the form that scoring takes.

    Attributes
    ----------
    places : (V + 1,) the model's code of each event type of the source, and lastly of events without a type
    steps : (N,) the row of `transitions` that leads to each event; empty if `transitions` has all pairs in
        order
    features, log_floor, cells : see `Densities`; start : (R, M, 1); transitions : (T, M, M, 1)
    """

    places: Integers
    steps: Integers
    features: Integers
    log_floor: float
    cells: Floats
    start: Floats
    transitions: Floats


class ScoreRoom(NamedTuple):
    """Output of scoring, `scores` (S,) and `increments` (N,) or empty, and workspace for a block of events.

    `x` (n, K, 1) and `flat_x` (n · K,) share their memory, which must hold the longest sequence.
    """

    scores: Floats
    increments: Floats
    x: Floats
    flat_x: Floats


def check_scoring(source: GivenSequences, model: Scored, room: ScoreRoom) -> None:
    """Raise `ValueError` if the arrays have shapes that do not fit each other."""
    n, n_states, n_features = len(source.codes), model.start.shape[1], len(model.features)
    check_shape("values", source.values, (n * n_features,))
    check_shape("start", model.start, (len(model.start), n_states, 1))
    check_shape("transitions", model.transitions, (len(model.transitions), n_states, n_states, 1))
    check_shape("cells", model.cells, (len(model.start), n_features, model.cells.shape[2], n_states, 1))
    if len(model.steps) != n and len(model.transitions) != len(model.start) ** 2:
        raise ValueError(f"there are {n} events and {len(model.steps)} steps")
    if len(source.given) or n == 0:
        check_shape("given", source.given, (n, n_states, 1))
    check_shape("scores", room.scores, (len(source.offsets) - 1,))
    check_shape("x", room.x, (len(room.x), n_features, 1))


@compiled
def score(
    variant: Variant,
    values: Floats,
    source_codes: Integers,
    offsets: Integers,
    given: Floats,
    places: Integers,
    given_steps: Integers,
    features: Integers,
    log_floor: float,
    cells: Floats,
    start: Floats,
    transitions: Floats,
    of_sequences: Floats,
    increments: Floats,
    x: Floats,
    flat_x: Floats,
) -> None:
    """ln P(x | Ω) of each sequence, and of each event given those before it if `increments` is not empty.

    The score is NaN or −inf where underflow threatens; the caller then uses the log domain. The arguments are
    the fields of `GivenSequences`, `Scored` and `ScoreRoom`, one by one: Numba needs three times as long to
    unpack tuples, a fifth of the time of a short score.
    """
    how, n_room = Densities(features, log_floor, cells), len(x)
    n_codes, n_states, n_features = len(start), start.shape[1], len(features)
    codes, steps = np.empty(n_room, dtype=np.int64), np.empty(n_room, dtype=np.int64)
    states, density = np.empty((n_room, n_states, 1)), np.empty((n_room, n_states, 1))
    largest, worst = np.empty((n_room, 1)), np.empty(1)
    own, rows = np.empty(n_room + 1, dtype=np.int64), np.empty(n_room, dtype=np.int64)
    scores, of_events = np.empty((n_room, 1)), np.empty(n_room if len(increments) else 0)
    walk = Walk(own, worst, rows, steps, start, transitions)
    work = FitRoom(density, largest, states, largest, scores, worst, of_events)
    # A zero that the compiler does not know: with a constant it would compile another variant.
    none = len(offsets) * 0
    first = none
    while first < len(offsets) - 1:
        end = end_of_block(offsets, first, len(offsets) - 1, n_room)
        begin, n_events = offsets[first], offsets[end] - offsets[first]
        scaled_values(begin * n_features, n_events * n_features, values, features, flat_x)
        before = 0
        for n in range(n_events):
            codes[n] = places[source_codes[begin + n]]
            steps[n] = given_steps[begin + n] if len(given_steps) else before * n_codes + codes[n]
            before = codes[n]
        own[0] = 0
        for s in range(end - first):
            own[s + 1] = offsets[first + s + 1] - begin
            rows[s] = codes[own[s]]
        observed = Observed(x, codes, given[begin : begin + n_events])
        log_densities(variant, none, n_events, observed, how, density)
        scale_densities(variant[:2], n_events, density, largest)
        forward(variant[:2], none, end - first, walk, work)
        for s in range(end - first):
            of_sequences[first + s] = scores[s, 0]
        for n in range(n_events if len(increments) else 0):
            increments[begin + n] = of_events[n]
        first = end


@inner
def scaled_values(begin: int, n_values: int, values: Floats, features: Integers, scaled: Floats) -> None:
    """Write values on the scale of their densities to `scaled`; a missing value stays NaN."""
    n_features, on_log_scale = len(features), 0
    for k in range(n_features):
        on_log_scale += features[k, ON_LOG_SCALE]
    for n in range(n_values):
        value = values[begin + n]
        scaled[n] = logarithm(value) if value == value else value
    if on_log_scale < n_features:
        # The loop above takes all logarithms, in vector instructions; here linear values are restored.
        for n in range(n_values):
            if features[n % n_features, ON_LOG_SCALE] == 0:
                scaled[n] = values[begin + n]


class Lattice(NamedTuple):
    """Sequences laid out for the recursions below: log-densities (N, M, 1), and the walk along them."""

    log_density: Floats
    walk: Walk

    @classmethod
    def of(cls, log_density: Floats, walk: Walk) -> Lattice:
        """A lattice from log-densities (N, M); raises `ValueError` if their shape does not fit the walk."""
        check_shape("log_density", log_density, (len(walk.steps), walk.start.shape[1]))
        return cls(plain(log_density)[..., None], walk)

    @property
    def offsets(self) -> Integers:
        """The bounds of the sequences, (S + 1,)."""
        return self.walk.offsets

    @property
    def n_sequences(self) -> int:
        return len(self.walk.offsets) - 1

    def weighted(self, weights: Floats) -> Lattice:
        """The lattice with other weights (S,) of the sequences."""
        check_shape("weights", weights, (self.n_sequences,))
        return self._replace(walk=self.walk._replace(weights=plain(weights)))


@compiled
def filter_states(variant: Variant, lattice: Lattice, states: Floats, increments: Floats) -> None:
    """Write P(z_n | x_1..n, Ω), not normalised, to `states` (N, M, 1), and ln P(x_n | x_1..n−1, Ω).

    Where underflow threatens, the increments of a sequence are NaN.
    """
    offsets = lattice.walk.offsets
    scores = np.empty((len(offsets) - 1, 1))
    forward_all(variant, lattice, work_for(lattice, states, scores, increments))
    for s in range(len(scores)):
        if not scores[s, 0] > -math.inf:
            increments[offsets[s] : offsets[s + 1]] = math.nan


@compiled
def smooth_states(
    variant: Variant, lattice: Lattice, states: Floats, scores: Floats, step_sums: Floats
) -> None:
    """Compute γ (Eq. 10) times the weight (N, M, 1), ln P(x | Ω) (S, 1), and Σ ξ by row (T, M, M, 1).

    Where underflow threatens, the score of a sequence is NaN or −inf, and the sequence adds nothing.
    """
    work = work_for(lattice, states, scores, np.empty(0))
    forward_all(variant, lattice, work)
    backward(variant, len(scores) * 0, len(scores), lattice.walk, work, step_sums)


@inner
def work_for(lattice: Lattice, states: Floats, scores: Floats, increments: Floats) -> FitRoom:
    """Workspace for the recursions along all sequences."""
    density, largest = lattice.log_density.copy(), np.empty((len(states), 1))
    inverse = np.empty((states.shape[1], 1))
    return FitRoom(density, largest, states, inverse, scores, np.empty(1), increments)


@inner
def forward_all(variant: Variant, lattice: Lattice, work: FitRoom) -> None:
    """Run `forward` along all sequences."""
    scale_densities(variant, len(work.states), work.density, work.largest)
    forward(variant, len(work.scores) * 0, len(work.scores), lattice.walk, work)


@compiled
def filter_in_logs(which: Integers, lattice: Lattice, states: Floats, increments: Floats) -> None:
    """Do the work of `filter_states` for some sequences in the log domain."""
    log_density, walk = lattice
    for s in which:
        first, last = walk.offsets[s], walk.offsets[s + 1]
        log_filtered = np.empty((last - first, log_density.shape[1]))
        log_forward(s, walk, log_density[first:last], log_filtered, increments[first:last])
        for row in range(last - first):
            for j in range(log_density.shape[1]):
                states[first + row, j, 0] = math.exp(log_filtered[row, j])


@compiled
def smooth_in_logs(
    which: Integers, lattice: Lattice, states: Floats, scores: Floats, step_sums: Floats
) -> None:
    """Do the work of `smooth_states` for some sequences in the log domain.

    A sequence that the model cannot produce has a score of −inf and γ = 0, and adds nothing to the sums.
    """
    walk = lattice.walk
    for s in which:
        density = lattice.log_density[walk.offsets[s] : walk.offsets[s + 1]]
        scores[s, 0] = posterior_in_logs(s, walk, density, states, step_sums)


@compiled
def viterbi(lattice: Lattice, states: Integers, log_probability: Floats) -> None:
    """The most probable path of each sequence and its ln P(x, z | Ω); ties go to the lower state."""
    log_density, walk = lattice
    offsets, _, start_rows, steps, start, transitions = walk
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
def forecast_states(lattice: Lattice, from_later: bool, log_weights: Floats, increments: Floats) -> None:
    """Write ln P(z_n | x_1..n−1, Ω), or with `from_later` given all events but the n-th, to `log_weights`.

    The log domain is used throughout: the posterior divided by the event's own density would be 0/0 exactly
    where it matters, at an outlier. `increments` (N,) receives ln P(x_n | x_1..n−1, Ω).
    """
    log_density, walk = lattice
    offsets, _, start_rows, steps, start, transitions = walk
    n_states = log_density.shape[1]
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        density, row = log_density[first:last], start_rows[s]
        log_filtered, log_beta = np.empty((last - first, n_states)), np.zeros((last - first, n_states))
        found = increments[first:last]
        log_forward(s, walk, density, log_filtered, found)
        if found[last - first - 1] == -math.inf:
            continue
        if from_later:
            log_backward(s, walk, density, found, log_beta)
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
