"""The expectation step of many models at once, compiled: models are the lanes of the vector instructions.

The models share their event sequences, so that at every event all of them look up the same rows. Two states,
normal or log-normal features, no value missing, every type known. The last axis of every array is the lane.

The steps are those of `two_states` and `gathering`. What could underflow is not sorted out here: `worst` has
the smallest α of each lane, and a model in whose lane that is too small is fitted alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.exponential import exponential
from keydyn.model.estimation.tables import Density, Events

LANES = 32
# α is scaled back to one at every so many events.
RESCALE_EVERY = 16
LOC0, LOC1, INVERSE0, INVERSE1, HEIGHT0, HEIGHT1 = range(6)


class Lanes(NamedTuple):
    """One expectation step of all lanes.

    Attributes
    ----------
    x : (N, K, L); cells : (m, K, 6, L) location, 1 / scale and ln f at the location of both states
    start : (m, 2, L); transmat : (P, 4, L) a[0, 0], a[0, 1], a[1, 0], a[1, 1]
    ratio, largest : (N, L) as in `Scratch`; states : (N, 2, L) α, then γ
    transitions : (P, 4, L); mass : (m, 2, L); mean, square : (m, K, 2, L)
    log_likelihood, worst : (L,)
    """

    x: Floats
    cells: Floats
    start: Floats
    transmat: Floats
    ratio: Floats
    largest: Floats
    states: Floats
    transitions: Floats
    mass: Floats
    mean: Floats
    square: Floats
    log_likelihood: Floats
    worst: Floats


@compiled
def new_lanes(n_events: int, n_features: int, n_types: int, n_pairs: int) -> Lanes:
    """Room for all lanes; a lane without a model computes on ones."""
    return Lanes(
        np.ones((n_events, n_features, LANES)),
        np.ones((n_types, n_features, 6, LANES)),
        np.ones((n_types, 2, LANES)),
        np.ones((n_pairs, 4, LANES)),
        np.empty((n_events, LANES)),
        np.empty((n_events, LANES)),
        np.empty((n_events, 2, LANES)),
        np.empty((n_pairs, 4, LANES)),
        np.empty((n_types, 2, LANES)),
        np.empty((n_types, n_features, 2, LANES)),
        np.empty((n_types, n_features, 2, LANES)),
        np.empty(LANES),
        np.empty(LANES),
    )


@compiled
def expectation_in_lanes(events: Events, family: Density, lanes: Lanes) -> None:
    """γ, ξ, their sums and the log-likelihood of every lane."""
    _densities(events.codes, lanes.x, lanes.cells, family, lanes.ratio, lanes.largest)
    lanes.log_likelihood[:] = 0.0
    lanes.worst[:] = 1.0
    lanes.transitions[:] = 0.0
    total = np.empty(LANES)
    for s in range(len(events.weights)):
        first, last, weight = events.offsets[s], events.offsets[s + 1], events.weights[s]
        _forward(first, last, weight, events, lanes, total)
        _backward(first, last, weight, events.steps, lanes.transmat, lanes.states, lanes.transitions)
    _moments(events.codes, lanes.x, lanes.states, lanes.mass, lanes.mean, lanes.square)


def _densities_in_lanes(
    codes: Integers, x: Floats, cells: Floats, family: Density, ratio: Floats, largest: Floats
) -> None:
    """`relative_densities_two`."""
    n_features = x.shape[1]
    for n in range(len(codes)):
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
def _forward(first: int, last: int, weight: float, events: Events, lanes: Lanes, total: Floats) -> None:
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
            _rescale(n - 1, weight, lanes.log_likelihood, states, total)
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
    _rescale(last - 1, weight, lanes.log_likelihood, states, total)
    for n in range(first, last):
        for lane in range(LANES):
            lanes.log_likelihood[lane] += weight * lanes.largest[n, lane]


@compiled
def _rescale(n: int, weight: float, log_likelihood: Floats, states: Floats, total: Floats) -> None:
    """α of an event divided by its sum, whose logarithm goes into the log-likelihood."""
    for lane in range(LANES):
        total[lane] = states[n, 0, lane] + states[n, 1, lane]
        states[n, 0, lane] /= total[lane]
        states[n, 1, lane] /= total[lane]
    for lane in range(LANES):
        log_likelihood[lane] += weight * math.log(total[lane])


@compiled
def _backward(
    first: int,
    last: int,
    weight: float,
    steps: Integers,
    transmat: Floats,
    states: Floats,
    transitions: Floats,
) -> None:
    """`backward_two` of one sequence; α of its last event adds up to one."""
    for lane in range(LANES):
        states[last - 1, 0, lane] *= weight
        states[last - 1, 1, lane] *= weight
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
def _moments(codes: Integers, x: Floats, states: Floats, mass: Floats, mean: Floats, square: Floats) -> None:
    """`sum_states` and `sum_moments`, in two passes over the events."""
    n_features = x.shape[1]
    mass[:] = 0.0
    mean[:] = 0.0
    square[:] = 0.0
    for n in range(len(codes)):
        code = codes[n]
        for j in range(2):
            for lane in range(LANES):
                mass[code, j, lane] += states[n, j, lane]
            for k in range(n_features):
                for lane in range(LANES):
                    mean[code, k, j, lane] += states[n, j, lane] * x[n, k, lane]
    for code in range(len(mass)):
        for k in range(n_features):
            for j in range(2):
                for lane in range(LANES):
                    mean[code, k, j, lane] /= mass[code, j, lane]
    for n in range(len(codes)):
        code = codes[n]
        for j in range(2):
            for k in range(n_features):
                for lane in range(LANES):
                    deviation = x[n, k, lane] - mean[code, k, j, lane]
                    square[code, k, j, lane] += states[n, j, lane] * deviation * deviation
