"""The expectation step of many models at once, compiled: models are the lanes of the vector instructions.

The models share their event sequences, so that at every event all of them look up the same rows. Two states,
normal or log-normal features, no value missing, every type known. The last axis of every array is the lane.

The steps are those of `two_states` and `gathering`. What could underflow is not sorted out here: `worst` has
the smallest α of each lane, and a model in whose lane that is too small is fitted alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.exponential import exponential
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.tables import Density, Events
from keydyn.model.sums import NOTHING

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
    ratio, largest : (N, L) as in `Scratch`; states : (N, 2, L) α, then γ
    start_sums : (m + 1, 2, L), the last row of all types; first_occurrence, mass : (m, 2, L)
    transitions : (P, 4, L); mean, square : (m, K, 2, L)
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
    log_likelihood: Floats
    worst: Floats
    total: Floats


@compiled
def new_lanes(n_events: int, n_features: int, n_types: int, n_pairs: int) -> Lanes:
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
        np.empty((n_events, LANES)),
        np.empty((n_events, LANES)),
        np.empty((n_events, 2, LANES)),
        np.empty((n_types + 1, 2, LANES)),
        np.empty((n_types, 2, LANES)),
        np.empty((n_types, 2, LANES)),
        np.empty((n_pairs, 4, LANES)),
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
    for s in range(len(events.offsets) - 1):
        first, last = events.offsets[s], events.offsets[s + 1]
        _densities(first, last, events.codes, lanes.x, lanes.cells, family, lanes.ratio, lanes.largest)
        _forward(first, last, events, lanes)
        _backward(first, last, events.steps, lanes.transmat, lanes.states, lanes.transitions)
        _start_sums(first, events.codes[first], lanes.states, lanes.start_sums)
        _first_moments(first, last, events.codes, lanes.x, lanes.states, lanes.mass, lanes.mean)
    _first_occurrences(events, lanes.states, lanes.first_occurrence)
    _divide(lanes.mass, lanes.mean)
    _second_moments(events.codes, lanes.x, lanes.states, lanes.mean, lanes.square)


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
            ratio[n, lane] = 0.0
            largest[n, lane] = 0.0
        for k in range(n_features):
            on_log_scale = family.log_scale[k]
            for lane in range(LANES):
                value = x[n, k, lane]
                standard0 = (value - cells[code, k, LOC0, lane]) * cells[code, k, INVERSE0, lane]
                standard1 = (value - cells[code, k, LOC1, lane]) * cells[code, k, INVERSE1, lane]
                log_x = on_log_scale * value
                density0 = cells[code, k, HEIGHT0, lane] - 0.5 * standard0 * standard0 - log_x
                density1 = cells[code, k, HEIGHT1, lane] - 0.5 * standard1 * standard1 - log_x
                density0, density1 = max(density0, family.log_floor), max(density1, family.log_floor)
                largest[n, lane] += density0
                ratio[n, lane] += density1 - density0
        for lane in range(LANES):
            gap = ratio[n, lane]
            largest[n, lane] += max(gap, 0.0)
            smaller = exponential(-abs(gap))
            ratio[n, lane] = smaller if gap > 0.0 else -smaller


# A product and a sum may be rounded once instead of twice; no NaN or infinity depends on that.
_densities = compiled(_densities_in_lanes, fastmath={"contract"})


@compiled
def _forward(first: int, last: int, events: Events, lanes: Lanes) -> None:
    """`forward_two` of one sequence."""
    ratio, states, transmat, worst = lanes.ratio, lanes.states, lanes.transmat, lanes.worst
    start, code = lanes.start, events.codes[first]
    for lane in range(LANES):
        smaller = ratio[first, lane]
        states[first, 0, lane] = start[code, 0, lane] * (smaller if smaller > 0.0 else 1.0)
        states[first, 1, lane] = start[code, 1, lane] * (1.0 if smaller > 0.0 else -smaller)
        worst[lane] = min(worst[lane], min(states[first, 0, lane], states[first, 1, lane]))
    for n in range(first + 1, last):
        step = events.steps[n]
        if (n - first) % RESCALE_EVERY == 0:
            _rescale(n - 1, lanes.log_likelihood, states)
        for lane in range(LANES):
            smaller = ratio[n, lane]
            alpha0, alpha1 = states[n - 1, 0, lane], states[n - 1, 1, lane]
            before0 = alpha0 * transmat[step, 0, lane] + alpha1 * transmat[step, 2, lane]
            before1 = alpha0 * transmat[step, 1, lane] + alpha1 * transmat[step, 3, lane]
            after0 = before0 * (smaller if smaller > 0.0 else 1.0)
            after1 = before1 * (1.0 if smaller > 0.0 else -smaller)
            states[n, 0, lane] = after0
            states[n, 1, lane] = after1
            worst[lane] = min(worst[lane], min(after0, after1))
    _rescale(last - 1, lanes.log_likelihood, states)
    for n in range(first, last):
        for lane in range(LANES):
            lanes.log_likelihood[lane] += lanes.largest[n, lane]


@compiled
def _rescale(n: int, log_likelihood: Floats, states: Floats) -> None:
    """α of an event divided by its sum, whose logarithm goes into the log-likelihood."""
    for lane in range(LANES):
        total = states[n, 0, lane] + states[n, 1, lane]
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
def _first_moments(
    first: int, last: int, codes: Integers, x: Floats, states: Floats, mass: Floats, total: Floats
) -> None:
    """`first_moments_two` of one sequence."""
    for n in range(first, last):
        code = codes[n]
        for j in range(2):
            for lane in range(LANES):
                mass[code, j, lane] += states[n, j, lane]
            for k in range(x.shape[1]):
                for lane in range(LANES):
                    total[code, k, j, lane] += states[n, j, lane] * x[n, k, lane]


@compiled
def _divide(mass: Floats, mean: Floats) -> None:
    """`divide`: means of cells from their sums."""
    for code in range(len(mass)):
        for k in range(mean.shape[1]):
            for j in range(2):
                for lane in range(LANES):
                    share = mean[code, k, j, lane] / mass[code, j, lane]
                    mean[code, k, j, lane] = share if mass[code, j, lane] > NOTHING else 0.0


@compiled
def _second_moments(codes: Integers, x: Floats, states: Floats, mean: Floats, square: Floats) -> None:
    """`second_moments_two` of all sequences."""
    square[:] = 0.0
    for n in range(len(codes)):
        code = codes[n]
        for j in range(2):
            for k in range(x.shape[1]):
                for lane in range(LANES):
                    apart = x[n, k, lane] - mean[code, k, j, lane]
                    square[code, k, j, lane] += states[n, j, lane] * apart * apart
