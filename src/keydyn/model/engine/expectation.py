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

# Events per block, so that its data stay in a core's own cache; a longer sequence is a block of its own.
BLOCK = 4096
# Sums of weights below this count as zero and are not divided by.
NOTHING = 1e-280
# The moments of a feature. All families: Σγ. Normal and t families: Σγ(x − loc) and Σγ(x − loc)² around the
# current location; in the t families each γ here is multiplied by the event's precision, and PRECISION is the
# sum of these products. Gamma: Σγx and Σγ ln x. Exponential: Σγx. Categorical: Σγ of each category.
MASS, SUM, SQUARE, PRECISION = range(4)
LOG_SUM = 2
FIRST_CATEGORY = 1


@merged
def posteriors(variant: Variant, span: Integers, job: FitJob) -> None:
    """Compute γ of every event, the score of every sequence, and the sums of ξ and of features.

    Sequences are processed in blocks that stay in the nearest cache. A sequence for which underflow threatens
    has a score of NaN or −inf; the sums are then invalid until it is redone in the log domain.
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
    """Sum γ at the first events of sequences and, if `every_type`, at the first event of each type."""
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
        # Events of unknown type do not form a type.
        sums.first_seen[end_row - 1] = 0.0


def room_for(longest: int, n_events: int) -> int:
    """The number of events for which workspace is needed: those of a block, or of the longest sequence."""
    return min(max(longest, BLOCK), n_events)


@inner
def end_of_block(offsets: Integers, first: int, last: int, room: int) -> int:
    """The end of the block that begins with sequence `first`: the most sequences with room, at least one."""
    end = first + 1
    while end < last and offsets[end + 1] - offsets[first] <= room:
        end += 1
    return end


@inner
def add_states(variant: Variant, n: int, row: int, states: Floats, sums: Floats) -> None:
    """Add γ of an event to a row of the sums."""
    for j in range(states_of(variant, states.shape[1])):
        for lane in range(lanes_of(variant)):
            sums[row, j, lane] += states[n, j, lane]


@inner
def precision_of(standard: float, power: float) -> float:
    """The weight of an event under Student's t (Liu and Rubin): (ν + 1) / (ν + z²) for z²/ν = `standard`²."""
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
    """Sum weights and values of each feature by event type and state; missing values have no weight.

    `block` is the first event and the one after the last.

    In the normal and t families sums are of deviations from the current location. As the mean converges to
    it, hardly anything cancels, and one pass is enough.
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
