"""The expectation step of many models at once, compiled: models are the lanes of the vector instructions.

The models share their event sequences, so that at every event all of them look up the same rows. Two states,
no value missing, every type known, every sequence of weight one. The last axis of every array is the lane.

The steps are those of `two_states` and `gathering`. What could underflow is not sorted out here: `worst` has
the smallest probability of each lane that something is divided by, and a model in whose lane that is too
small is fitted alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.sums import NOTHING
from keydyn.model.estimation.densities import LARGEST
from keydyn.model.estimation.exponential import exponential
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.tables import Density, Events

LANES = 64
# α is scaled back to one at every so many events.
RESCALE_EVERY = 16
LOC0, LOC1, INVERSE0, INVERSE1, HEIGHT0, HEIGHT1 = range(6)


class Lanes(NamedTuple):
    """Parameters and one iteration of all lanes; sums and marginals are those of `Sums` and `Tables`.

    Attributes
    ----------
    x : (N, K, L)
    start : (m + 1, 2, L); transmat : (P, 4, L) a[0, 0], a[0, 1], a[1, 0], a[1, 1]
    loc, scale : (K, m + 1, 2, L); min_scale : (K, L); floored : (K, m, 2, L) 1 where the floor acted
    from_type, to_type : (m, 4, L); of_all : (4, L)
    cells : (m, K, 6, L) location, 1 / scale and ln f at the location of both states
    ratio, largest : (n, L) as in `Scratch`, of one sequence; states : (N, 2, L) α, then γ
    start_sums : (m + 1, 2, L), the last row of all types; first_occurrence, mass : (m, 2, L)
    transitions : (P, 4, L); mean, square, precision : (m, K, 2, L), the last of the t families only
    log_likelihood, worst, total : (L,)
    """

    x: Floats
    start: Floats
    transmat: Floats
    loc: Floats
    scale: Floats
    min_scale: Floats
    floored: Floats
    from_type: Floats
    to_type: Floats
    of_all: Floats
    cells: Floats
    ratio: Floats
    largest: Floats
    states: Floats
    start_sums: Floats
    first_occurrence: Floats
    mass: Floats
    transitions: Floats
    mean: Floats
    square: Floats
    precision: Floats
    log_likelihood: Floats
    worst: Floats
    total: Floats


@compiled
def new_lanes(n_events: int, longest: int, n_features: int, n_types: int, n_pairs: int) -> Lanes:
    """Room for all lanes; a lane without a model computes on ones."""
    return Lanes(
        np.ones((n_events, n_features, LANES)),
        np.ones((n_types + 1, 2, LANES)),
        np.ones((n_pairs, 4, LANES)),
        np.ones((n_features, n_types + 1, 2, LANES)),
        np.ones((n_features, n_types + 1, 2, LANES)),
        np.ones((n_features, LANES)),
        np.zeros((n_features, n_types, 2, LANES)),
        np.empty((n_types, 4, LANES)),
        np.empty((n_types, 4, LANES)),
        np.empty((4, LANES)),
        np.empty((n_types, n_features, 6, LANES)),
        np.empty((longest, LANES)),
        np.empty((longest, LANES)),
        np.empty((n_events, 2, LANES)),
        np.empty((n_types + 1, 2, LANES)),
        np.empty((n_types, 2, LANES)),
        np.empty((n_types, 2, LANES)),
        np.empty((n_pairs, 4, LANES)),
        np.empty((n_types, n_features, 2, LANES)),
        np.empty((n_types, n_features, 2, LANES)),
        np.empty((n_types, n_features, 2, LANES)),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
    )


@compiled
def expectation_in_lanes(events: Events, family: Density, lanes: Lanes) -> None:
    """γ, ξ, their sums and the log-likelihood of every lane.

    A sequence is done with while it is in the nearest cache; only its squared deviations wait for the means.
    """
    lanes.log_likelihood[:] = 0.0
    lanes.worst[:] = 1.0
    lanes.transitions[:] = 0.0
    lanes.start_sums[:] = 0.0
    lanes.mass[:] = 0.0
    lanes.mean[:] = 0.0
    lanes.precision[:] = 0.0
    for s in range(len(events.offsets) - 1):
        first, last = events.offsets[s], events.offsets[s + 1]
        _densities(first, last, events.codes, lanes.x, lanes.cells, family, lanes.ratio, lanes.largest)
        _forward(first, last, events, lanes)
        _backward(first, last, events.steps, lanes.transmat, lanes.states, lanes.transitions)
        _start_sums(first, events.codes[first], lanes.states, lanes.start_sums)
        _first_moments(first, last, events.codes, family.df, lanes)
    _first_occurrences(events, lanes.states, lanes.first_occurrence)
    _divide(family.df, lanes)
    _second_moments(events.codes, family.df, lanes)


def _densities_in_lanes(
    first: int,
    last: int,
    codes: Integers,
    x: Floats,
    cells: Floats,
    family: Density,
    ratio: Floats,
    largest: Floats,
) -> None:
    """`relative_densities_two` of one sequence."""
    n_features = x.shape[1]
    for n in range(first, last):
        code = codes[n]
        for lane in range(LANES):
            ratio[n - first, lane] = 0.0
            largest[n - first, lane] = 0.0
        for k in range(n_features):
            on_log_scale, df = family.log_scale[k], family.df[k]
            if math.isinf(df):
                for lane in range(LANES):
                    value = x[n, k, lane]
                    standard0 = (value - cells[code, k, LOC0, lane]) * cells[code, k, INVERSE0, lane]
                    standard1 = (value - cells[code, k, LOC1, lane]) * cells[code, k, INVERSE1, lane]
                    log_x = on_log_scale * value
                    density0 = cells[code, k, HEIGHT0, lane] - 0.5 * standard0 * standard0 - log_x
                    density1 = cells[code, k, HEIGHT1, lane] - 0.5 * standard1 * standard1 - log_x
                    density0, density1 = max(density0, family.log_floor), max(density1, family.log_floor)
                    largest[n - first, lane] += density0
                    ratio[n - first, lane] += density1 - density0
            else:
                power, inverse_df = 0.5 * (df + 1.0), 1.0 / df
                for lane in range(LANES):
                    value = x[n, k, lane]
                    standard0 = (value - cells[code, k, LOC0, lane]) * cells[code, k, INVERSE0, lane]
                    standard1 = (value - cells[code, k, LOC1, lane]) * cells[code, k, INVERSE1, lane]
                    fall0 = power * logarithm(1.0 + min(standard0 * standard0 * inverse_df, LARGEST))
                    fall1 = power * logarithm(1.0 + min(standard1 * standard1 * inverse_df, LARGEST))
                    log_x = on_log_scale * value
                    density0 = max(cells[code, k, HEIGHT0, lane] - fall0 - log_x, family.log_floor)
                    density1 = max(cells[code, k, HEIGHT1, lane] - fall1 - log_x, family.log_floor)
                    largest[n - first, lane] += density0
                    ratio[n - first, lane] += density1 - density0
        for lane in range(LANES):
            gap = ratio[n - first, lane]
            largest[n - first, lane] += max(gap, 0.0)
            smaller = exponential(-abs(gap))
            ratio[n - first, lane] = smaller if gap > 0.0 else -smaller


# A product and a sum may be rounded once instead of twice; no NaN or infinity depends on that.
_densities = compiled(_densities_in_lanes, fastmath={"contract"})


@compiled
def _forward(first: int, last: int, events: Events, lanes: Lanes) -> None:
    """`forward_two` of one sequence."""
    ratio, states, transmat, worst = lanes.ratio, lanes.states, lanes.transmat, lanes.worst
    start, code = lanes.start, events.codes[first]
    for lane in range(LANES):
        smaller = ratio[0, lane]
        states[first, 0, lane] = start[code, 0, lane] * (smaller if smaller > 0.0 else 1.0)
        states[first, 1, lane] = start[code, 1, lane] * (1.0 if smaller > 0.0 else -smaller)
    for n in range(first + 1, last):
        step = events.steps[n]
        if (n - first) % RESCALE_EVERY == 0:
            _rescale(n - 1, lanes.log_likelihood, states, worst)
        for lane in range(LANES):
            smaller = ratio[n - first, lane]
            alpha0, alpha1 = states[n - 1, 0, lane], states[n - 1, 1, lane]
            before0 = alpha0 * transmat[step, 0, lane] + alpha1 * transmat[step, 2, lane]
            before1 = alpha0 * transmat[step, 1, lane] + alpha1 * transmat[step, 3, lane]
            states[n, 0, lane] = before0 * (smaller if smaller > 0.0 else 1.0)
            states[n, 1, lane] = before1 * (1.0 if smaller > 0.0 else -smaller)
            worst[lane] = min(worst[lane], min(before0, before1))
    _rescale(last - 1, lanes.log_likelihood, states, worst)
    for n in range(first, last):
        for lane in range(LANES):
            lanes.log_likelihood[lane] += lanes.largest[n - first, lane]


@compiled
def _rescale(n: int, log_likelihood: Floats, states: Floats, worst: Floats) -> None:
    """α of an event divided by its sum, whose logarithm goes into the log-likelihood."""
    for lane in range(LANES):
        total = states[n, 0, lane] + states[n, 1, lane]
        worst[lane] = min(worst[lane], total)
        states[n, 0, lane] /= total
        states[n, 1, lane] /= total
        log_likelihood[lane] += logarithm(total)


@compiled
def _backward(
    first: int, last: int, steps: Integers, transmat: Floats, states: Floats, transitions: Floats
) -> None:
    """`backward_two` of one sequence; α of its last event adds up to one."""
    for n in range(last - 1, first, -1):
        step = steps[n]
        for lane in range(LANES):
            alpha0, alpha1 = states[n - 1, 0, lane], states[n - 1, 1, lane]
            from00, from01 = alpha0 * transmat[step, 0, lane], alpha0 * transmat[step, 1, lane]
            from10, from11 = alpha1 * transmat[step, 2, lane], alpha1 * transmat[step, 3, lane]
            share0 = states[n, 0, lane] / (from00 + from10)
            share1 = states[n, 1, lane] / (from01 + from11)
            joint00, joint10 = from00 * share0, from10 * share0
            joint01, joint11 = from01 * share1, from11 * share1
            transitions[step, 0, lane] += joint00
            transitions[step, 1, lane] += joint01
            transitions[step, 2, lane] += joint10
            transitions[step, 3, lane] += joint11
            states[n - 1, 0, lane] = joint00 + joint01
            states[n - 1, 1, lane] = joint10 + joint11


@compiled
def _start_sums(first: int, code: int, states: Floats, sums: Floats) -> None:
    """γ of the first event of a sequence, by its type and, in the last row, of all types."""
    n_types = len(sums) - 1
    for j in range(2):
        for lane in range(LANES):
            sums[code, j, lane] += states[first, j, lane]
            sums[n_types, j, lane] += states[first, j, lane]


@compiled
def _first_occurrences(events: Events, states: Floats, sums: Floats) -> None:
    """`sum_first_occurrences`."""
    sums[:] = 0.0
    for n in events.first_seen:
        for j in range(2):
            for lane in range(LANES):
                sums[events.codes[n], j, lane] += states[n, j, lane]


@compiled
def _first_moments(first: int, last: int, codes: Integers, df: Floats, lanes: Lanes) -> None:
    """`first_moments` of one sequence, or `precise_first_moments`."""
    x, states, cells, mass, total = lanes.x, lanes.states, lanes.cells, lanes.mass, lanes.mean
    for n in range(first, last):
        code = codes[n]
        for j in range(2):
            for lane in range(LANES):
                mass[code, j, lane] += states[n, j, lane]
            for k in range(len(df)):
                if math.isinf(df[k]):
                    for lane in range(LANES):
                        total[code, k, j, lane] += states[n, j, lane] * x[n, k, lane]
                else:
                    for lane in range(LANES):
                        loc, inverse = cells[code, k, LOC0 + j, lane], cells[code, k, INVERSE0 + j, lane]
                        weight = states[n, j, lane] * _precision(x[n, k, lane], df[k], loc, inverse)
                        lanes.precision[code, k, j, lane] += weight
                        total[code, k, j, lane] += weight * x[n, k, lane]


@compiled
def _precision(value: float, df: float, loc: float, inverse: float) -> float:
    """What an event weighs under Student's t (Liu and Rubin)."""
    standard = (value - loc) * inverse
    return (df + 1.0) / (df + standard * standard)


@compiled
def _divide(df: Floats, lanes: Lanes) -> None:
    """`divide`: means of cells from their sums."""
    mean = lanes.mean
    for code in range(len(mean)):
        for k in range(len(df)):
            for j in range(2):
                for lane in range(LANES):
                    precise = not math.isinf(df[k])
                    weight = lanes.precision[code, k, j, lane] if precise else lanes.mass[code, j, lane]
                    share = mean[code, k, j, lane] / weight
                    mean[code, k, j, lane] = share if weight > NOTHING else 0.0


@compiled
def _second_moments(codes: Integers, df: Floats, lanes: Lanes) -> None:
    """`second_moments` of all sequences, or `precise_second_moments`."""
    x, states, cells, mean, square = lanes.x, lanes.states, lanes.cells, lanes.mean, lanes.square
    square[:] = 0.0
    for n in range(len(codes)):
        code = codes[n]
        for j in range(2):
            for k in range(len(df)):
                if math.isinf(df[k]):
                    for lane in range(LANES):
                        apart = x[n, k, lane] - mean[code, k, j, lane]
                        square[code, k, j, lane] += states[n, j, lane] * apart * apart
                else:
                    for lane in range(LANES):
                        loc, inverse = cells[code, k, LOC0 + j, lane], cells[code, k, INVERSE0 + j, lane]
                        weight = states[n, j, lane] * _precision(x[n, k, lane], df[k], loc, inverse)
                        apart = x[n, k, lane] - mean[code, k, j, lane]
                        square[code, k, j, lane] += weight * apart * apart


@compiled
def log_precision(codes: Integers, k: int, df: float, lane: int, lanes: Lanes, sums: Floats) -> None:
    """Σ γ (ln w − w) of a feature and lane by type and state, into `sums` (m, 2)."""
    sums[:] = 0.0
    for n in range(len(codes)):
        for j in range(2):
            loc, inverse = (
                lanes.cells[codes[n], k, LOC0 + j, lane],
                lanes.cells[codes[n], k, INVERSE0 + j, lane],
            )
            precision = _precision(lanes.x[n, k, lane], df, loc, inverse)
            sums[codes[n], j] += lanes.states[n, j, lane] * (math.log(precision) - precision)
