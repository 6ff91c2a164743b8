"""The maximisation step (Eqs. 12, 14, 15) and the marginals of what it finds (Section 3.6).

What has no evidence is left as it stands.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from keydyn.arrays import Floats, Integers, Truths, compiled, inner
from keydyn.model.engine.densities import CATEGORICAL, CUSTOM, EXPONENTIAL, GAMMA, STUDENT, Features
from keydyn.model.engine.elementary import log_minus_digamma, trigamma
from keydyn.model.engine.expectation import LOG_SUM, MASS, MEAN, PRECISION, SQUARE, SUM, Sums, Tables
from keydyn.model.engine.variants import Variant, fits, lanes_of, states_of

# Below this a sum of posterior probabilities is no evidence, and the parameter stays as it was: it is not for
# underflow to decide.
NO_MASS = 1e-250
SMALLEST = 5e-324


class Rules(NamedTuple):
    """The settings of a fit as numbers.

    Attributes
    ----------
    log_floor : ln of the least density, −inf for none; count_floor : least divisor
    fixed_start, fixed_transitions, fixed_emission : what is not estimated
    exact : exact marginals; first_occurrence : how π is estimated
    smooth_start, smooth_transitions, smooth_emission : what is smoothed
    tol, max_iter : when to stop
    """

    log_floor: float
    count_floor: float
    fixed_start: bool
    fixed_transitions: bool
    fixed_emission: bool
    exact: bool
    first_occurrence: bool
    smooth_start: bool
    smooth_transitions: bool
    smooth_emission: bool
    tol: float
    max_iter: int


class Chain(NamedTuple):
    """What follows from the event types alone, the same for all models that share them.

    Attributes
    ----------
    before, after : (P,) the types of each pair; pair_prob : (P,) a[ψ, ω]
    leaving : (m,) f(ψ,·); prob : (m,) Π[ω]
    keep_start, keep_emission : (m,) what a type's own estimates weigh in smoothing
    weight_before, weight_after : (P,) what a[i, j | ψ] and a[i, j | ω] weigh
    """

    before: Integers
    after: Integers
    pair_prob: Floats
    leaving: Floats
    prob: Floats
    keep_start: Floats
    keep_emission: Floats
    weight_before: Floats
    weight_after: Floats


@compiled
def maximisation(
    variant: Variant,
    chain: Chain,
    rules: Rules,
    features: Features,
    sums: Sums,
    min_scale: Floats,
    tables: Tables,
    floored: Truths,
) -> None:
    """New parameters, nothing smoothed yet. `min_scale` (K, L) is the least scale of each feature."""
    m, floor = len(chain.prob), rules.count_floor
    normalise_rows(variant, m, m + 1, floor, sums.start, tables.start)
    if not rules.fixed_start:
        expected = sums.first_seen if rules.first_occurrence else sums.start
        update_start(variant, m, floor, expected, tables.start)
    if not rules.fixed_transitions:
        update_transitions(variant, len(chain.before), floor, sums.transitions, tables.transitions)
    if not rules.fixed_emission:
        update_emission(variant, features, sums.moments, min_scale, floor, tables.emission, floored)
    marginal_transitions(variant, chain, rules.exact, sums.transitions, tables.transitions)
    marginal_emission(variant, chain.prob, rules.exact, features, sums.moments, tables.emission)


@inner
def normalise_rows(
    variant: Variant, first: int, last: int, floor: float, expected: Floats, rows: Floats
) -> None:
    """Rows of expected counts (m + 1, M, L) scaled to add up to one; a row of zeros becomes uniform."""
    n_states = states_of(variant, rows.shape[1])
    if not (fits(variant, n_states, rows.shape[1:]) and fits(variant, n_states, expected.shape[1:])):
        return
    for row in range(first, last):
        for lane in range(lanes_of(variant)):
            total = 0.0
            for j in range(n_states):
                total += max(expected[row, j, lane], floor)
            for j in range(n_states):
                share = max(expected[row, j, lane], floor) / total
                rows[row, j, lane] = share if total > 0.0 else 1.0 / n_states


@inner
def update_start(variant: Variant, m: int, floor: float, expected: Floats, start: Floats) -> None:
    """π[j | ω] (Eq. 12); a type that starts no sequence has the marginal, row m."""
    n_states = states_of(variant, start.shape[1])
    if not (fits(variant, n_states, start.shape[1:]) and fits(variant, n_states, expected.shape[1:])):
        return
    for row in range(m):
        for lane in range(lanes_of(variant)):
            total = 0.0
            for j in range(n_states):
                total += max(expected[row, j, lane], floor)
            for j in range(n_states):
                share = max(expected[row, j, lane], floor) / total
                start[row, j, lane] = share if total > NO_MASS else start[m, j, lane]


@inner
def update_transitions(
    variant: Variant, n_pairs: int, floor: float, expected: Floats, transitions: Floats
) -> None:
    """a[i, j | ψ, ω] (Eq. 14) of the pairs."""
    n_states = states_of(variant, transitions.shape[1])
    if not (fits(variant, n_states, transitions.shape[1:]) and fits(variant, n_states, expected.shape[1:])):
        return
    for pair in range(n_pairs):
        for lane in range(lanes_of(variant)):
            for i in range(n_states):
                total = 0.0
                for j in range(n_states):
                    total += max(expected[pair, i, j, lane], floor)
                scale = 1.0 / total
                for j in range(n_states):
                    share = max(expected[pair, i, j, lane], floor) * scale
                    transitions[pair, i, j, lane] = (
                        share if total > NO_MASS else transitions[pair, i, j, lane]
                    )


@inner
def update_emission(
    variant: Variant,
    features: Features,
    moments: Floats,
    min_scale: Floats,
    count_floor: float,
    emission: Floats,
    floored: Truths,
) -> None:
    """b[j | ω] (Eq. 15) of all types, feature by feature; `floored` (m, K, M, L): where the floor acted."""
    n_states = states_of(variant, emission.shape[2])
    if not (
        fits(variant, n_states, emission.shape[2:])
        and fits(variant, n_states, moments.shape[3:])
        and fits(variant, n_states, floored.shape[2:])
    ):
        return
    for row in range(len(floored)):
        for k in range(len(features.kind)):
            kind, at = features.kind[k], features.first[k]
            if kind == CUSTOM:
                continue
            for j in range(n_states):
                for lane in range(lanes_of(variant)):
                    if kind == CATEGORICAL:
                        n_categories, total = features.first[k + 1] - at, 0.0
                        for c in range(n_categories):
                            total += moments[row, k, c, j, lane]
                        if total > max(NO_MASS, count_floor):
                            total += n_categories * features.pseudocount[k]
                            for c in range(n_categories):
                                count = moments[row, k, c, j, lane] + features.pseudocount[k]
                                emission[row, at + c, j, lane] = count / total
                        continue
                    mass, least = moments[row, k, MASS, j, lane], min_scale[k, lane]
                    found, deviation = emission[row, at, j, lane], math.inf
                    if kind == EXPONENTIAL:
                        if mass > max(NO_MASS, count_floor):
                            found = deviation = moments[row, k, SUM, j, lane] / mass
                            emission[row, at, j, lane] = max(found, least)
                    elif kind == GAMMA:
                        if mass > max(NO_MASS, count_floor):
                            mean = moments[row, k, SUM, j, lane] / mass
                            excess = math.log(mean) - moments[row, k, LOG_SUM, j, lane] / mass
                            # ln a − ψ(a) = excess; 1 / √a is the deviation of ln x that the floor is for.
                            shape = max(least, 1e-100) ** -2.0
                            if excess <= log_minus_digamma(shape):
                                deviation = 0.0
                            else:
                                shape = gamma_shape(excess)
                            emission[row, at, j, lane] = shape
                            emission[row, at + 1, j, lane] = mean / shape
                    elif kind == STUDENT:
                        if moments[row, k, PRECISION, j, lane] > NO_MASS and mass > count_floor:
                            # ν fixed (Liu and Rubin)
                            deviation = math.sqrt(moments[row, k, SQUARE, j, lane] / mass)
                            emission[row, at, j, lane] = moments[row, k, MEAN, j, lane]
                            emission[row, at + 1, j, lane] = max(deviation, least)
                    elif mass > NO_MASS or count_floor > 0.0:
                        # Mean and deviation; for the log-normal Eqs. 17–18, corrected.
                        divisor = max(mass, max(count_floor, SMALLEST))
                        mean = moments[row, k, MEAN, j, lane]
                        found = mass * mean / divisor if count_floor > 0.0 else mean
                        # Σγ(x − loc)², for a loc that is not the mean where the divisor was raised
                        around = moments[row, k, SQUARE, j, lane] + mass * (mean - found) ** 2
                        deviation = math.sqrt(around / divisor)
                        emission[row, at, j, lane] = found
                        emission[row, at + 1, j, lane] = max(deviation, least)
                    floored[row, k, j, lane] = deviation < least


@inner
def gamma_shape(excess: float) -> float:
    """The a with ln a − ψ(a) = excess > 0, by Newton's method on 1/a (Minka), to full precision."""
    shape = (3.0 - excess + math.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
    for _ in range(8):
        value = log_minus_digamma(shape) - excess
        slope = 1.0 / shape - trigamma(shape)
        closer = 1.0 / (1.0 / shape + value / (shape * shape * slope))
        if abs(closer - shape) <= 1e-15 * shape:
            return closer
        shape = closer
    return shape


@inner
def marginal_transitions(
    variant: Variant, chain: Chain, exact: bool, joint: Floats, transitions: Floats
) -> None:
    """a[i, j | ψ], a[i, j | ω] and a[i, j] (Eqs. 26–28) into the rows after the pairs.

    As printed, every earlier type counts alike, whatever its share of the events; a type that none follows is
    followed by any, each step uniform. Exact marginals sum what occurred together, Σξ.
    """
    n_states, n_pairs, m = states_of(variant, transitions.shape[1]), len(chain.before), len(chain.prob)
    everywhere = n_pairs + 2 * m
    if not (fits(variant, n_states, transitions.shape[1:]) and fits(variant, n_states, joint.shape[1:])):
        return
    uniform = 1.0 / n_states
    transitions[n_pairs:] = 0.0
    for pair in range(n_pairs):
        earlier, later = n_pairs + chain.before[pair], n_pairs + m + chain.after[pair]
        for i in range(n_states):
            for j in range(n_states):
                for lane in range(lanes_of(variant)):
                    value = joint[pair, i, j, lane]
                    if not exact:
                        value = transitions[pair, i, j, lane] * chain.pair_prob[pair]
                    transitions[earlier, i, j, lane] += value
                    transitions[later, i, j, lane] += value
    dead_ends = 0
    for row in range(m):
        dead_ends += chain.leaving[row] == 0.0 and not exact
    for row in range(m):
        for i in range(n_states):
            for j in range(n_states):
                for lane in range(lanes_of(variant)):
                    if chain.leaving[row] == 0.0 and not exact:
                        transitions[n_pairs + row, i, j, lane] = uniform
                    if dead_ends > 0:
                        transitions[n_pairs + m + row, i, j, lane] += dead_ends / m * uniform
                    transitions[everywhere, i, j, lane] += transitions[n_pairs + row, i, j, lane]
    for row in range(n_pairs, everywhere + 1):
        for i in range(n_states):
            for lane in range(lanes_of(variant)):
                total = 0.0
                for j in range(n_states):
                    total += transitions[row, i, j, lane]
                for j in range(n_states):
                    share = transitions[row, i, j, lane] / total
                    transitions[row, i, j, lane] = share if total > 0.0 else uniform


@inner
def marginal_emission(
    variant: Variant, prob: Floats, exact: bool, features: Features, moments: Floats, emission: Floats
) -> None:
    """b[j] (Eqs. 29–31) into the last row: one distribution with the mixture's mean and variance.

    Types weigh Π[ω], or, exact, as often as they occur in the state.
    """
    n_states, m = states_of(variant, emission.shape[2]), len(prob)
    if not (fits(variant, n_states, emission.shape[2:]) and fits(variant, n_states, moments.shape[3:])):
        return
    for k in range(len(features.kind)):
        kind, at, n_parameters = (
            features.kind[k],
            features.first[k],
            features.first[k + 1] - features.first[k],
        )
        if kind == CUSTOM:
            continue
        for j in range(n_states):
            for lane in range(lanes_of(variant)):
                total = 0.0
                for row in range(m):
                    total += mass_of(kind, n_parameters, moments, row, k, j, lane) if exact else prob[row]
                if kind in (EXPONENTIAL, CATEGORICAL):
                    for c in range(n_parameters):
                        mean = 0.0
                        for row in range(m):
                            mass = (
                                mass_of(kind, n_parameters, moments, row, k, j, lane) if exact else prob[row]
                            )
                            weight = mass / total if total > 0.0 else 1.0 / m
                            mean += weight * emission[row, at + c, j, lane]
                        emission[m, at + c, j, lane] = mean
                    continue
                together, square = 0.0, 0.0
                for around in range(2):
                    for row in range(m):
                        mass = mass_of(kind, n_parameters, moments, row, k, j, lane) if exact else prob[row]
                        weight = mass / total if total > 0.0 else 1.0 / m
                        first, second = emission[row, at, j, lane], emission[row, at + 1, j, lane]
                        mean = first * second if kind == GAMMA else first
                        variance = mean * second if kind == GAMMA else second * second
                        if around == 0:
                            together += weight * mean
                        else:
                            square += weight * ((mean - together) ** 2 + variance)
                if kind == GAMMA:
                    emission[m, at, j, lane] = together * together / square
                    emission[m, at + 1, j, lane] = square / together
                else:
                    emission[m, at, j, lane] = together
                    emission[m, at + 1, j, lane] = math.sqrt(square)
                if kind == STUDENT:
                    emission[m, at + 2, j, lane] = emission[0, at + 2, j, lane]


@inner
def mass_of(kind: int, n_parameters: int, moments: Floats, row: int, k: int, j: int, lane: int) -> float:
    """Σγ of events with a value."""
    mass = moments[row, k, MASS, j, lane]
    if kind == CATEGORICAL:
        for c in range(1, n_parameters):
            mass += moments[row, k, c, j, lane]
    return float(mass)
