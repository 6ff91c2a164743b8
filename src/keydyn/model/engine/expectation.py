"""The expectation step: γ and ξ of every event, and their sums by event type and pair."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.model.engine.densities import (
    CATEGORICAL,
    CUSTOM,
    GAMMA,
    INVERSE,
    LOC,
    NORMAL,
    POWER,
    STUDENT,
    Features,
    log_densities,
    prepare_cells,
)
from keydyn.model.engine.elementary import logarithm
from keydyn.model.engine.log_domain import posterior_in_logs
from keydyn.model.engine.recursions import FAINT, backward, forward, scale_densities
from keydyn.model.engine.variants import Variant, fits, lanes_of, states_of

# Below this a sum of weights is nothing to divide by.
NOTHING = 1e-280
NONE = np.empty(0)
# What stands in the moments of a normal or t feature: Σγ, the mean, Σγ(x − mean)², and of the t families the
# sum of the weights that the mean was taken with.
MASS, MEAN, SQUARE, PRECISION = range(4)
# Of a gamma: Σγ, Σγx, Σγ ln x; of an exponential: the first two; of a categorical: Σγ of each category.
SUM, LOG_SUM = 1, 2


class Events(NamedTuple):
    """The training events of a model, or of models side by side.

    Attributes
    ----------
    codes : (N,) event types, m where unknown
    steps : (N,) the row of the transition table that leads to each event; any at the start of a sequence
    offsets : (S + 1,) sequences; weights : (S,); start_rows : (S,) the type of the first event
    first_seen : events that are the first of their type in their sequence
    """

    codes: Integers
    steps: Integers
    offsets: Integers
    weights: Floats
    start_rows: Integers
    first_seen: Integers


class Tables(NamedTuple):
    """θ in lanes: the row after the last is the marginal, for types that are unknown.

    Attributes
    ----------
    start : (m + 1, M, L)
    transitions : (P + 2m + 1, M, M, L) of the observed pairs; then a[i, j | ψ] of each earlier type,
        a[i, j | ω] of each later one, and a[i, j]
    emission : (m + 1, F, M, L) the parameters of all features
    """

    start: Floats
    transitions: Floats
    emission: Floats


class Sums(NamedTuple):
    """Expected counts, laid out like the tables.

    Attributes
    ----------
    start : (m + 1, M, L) Σγ at the first events of sequences, by type; the last row of all types
    first_seen : (m + 1, M, L) Σγ at the first event of each type in each sequence
    transitions : (P + 2m + 1, M, M, L) Σξ
    moments : (m + 1, K, W, M, L) of each feature, see above
    log_likelihood, worst : (L,)
    """

    start: Floats
    first_seen: Floats
    transitions: Floats
    moments: Floats
    log_likelihood: Floats
    worst: Floats


class Scratch(NamedTuple):
    """Room that is used again at each iteration.

    Attributes
    ----------
    cells : (m + 1, K, W, M, L) coefficients of the densities
    density : (n, M, L), largest : (n, L) of some sequences; states : (N, M, L) α, then γ
    inverse : (M, L); scores : (S, L) ln P(x | Ω)
    """

    cells: Floats
    density: Floats
    largest: Floats
    states: Floats
    inverse: Floats
    scores: Floats


@compiled
def expectation(
    variant: Variant,
    events: Events,
    x: Floats,
    given: Floats,
    features: Features,
    log_floor: float,
    tables: Tables,
    sums: Sums,
    scratch: Scratch,
) -> None:
    """γ of every event into `scratch.states`, and all sums; see the classes above.

    A sequence is dealt with as a whole while it is in the nearest cache. A single model is helped out in the
    log domain where underflow threatens; its log-likelihood is −inf, and the sums undefined, if it cannot
    produce some sequence.
    """
    cells, states, scores = scratch.cells, scratch.states, scratch.scores
    prepare_cells(variant, features, tables.emission, cells)
    sums.start[:] = 0.0
    sums.first_seen[:] = 0.0
    sums.transitions[:] = 0.0
    sums.moments[:] = 0.0
    sums.worst[:] = 1.0
    n_sequences, s = len(events.weights), 0
    while s < n_sequences:
        end = end_of_block(events.offsets, s, len(scratch.density))
        begin, stop = events.offsets[s], events.offsets[end]
        log_densities(
            variant, begin, stop, events.codes, x, features, cells, log_floor, given, scratch.density
        )
        scale_densities(variant, stop - begin, scratch.density, scratch.largest)
        forward(
            variant,
            s,
            end,
            events.offsets,
            events.start_rows,
            events.steps,
            tables.start,
            tables.transitions,
            scratch.density,
            scratch.largest,
            states,
            scores,
            sums.worst,
            NONE,
        )
        backward(
            variant,
            s,
            end,
            events.offsets,
            events.weights,
            events.steps,
            tables.transitions,
            states,
            scores,
            scratch.inverse,
            sums.transitions,
        )
        if lanes_of(variant) == 1:
            for lost in range(s, end):
                if not scores[lost, 0] > -math.inf:
                    first, last = events.offsets[lost], events.offsets[lost + 1]
                    log_densities(
                        variant,
                        first,
                        last,
                        events.codes,
                        x,
                        features,
                        cells,
                        log_floor,
                        given,
                        scratch.density,
                    )
                    scores[lost, 0] = posterior_in_logs(
                        first,
                        last,
                        events.start_rows[lost],
                        events.weights[lost],
                        events.steps,
                        tables.start,
                        tables.transitions,
                        scratch.density,
                        states,
                        sums.transitions,
                    )
        first_moments(variant, begin, stop, events.codes, x, features, cells, states, sums.moments)
        s = end
    second_moments(variant, events.codes, x, features, cells, states, sums.moments)
    add_states(variant, events.offsets[:n_sequences], events.codes, states, sums.start)
    add_states(variant, events.first_seen, events.codes, states, sums.first_seen)
    add_scores(variant, events.weights, scores, sums)


@inner
def end_of_block(offsets: Integers, s: int, room: int) -> int:
    """The sequence up to which there is room for all events from sequence `s` on; one at least."""
    end = s + 1
    while end < len(offsets) - 1 and offsets[end + 1] - offsets[s] <= room:
        end += 1
    return end


@inner
def add_scores(variant: Variant, weights: Floats, scores: Floats, sums: Sums) -> None:
    """The weighted log-likelihood; NaN in lanes where something could have been lost."""
    for lane in range(lanes_of(variant)):
        sums.log_likelihood[lane] = 0.0 if sums.worst[lane] >= FAINT else math.nan
    for s in range(len(weights)):
        for lane in range(lanes_of(variant)):
            sums.log_likelihood[lane] += weights[s] * scores[s, lane]


@inner
def add_states(variant: Variant, which: Integers, codes: Integers, states: Floats, sums: Floats) -> None:
    """γ of some events by event type, and of all of them in the last row."""
    last = len(sums) - 1
    for n in which:
        for j in range(states_of(variant, states.shape[1])):
            for lane in range(lanes_of(variant)):
                if codes[n] < last:
                    sums[codes[n], j, lane] += states[n, j, lane]
                sums[last, j, lane] += states[n, j, lane]


@inner
def precision_of(value: float, loc: float, inverse: float, power: float) -> float:
    """What an event weighs under Student's t (Liu and Rubin): (ν + 1) / (ν + z²)."""
    standard = (value - loc) * inverse
    return 2.0 * power / ((2.0 * power - 1.0) * (1.0 + standard * standard))


@inner
def first_moments(
    variant: Variant,
    first: int,
    last: int,
    codes: Integers,
    x: Floats,
    features: Features,
    cells: Floats,
    states: Floats,
    moments: Floats,
) -> None:
    """Weights and sums of each feature by event type and state; a missing value weighs nothing."""
    n_states, n_lanes = states_of(variant, states.shape[1]), lanes_of(variant)
    if not (
        fits(variant, n_states, states.shape[1:])
        and fits(variant, n_states, cells.shape[3:])
        and fits(variant, n_states, moments.shape[3:])
        and x.shape[2] == n_lanes
    ):
        return
    for k in range(len(features.kind)):
        kind = features.kind[k]
        if kind == NORMAL:
            for n in range(first, last):
                code = codes[n]
                for j in range(n_states):
                    for lane in range(n_lanes):
                        value = x[n, k, lane]
                        weight = states[n, j, lane] if value == value else 0.0
                        moments[code, k, MASS, j, lane] += weight
                        moments[code, k, MEAN, j, lane] += weight * (value if value == value else 0.0)
        elif kind == CATEGORICAL:
            for n in range(first, last):
                for j in range(n_states):
                    for lane in range(n_lanes):
                        if x[n, k, lane] == x[n, k, lane]:
                            moments[codes[n], k, int(x[n, k, lane]), j, lane] += states[n, j, lane]
        elif kind != CUSTOM:
            for n in range(first, last):
                code = codes[n]
                for j in range(n_states):
                    for lane in range(n_lanes):
                        value = x[n, k, lane] if x[n, k, lane] == x[n, k, lane] else 1.0
                        weight = states[n, j, lane] if x[n, k, lane] == x[n, k, lane] else 0.0
                        moments[code, k, MASS, j, lane] += weight
                        if kind == STUDENT:
                            loc, inverse = cells[code, k, LOC, j, lane], cells[code, k, INVERSE, j, lane]
                            weight *= precision_of(value, loc, inverse, cells[code, k, POWER, j, lane])
                            moments[code, k, PRECISION, j, lane] += weight
                        elif kind == GAMMA:
                            moments[code, k, LOG_SUM, j, lane] += weight * logarithm(value)
                        moments[code, k, MEAN, j, lane] += weight * value


@inner
def second_moments(
    variant: Variant,
    codes: Integers,
    x: Floats,
    features: Features,
    cells: Floats,
    states: Floats,
    moments: Floats,
) -> None:
    """Means from sums, then squared deviations from the means: a second pass, so that nothing cancels."""
    n_states, n_lanes = states_of(variant, states.shape[1]), lanes_of(variant)
    if not (
        fits(variant, n_states, states.shape[1:])
        and fits(variant, n_states, cells.shape[3:])
        and fits(variant, n_states, moments.shape[3:])
        and x.shape[2] == n_lanes
    ):
        return
    for k in range(len(features.kind)):
        kind = features.kind[k]
        if kind not in (NORMAL, STUDENT):
            continue
        divisor = PRECISION if kind == STUDENT else MASS
        for row in range(len(moments)):
            for j in range(n_states):
                for lane in range(n_lanes):
                    weight = moments[row, k, divisor, j, lane]
                    mean = moments[row, k, MEAN, j, lane] / weight
                    moments[row, k, MEAN, j, lane] = mean if weight > NOTHING else 0.0
        for n in range(len(codes)):
            code = codes[n]
            for j in range(n_states):
                for lane in range(n_lanes):
                    value = x[n, k, lane]
                    weight = states[n, j, lane] if value == value else 0.0
                    apart = value - moments[code, k, MEAN, j, lane] if value == value else 0.0
                    if kind == STUDENT:
                        loc, inverse = cells[code, k, LOC, j, lane], cells[code, k, INVERSE, j, lane]
                        standing = value if value == value else loc
                        weight *= precision_of(standing, loc, inverse, cells[code, k, POWER, j, lane])
                    moments[code, k, SQUARE, j, lane] += weight * apart * apart
