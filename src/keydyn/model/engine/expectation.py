"""The expectation step: γ and ξ of every event, and their sums by event type and pair."""

from __future__ import annotations

from keydyn.arrays import Floats, Integers, inner, merged
from keydyn.model.engine.densities import (
    CATEGORICAL,
    CUSTOM,
    GAMMA,
    INVERSE,
    KIND,
    LOC,
    NORMAL,
    POWER,
    STUDENT,
    Densities,
    log_densities,
    logarithm,
    prepare_cells,
)
from keydyn.model.engine.layout import (
    ANY_FAMILY,
    PAIR,
    ROW,
    SEQUENCE,
    STEP,
    FitEvents,
    FitJob,
    FitRoom,
    Observed,
    Sums,
    Variant,
    Walk,
    fits,
    lanes_of,
    states_of,
)
from keydyn.model.engine.recursions import backward, forward, scale_densities

# This many events, or one sequence if that is longer, keep all that is known of them in a core's own cache.
BLOCK = 4096
# Below this a sum of weights is nothing to divide by.
NOTHING = 1e-280
# What stands in the moments of a feature: Σγ; then of the normal and t families Σγ(x − loc) and Σγ(x − loc)²
# around the current location, and of the t families, whose events have a weight beside γ, the sum of both; of
# a gamma Σγx and Σγ ln x; of an exponential Σγx; of a categorical Σγ of each category.
MASS, SUM, SQUARE, PRECISION = range(4)
LOG_SUM = 2
FIRST_CATEGORY = 1


@merged
def posteriors(variant: Variant, span: Integers, job: FitJob) -> None:
    """γ of every event and the score of every sequence into `work`; sums of ξ, and of features.

    A block of sequences at a time is dealt with while it is in the nearest cache. Sequences for which
    underflow threatens have a score of NaN or −inf. They are left to the log domain, and the sums are no good
    then.
    """
    rules, _, events, _, tables, sums, work, _ = job
    row, end_row, first, last = span[ROW], span[ROW + 1], span[SEQUENCE], span[SEQUENCE + 1]
    step, end_step = span[STEP], span[STEP] + span[PAIR + 1] - span[PAIR] + 2 * (end_row - row) - 1
    sizes, observed = variant[:2], Observed(events.x, events.codes, events.given)
    how = Densities(rules.features, rules.log_floor, tables.cells)
    walk = Walk(
        events.offsets, events.weights, events.start_rows, events.steps, tables.start, tables.transitions
    )
    prepare_cells(variant, row, end_row, rules.features, tables.emission, tables.cells)
    sums.transitions[step:end_step] = 0.0
    sums.moments[row:end_row] = 0.0
    work.worst[:] = 1.0
    while first < last:
        end = end_of_block(events.offsets, first, last, len(work.density))
        begin, stop = events.offsets[first], events.offsets[end]
        log_densities(variant, begin, stop, observed, how, work.density)
        scale_densities(sizes, stop - begin, work.density, work.largest)
        forward(sizes, first, end, walk, work)
        backward(sizes, first, end, walk, work, sums.transitions)
        sum_moments(variant, (begin, stop), observed, how, work.states, sums.moments)
        first = end


@inner
def sum_first_events(
    variant: Variant, span: Integers, events: FitEvents, every_type: bool, sums: Sums, work: FitRoom
) -> None:
    """The sums of γ at the first events of sequences, and, `every_type`, at the first events of each type."""
    row, end_row = span[ROW], span[ROW + 1]
    sums.start[row:end_row] = 0.0
    for s in range(span[SEQUENCE], span[SEQUENCE + 1]):
        n = events.offsets[s]
        add_states(variant, n, events.start_rows[s], work.states, sums.start)
        if events.start_rows[s] < end_row - 1:
            add_states(variant, n, end_row - 1, work.states, sums.start)
    if every_type:
        latest = sums.latest
        latest[row:end_row] = -1
        sums.first_seen[row:end_row] = 0.0
        for s in range(span[SEQUENCE], span[SEQUENCE + 1]):
            for n in range(events.offsets[s], events.offsets[s + 1]):
                if latest[events.codes[n]] != s:
                    latest[events.codes[n]] = s
                    add_states(variant, n, events.codes[n], work.states, sums.first_seen)
        # Those without a type are not of one type.
        sums.first_seen[end_row - 1] = 0.0


def room_for(longest: int, n_events: int) -> int:
    """How many events there must be room for: those of a block, or of the longest sequence."""
    return min(max(longest, BLOCK), n_events)


@inner
def end_of_block(offsets: Integers, first: int, last: int, room: int) -> int:
    """The sequence up to which there is room for all events from the first sequence on; one at least."""
    end = first + 1
    while end < last and offsets[end + 1] - offsets[first] <= room:
        end += 1
    return end


@inner
def add_states(variant: Variant, n: int, row: int, states: Floats, sums: Floats) -> None:
    """γ of an event added to a row."""
    for j in range(states_of(variant, states.shape[1])):
        for lane in range(lanes_of(variant)):
            sums[row, j, lane] += states[n, j, lane]


@inner
def precision_of(standard: float, power: float) -> float:
    """What an event weighs under Student's t (Liu and Rubin): (ν + 1) / (ν + z²) for z²/ν = `standard`²."""
    return 2.0 * power / ((2.0 * power - 1.0) * (1.0 + standard * standard))


@inner
def sum_moments(
    variant: Variant,
    block: tuple[int, int],
    observed: Observed,
    how: Densities,
    states: Floats,
    moments: Floats,
) -> None:
    """Weights and sums of each feature by event type and state; a missing value weighs nothing.

    `block` is the first event, and the one after the last.

    The mean of the normal and t families comes ever nearer to the current location: with sums of deviations
    from it one pass is enough, and next to nothing cancels.
    """
    first, last = block
    x, codes, features, cells = observed.x, observed.codes, how.features, how.cells
    n_states, n_lanes = states_of(variant, states.shape[1]), lanes_of(variant)
    if not (
        fits(n_states, n_lanes, states.shape[1:])
        and fits(n_states, n_lanes, cells.shape[3:])
        and fits(n_states, n_lanes, moments.shape[3:])
        and x.shape[2] == n_lanes
    ):
        return
    for k in range(len(features)):
        kind = features[k, KIND]
        if kind == NORMAL:
            for n in range(first, last):
                code = codes[n]
                for j in range(n_states):
                    for lane in range(n_lanes):
                        value = x[n, k, lane]
                        weight = states[n, j, lane] if value == value else 0.0
                        apart = value - cells[code, k, LOC, j, lane] if value == value else 0.0
                        moments[code, k, MASS, j, lane] += weight
                        moments[code, k, SUM, j, lane] += weight * apart
                        moments[code, k, SQUARE, j, lane] += weight * apart * apart
        elif len(variant) == ANY_FAMILY and kind != CUSTOM:
            for n in range(first, last):
                code = codes[n]
                for lane in range(n_lanes):
                    there = x[n, k, lane] == x[n, k, lane]
                    given = x[n, k, lane] if there else 1.0
                    log_value = logarithm(given) if kind == GAMMA else 0.0
                    for j in range(n_states):
                        value = given
                        weight = states[n, j, lane] if there else 0.0
                        moments[code, k, MASS, j, lane] += weight
                        if kind == CATEGORICAL:
                            moments[code, k, FIRST_CATEGORY + int(value) * there, j, lane] += weight
                            continue
                        if kind == STUDENT:
                            inverse, power = cells[code, k, INVERSE, j, lane], cells[code, k, POWER, j, lane]
                            value -= cells[code, k, LOC, j, lane]
                            weight *= precision_of(value * inverse, power)
                            moments[code, k, PRECISION, j, lane] += weight
                            moments[code, k, SQUARE, j, lane] += weight * value * value
                        elif kind == GAMMA:
                            moments[code, k, LOG_SUM, j, lane] += weight * log_value
                        moments[code, k, SUM, j, lane] += weight * value
