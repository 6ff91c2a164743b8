"""The maximisation step (Eqs. 12, 14, 15), the marginals of its estimates (Section 3.6), and smoothing.

Parameters without evidence are left unchanged. Smoothing (Eqs. 32–36, corrected) draws estimates towards the
marginals, the more so the fewer events they rest on.
"""

from __future__ import annotations

import math

from keydyn.arrays import Floats, Integers, compiled, inner, merged
from keydyn.model.engine.densities import (
    CATEGORICAL,
    CUSTOM,
    END,
    EXPONENTIAL,
    FIRST,
    GAMMA,
    KIND,
    STUDENT,
    log_minus_digamma,
    trigamma,
)
from keydyn.model.engine.expectation import FIRST_CATEGORY, LOG_SUM, MASS, NOTHING, PRECISION, SQUARE, SUM
from keydyn.model.engine.layout import (
    ANY_FAMILY,
    KEEP_EMISSION,
    KEEP_START,
    LEAVING,
    PAIR,
    PAIR_PROB,
    PROB,
    ROW,
    STEP,
    WEIGHT_AFTER,
    WEIGHT_BEFORE,
    Rules,
    Sums,
    Tables,
    TypeChain,
    Variant,
    fits,
    lanes_of,
    states_of,
)

# A sum of posterior probabilities below this counts as no evidence, and the parameter stays as it was, so
# that underflow does not decide it.
NO_MASS = 1e-250


@merged
def maximisation(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, sums: Sums, tables: Tables
) -> None:
    """Compute new parameters and their marginals, without smoothing."""
    sizes = variant[:2]
    update_start(sizes, span, rules, sums, tables.start)
    update_transitions(sizes, span, rules, chain, sums.transitions, tables.transitions)
    if not rules.fixed_emission:
        update_emission(variant, span, rules, sums.moments, tables)
    marginal_emission(variant, span, rules, chain, sums.moments, tables.emission)


@inner
def update_start(variant: Variant, span: Integers, rules: Rules, sums: Sums, start: Floats) -> None:
    """Update π[j | ω] (Eq. 12), and π[j] in the last row, which also serves types that start no sequence."""
    expected, floor = sums.first_seen if rules.first_occurrence else sums.start, rules.count_floor
    n_states, n_lanes = states_of(variant, start.shape[1]), lanes_of(variant)
    m = span[ROW + 1] - 1
    for row in range(m, span[ROW] - 1 if not rules.fixed_start else m - 1, -1):
        counts = expected if row < m else sums.start
        for lane in range(n_lanes):
            total = 0.0
            for j in range(n_states):
                total += max(counts[row, j, lane], floor)
            for j in range(n_states):
                without = start[m, j, lane] if row < m else 1.0 / n_states
                start[row, j, lane] = max(counts[row, j, lane], floor) / total if total > NO_MASS else without


@inner
def update_transitions(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, expected: Floats, transitions: Floats
) -> None:
    """Update a[i, j | ψ, ω] (Eq. 14) of the pairs, and the marginals a[i, j | ψ], a[i, j | ω] and a[i, j].

    In the marginals as printed (Eqs. 26–28) all earlier types have equal weight, whatever their share of the
    events; a type without successor counts as followed by any type, with uniform transitions. The exact
    marginals are sums of Σξ.
    """
    fixed, exact, floor = rules.fixed_transitions, rules.exact, rules.count_floor
    n_states, n_lanes = states_of(variant, transitions.shape[1]), lanes_of(variant)
    m = span[ROW + 1] - span[ROW] - 1
    if not (fits(n_states, n_lanes, transitions.shape[1:]) and fits(n_states, n_lanes, expected.shape[1:])):
        return
    # The first row of each kind of marginal, less the first row of the types where rows are indexed by type.
    first, uniform, dead_ends = span[STEP] + span[PAIR + 1] - span[PAIR], 1.0 / n_states, 0.0
    of_earlier, of_later, everywhere = first - span[ROW], first + m - span[ROW], first + 2 * m
    for row in range(span[ROW], span[ROW + 1] - 1):
        dead_ends += 1.0 if chain.of_types[row, LEAVING] == 0.0 and not exact else 0.0
    for row in range(first, everywhere + 1):
        # A dead end adds the same to every later type; its own row has no sum and becomes uniform.
        added = dead_ends / m * uniform if first + m <= row < everywhere else 0.0
        for i in range(n_states):
            for j in range(n_states):
                for lane in range(n_lanes):
                    transitions[row, i, j, lane] = added
    for pair in range(span[PAIR], span[PAIR + 1]):
        step, weight = span[STEP] + pair - span[PAIR], chain.of_pairs[pair, PAIR_PROB]
        earlier, later = of_earlier + chain.pairs[pair, 0], of_later + chain.pairs[pair, 1]
        for i in range(n_states):
            for lane in range(n_lanes):
                total = 0.0
                for j in range(n_states):
                    total += max(expected[step, i, j, lane], floor)
                scale = 1.0 / total
                for j in range(n_states):
                    share = max(expected[step, i, j, lane], floor) * scale
                    share = transitions[step, i, j, lane] if fixed or not total > NO_MASS else share
                    joint = expected[step, i, j, lane] if exact else share * weight
                    transitions[step, i, j, lane] = share
                    transitions[earlier, i, j, lane] += joint
                    transitions[later, i, j, lane] += joint
    for row in range(first, everywhere + 1):
        for i in range(n_states):
            for lane in range(n_lanes):
                total = 0.0
                for j in range(n_states):
                    total += transitions[row, i, j, lane]
                    # a[i, j] is the sum over all later types.
                    transitions[everywhere, i, j, lane] += (
                        transitions[row, i, j, lane] if first + m <= row < everywhere else 0.0
                    )
                for j in range(n_states):
                    share = transitions[row, i, j, lane] / total
                    transitions[row, i, j, lane] = share if total > NO_MASS else uniform


@compiled
def marginals_of_transitions(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, transitions: Floats
) -> None:
    """Compute a[i, j | ψ], a[i, j | ω] and a[i, j] for Python; `rules` must have transitions fixed."""
    update_transitions(variant, span, rules, chain, transitions, transitions)


@inner
def update_emission(variant: Variant, span: Integers, rules: Rules, moments: Floats, tables: Tables) -> None:
    """Update b[j | ω] (Eq. 15) of all types, feature by feature, and record where the scale floor acted."""
    features, count_floor = rules.features, rules.count_floor
    emission, least_scales, floored = tables.emission, tables.least, tables.floored
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    if not (
        fits(n_states, n_lanes, emission.shape[2:])
        and fits(n_states, n_lanes, moments.shape[3:])
        and fits(n_states, n_lanes, floored.shape[2:])
    ):
        return
    enough = max(NO_MASS, count_floor)
    for row in range(span[ROW], span[ROW + 1] - 1):
        for k in range(len(features)):
            kind, at = features[k, KIND], features[k, FIRST]
            if kind == CUSTOM:
                continue
            for j in range(n_states):
                for lane in range(n_lanes):
                    mass, least = moments[row, k, MASS, j, lane], least_scales[row, k, lane]
                    total, deviation = moments[row, k, SUM, j, lane], math.inf
                    if len(variant) == ANY_FAMILY and kind == CATEGORICAL:
                        n_categories = features[k, END] - at
                        for c in range(n_categories if mass > enough else 0):
                            count = moments[row, k, FIRST_CATEGORY + c, j, lane] + least
                            emission[row, at + c, j, lane] = count / (mass + n_categories * least)
                    elif len(variant) == ANY_FAMILY and kind == EXPONENTIAL:
                        if mass > enough:
                            deviation = total / mass
                            emission[row, at, j, lane] = max(deviation, least)
                    elif len(variant) == ANY_FAMILY and kind == GAMMA:
                        if mass > enough:
                            mean = total / mass
                            excess = math.log(mean) - moments[row, k, LOG_SUM, j, lane] / mass
                            # ln a − ψ(a) = excess; the floor limits 1 / √a, about the deviation of ln x.
                            shape = 1.0 / max(least * least, 1e-200)
                            if excess <= log_minus_digamma(shape):
                                deviation = 0.0
                            else:
                                shape = gamma_shape(excess)
                            emission[row, at, j, lane] = shape
                            emission[row, at + 1, j, lane] = mean / shape
                    else:
                        # The sums are of deviations from the current location. For Student's t, ν is fixed
                        # (Liu and Rubin); for the log-normal these are Eqs. 17–18, corrected.
                        student = len(variant) == ANY_FAMILY and kind == STUDENT
                        weight = moments[row, k, PRECISION, j, lane] if student else mass
                        apart = total / weight if weight > NOTHING else 0.0
                        around = max(moments[row, k, SQUARE, j, lane] - apart * total, 0.0)
                        loc, over, known = emission[row, at, j, lane] + apart, mass, weight > NO_MASS
                        if student:
                            known = known and mass > count_floor
                        elif count_floor > 0.0:
                            over, known = max(mass, count_floor), True
                            mean = loc
                            loc = mass * mean / over
                            # Σγ(x − loc)², for a loc that is not the mean where the divisor was raised
                            around += mass * (mean - loc) * (mean - loc)
                        if known:
                            deviation = math.sqrt(around / over)
                            emission[row, at, j, lane] = loc
                            emission[row, at + 1, j, lane] = max(deviation, least)
                    floored[row, k, j, lane] = deviation < least


@inner
def gamma_shape(excess: float) -> float:
    """The a with ln a − ψ(a) = excess > 0, by Newton's method on 1/a (Minka), to full precision."""
    shape = (3.0 - excess + math.sqrt((excess - 3.0) * (excess - 3.0) + 24.0 * excess)) / (12.0 * excess)
    for _ in range(8):
        value = log_minus_digamma(shape) - excess
        slope = 1.0 / shape - trigamma(shape)
        closer = 1.0 / (1.0 / shape + value / (shape * shape * slope))
        if abs(closer - shape) <= 1e-15 * shape:
            return closer
        shape = closer
    return shape


@inner
def marginal_emission(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, moments: Floats, emission: Floats
) -> None:
    """Write b[j] (Eqs. 29–31) to the last row: one distribution with the mean and variance of the mixture.

    Types are weighted by Π[ω], or, with exact marginals, by how often they occur in the state.
    """
    features, exact, of_types = rules.features, rules.exact, chain.of_types
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    m = span[ROW + 1] - 1
    if not (fits(n_states, n_lanes, emission.shape[2:]) and fits(n_states, n_lanes, moments.shape[3:])):
        return
    for k in range(len(features)):
        kind, at, end = features[k, KIND], features[k, FIRST], features[k, END]
        by_moments = kind != EXPONENTIAL and kind != CATEGORICAL
        if kind == CUSTOM:
            continue
        for j in range(n_states):
            for lane in range(n_lanes):
                total, mean, square = 0.0, 0.0, 0.0
                for row in range(span[ROW], m):
                    total += moments[row, k, MASS, j, lane] if exact else of_types[row, PROB]
                if len(variant) == ANY_FAMILY and not by_moments:
                    for p in range(at, end):
                        mean = 0.0
                        for row in range(span[ROW], m):
                            weight = moments[row, k, MASS, j, lane] if exact else of_types[row, PROB]
                            weight = weight / total if total > NO_MASS else 1.0 / (m - span[ROW])
                            mean += weight * emission[row, p, j, lane]
                        emission[m, p, j, lane] = mean
                    continue
                # Two passes: the mean first, then the squares around it.
                for second in range(2):
                    for row in range(span[ROW], m):
                        weight = moments[row, k, MASS, j, lane] if exact else of_types[row, PROB]
                        weight = weight / total if total > NO_MASS else 1.0 / (m - span[ROW])
                        of_row, scale = emission[row, at, j, lane], emission[row, at + 1, j, lane]
                        variance = scale * scale
                        if len(variant) == ANY_FAMILY and kind == GAMMA:
                            of_row = of_row * scale
                            variance = of_row * scale
                        if second:
                            square += weight * ((of_row - mean) * (of_row - mean) + variance)
                        else:
                            mean += weight * of_row
                emission[m, at, j, lane] = mean
                emission[m, at + 1, j, lane] = math.sqrt(square)
                if len(variant) == ANY_FAMILY and kind == GAMMA:
                    emission[m, at, j, lane] = mean * mean / square
                    emission[m, at + 1, j, lane] = square / mean
                elif len(variant) == ANY_FAMILY and kind == STUDENT:
                    # The degrees of freedom are the same everywhere.
                    emission[m, at + 2, j, lane] = emission[span[ROW], at + 2, j, lane]


@merged
def smooth(variant: Variant, span: Integers, rules: Rules, chain: TypeChain, tables: Tables) -> None:
    """Smooth all parameters towards the unsmoothed marginals; with a single type there is nothing to do."""
    m, start, n_lanes = span[ROW + 1] - 1, tables.start, lanes_of(variant)
    if m - span[ROW] == 1:
        return
    for row in range(span[ROW], m if rules.smooth_start and not rules.fixed_start else span[ROW]):
        # π̃[j | ω] (Eq. 33)
        keep = chain.of_types[row, KEEP_START]
        for j in range(states_of(variant, start.shape[1])):
            for lane in range(n_lanes):
                start[row, j, lane] = keep * start[row, j, lane] + (1.0 - keep) * start[m, j, lane]
    if rules.smooth_transitions and not rules.fixed_transitions:
        smooth_transitions(variant[:2], span, chain, tables.transitions)
    if rules.smooth_emission and not rules.fixed_emission:
        smooth_emission(variant, span, rules, chain, tables.emission)


@inner
def smooth_transitions(variant: Variant, span: Integers, chain: TypeChain, transitions: Floats) -> None:
    """Replace a[i, j | ψ, ω] of the pairs by ã (Eqs. 35–36, corrected); negative results become zero."""
    n_states, n_lanes = states_of(variant, transitions.shape[1]), lanes_of(variant)
    m = span[ROW + 1] - span[ROW] - 1
    if not fits(n_states, n_lanes, transitions.shape[1:]):
        return
    first = span[STEP] + span[PAIR + 1] - span[PAIR] - span[ROW]
    for pair in range(span[PAIR], span[PAIR + 1]):
        step = span[STEP] + pair - span[PAIR]
        earlier, later = first + chain.pairs[pair, 0], first + m + chain.pairs[pair, 1]
        of_earlier, of_later = chain.of_pairs[pair, WEIGHT_BEFORE], chain.of_pairs[pair, WEIGHT_AFTER]
        own = 1.0 - of_earlier - of_later
        for i in range(n_states):
            for lane in range(n_lanes):
                total = 0.0
                for j in range(n_states):
                    mixed = (
                        own * transitions[step, i, j, lane] + of_earlier * transitions[earlier, i, j, lane]
                    )
                    mixed = max(mixed + of_later * transitions[later, i, j, lane], 0.0)
                    transitions[step, i, j, lane] = mixed
                    total += mixed
                scale = 1.0 / total
                for j in range(n_states):
                    share = transitions[step, i, j, lane] * scale
                    transitions[step, i, j, lane] = share if total > 0.0 else 1.0 / n_states


@inner
def smooth_emission(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, emission: Floats
) -> None:
    """Replace b[j | ω] by b̃ (Eq. 34): interpolate parameters, for t squared scales, for gamma moments."""
    features, of_types = rules.features, chain.of_types
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    m = span[ROW + 1] - 1
    if not fits(n_states, n_lanes, emission.shape[2:]):
        return
    for row in range(span[ROW], m):
        share, rest = of_types[row, KEEP_EMISSION], 1.0 - of_types[row, KEEP_EMISSION]
        for k in range(len(features)):
            kind, at = features[k, KIND], features[k, FIRST]
            if kind == CUSTOM:
                continue
            for j in range(n_states):
                for lane in range(n_lanes):
                    if len(variant) == ANY_FAMILY and kind == GAMMA:
                        shape, scale = emission[row, at, j, lane], emission[row, at + 1, j, lane]
                        of_all, scale_of_all = emission[m, at, j, lane], emission[m, at + 1, j, lane]
                        mean = share * shape * scale + rest * of_all * scale_of_all
                        variance = share * shape * scale * scale + rest * of_all * scale_of_all * scale_of_all
                        emission[row, at, j, lane] = mean * mean / variance
                        emission[row, at + 1, j, lane] = variance / mean
                        continue
                    for p in range(at, features[k, END]):
                        own, marginal = emission[row, p, j, lane], emission[m, p, j, lane]
                        mixed = share * own + rest * marginal
                        if len(variant) == ANY_FAMILY and kind == STUDENT and p > at:
                            # The scale by its square; the degrees of freedom are the same everywhere.
                            square = share * (own * own) + rest * (marginal * marginal)
                            mixed = math.sqrt(square) if p == at + 1 else own
                        emission[row, p, j, lane] = mixed
