"""The forward step (Eqs. 3–4), one event at a time, of many filters, each with its own model.

A filter is a row of `filters`, (M + 4) numbers: the states' probabilities, whether these are logarithms, the
type of the last event, the number of events so far, and their ln P. Probabilities are normalised in each
step. Earlier steps cannot be repeated, so a step that could lose a probability to underflow is taken in the
log domain, and the filter stays there until it can leave without loss.

Filters are processed in groups and in three passes: a lookup, the arithmetic, whose loops over filters become
vector instructions, and the write-back. Between the passes a filter is a column of two small tables.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.model.engine.densities import (
    CATEGORICAL,
    CUSTOM,
    GAMMA,
    HEIGHT,
    INVERSE,
    LOC,
    NORMAL,
    POWER,
    exponential,
    log_density,
    logarithm,
)
from keydyn.model.engine.layout import ANY_FAMILY, Variant, check_shape, fits, lanes_of, states_of
from keydyn.model.engine.log_domain import log_predicted, log_sum_exp, safe_log
from keydyn.model.engine.pairs import Pair, Pairs, find_step, lay_out_unseen

# Columns of a filter after its M probabilities.
IN_LOGS, LAST, COUNT, TOTAL, EXTRA = range(5)
# Columns of a feature's row: its family, whether ln x has that distribution, and the range of x.
KIND, ON_LOG_SCALE, LOWEST, HIGHEST = range(4)
# Rows of the table of places, which has a column per filter: the number of the filter, its event, the row of
# the event's type, the row of the model's unknown types, the event's code, and the row of the transitions or
# NOT_BEGUN.
FILTER, EVENT, ROW, UNKNOWN, CODE, STEP, N_PLACES = range(7)
NOT_BEGUN = -1
# Rows of the table of numbers that follow the M probabilities and the M log-densities.
FLOOR, SUM, LEAST, N_NUMBERS = range(4)
# Number of filters in a group, whose columns stay in a core's first-level cache.
TOGETHER = 128
# Underflow begins at 2.3e-308. In a probability of this size or more the loss has no visible effect.
COVERED = 1e-250
LOG_COVERED = math.log(COVERED)


class Models(NamedTuple):
    """The tables of all models, one after the other; each has a row per type, then one for unknown types.

    Attributes
    ----------
    start : (R, M, 1) π[j | ω]
    cells : (R, K, W, M, 1) coefficients of the densities
    transitions : (T, M, M, 1) a[i, j | ψ, ω] of all pairs of a model's types, in order; or, if these are too
        many, of the observed pairs and then the marginals, as in θ, followed by TOGETHER spare rows for the
        unseen pairs of a group of filters
    steps : (R,) the first row of `transitions` from each type; with observed pairs only, the `steps` of
        `engine.pairs`
    weights : (R, 3) the `weights` of `engine.pairs`; empty if all pairs are laid out
    """

    start: Floats
    cells: Floats
    transitions: Floats
    steps: Integers
    weights: Floats


class Members(NamedTuple):
    """What the rows of `Models` belong to, and what else differs between the models.

    Attributes
    ----------
    translation : (U, V) each model's code of each event type of the stream
    first_row : (U + 1,) the first row of each model, and the number of rows
    log_floors : (U,) the least log-density of a feature, −inf if there is none
    features : (K, 4) a row per feature, with the columns above
    """

    translation: Integers
    first_row: Integers
    log_floors: Floats
    features: Floats


class FilterColumns(NamedTuple):
    """The tables that connect the passes, with a column per filter: places (N_PLACES, n) and numbers."""

    places: Integers
    numbers: Floats


class ArrivedEvents(NamedTuple):
    """The values of events, (K, B), and the table of their features, (K, 4)."""

    x: Floats
    features: Floats


def check_models(models: Models, features: Floats, filters: Floats) -> None:
    """Raise `ValueError` if the arrays have shapes that do not fit each other."""
    (n_rows, n_states, _), n_features = models.start.shape, len(features)
    check_shape("features", features, (n_features, 4))
    check_shape("filters", filters, (len(filters), n_states + EXTRA))
    check_shape("cells", models.cells, (n_rows, n_features, models.cells.shape[2], n_states, 1))
    check_shape("transitions", models.transitions, (len(models.transitions), n_states, n_states, 1))


@inner
def scale_values(x: Floats, features: Floats) -> int:
    """Take x (K, B) to the scale of the families, in place, and return −1; NaN is missing.

    If a feature cannot have one of its values, return the number of the feature and change nothing.
    """
    for k in range(len(features)):
        lowest, highest, outside = features[k, LOWEST], features[k, HIGHEST], 0
        whole = features[k, KIND] == CATEGORICAL
        for n in range(x.shape[1]):
            value = x[k, n]
            beyond = value < lowest or value > highest
            outside += 1 if beyond or (whole and value == value and value != float(int(value))) else 0
        if outside > 0:
            return k
    for k in range(len(features)):
        if features[k, ON_LOG_SCALE] > 0.0:
            for n in range(x.shape[1]):
                value = x[k, n]
                log_value = logarithm(value)
                x[k, n] = log_value if value == value else value
    return -1


def _look_up(
    variant: Variant,
    n_filters: int,
    columns: FilterColumns,
    arrived: ArrivedEvents,
    models: Models,
    filters: Floats,
) -> None:
    """Write P(z_n | x_1..n−1, Ω) of each filter to `numbers`, and add ln f of its event by state.

    A missing value adds nothing.
    """
    places, numbers = columns
    x, features = arrived
    start, cells, transitions, steps, weights = models
    n_states, n_lanes = states_of(variant, start.shape[1]), lanes_of(variant)
    all_pairs, pairs = len(weights) == 0, Pairs(steps, weights)
    if not (
        fits(n_states, n_lanes, start.shape[1:])
        and fits(n_states, n_lanes, cells.shape[3:])
        and fits(n_states, n_lanes, transitions.shape[1:])
        and filters.shape[1] == n_states + EXTRA
    ):
        return
    for place in range(n_filters):
        number, row, code = places[FILTER, place], places[ROW, place], places[CODE, place]
        if filters[number, n_states + COUNT] == 0.0:
            places[STEP, place] = NOT_BEGUN
            for j in range(n_states):
                numbers[j, place] = start[row, j, 0]
        else:
            earlier = row - code + int(filters[number, n_states + LAST])
            if all_pairs:
                step = steps[earlier] + code
            else:
                pair = Pair(places[UNKNOWN, place], earlier, row, code)
                step = find_step(pairs, pair)
                if step < 0:
                    step = len(transitions) - 1 - place
                    lay_out_unseen(pairs, pair, transitions, transitions, step)
            places[STEP, place] = step
            for j in range(n_states):
                predicted = 0.0
                for i in range(n_states):
                    predicted += filters[number, i] * transitions[step, i, j, 0]
                numbers[j, place] = predicted
        event, floor = places[EVENT, place], numbers[2 * n_states + FLOOR, place]
        for k in range(len(features)):
            kind, on_log_scale, value = features[k, KIND], features[k, ON_LOG_SCALE], x[k, event]
            if kind == NORMAL:
                for j in range(n_states):
                    standard = (value - cells[row, k, LOC, j, 0]) * cells[row, k, INVERSE, j, 0]
                    of_feature = cells[row, k, HEIGHT, j, 0] - 0.5 * standard * standard
                    of_feature = max(of_feature - on_log_scale * value, floor)
                    numbers[n_states + j, place] += of_feature if value == value else 0.0
            elif len(variant) == ANY_FAMILY and kind != CUSTOM and value == value:
                for j in range(n_states):
                    if kind == CATEGORICAL:
                        of_feature = cells[row, k, int(value), j, 0]
                    else:
                        cell = (
                            cells[row, k, LOC, j, 0],
                            cells[row, k, INVERSE, j, 0],
                            cells[row, k, HEIGHT, j, 0],
                            cells[row, k, POWER, j, 0],
                        )
                        log_value = logarithm(value) if kind == GAMMA else 0.0
                        of_feature = log_density(int(kind), value, log_value, cell)
                        of_feature -= on_log_scale * value
                    numbers[n_states + j, place] += max(of_feature, floor)


def _normalise(variant: Variant, n_filters: int, n_states: int, numbers: Floats) -> None:
    """Turn predicted into filtered probabilities, in place, and write ln P(x_n | x_1..n−1, Ω) to row SUM.

    Row LEAST receives the smallest product of a probability and a density, which reveals underflow.
    """
    n_states = states_of(variant, n_states)
    for place in range(n_filters):
        largest, total = numbers[n_states, place], 0.0
        for j in range(1, n_states):
            largest = max(largest, numbers[n_states + j, place])
        least = 1.0 if largest > -math.inf else 0.0
        for j in range(n_states):
            value = numbers[j, place] * exponential(numbers[n_states + j, place] - largest)
            numbers[j, place] = value
            total += value
            least = min(least, value)
        scale = 1.0 / total
        for j in range(n_states):
            numbers[j, place] *= scale
        numbers[2 * n_states + SUM, place] = logarithm(total) + largest
        numbers[2 * n_states + LEAST, place] = least


# A product and a sum may be fused (rounded once instead of twice), which is safe for NaN and infinity.
# Reference counting of arrays is off, because it would take a large part of the time of a step.
look_up = inner(_look_up, fastmath={"contract"}, _nrt=False)
normalise = inner(_normalise, fastmath={"contract"}, _nrt=False)


@inner
def step_in_logs(place: int, columns: FilterColumns, models: Models, filters: Floats) -> None:
    """Repeat the step of one filter in the log domain. This is rare, so allocating memory is acceptable."""
    places, numbers = columns
    start, transitions = models.start, models.transitions
    n_states, number, step = start.shape[1], places[FILTER, place], places[STEP, place]
    in_logs = filters[number, n_states + IN_LOGS] > 0.0
    before, after = np.empty(n_states), np.empty(n_states)
    for j in range(n_states):
        before[j] = filters[number, j] if in_logs else safe_log(filters[number, j])
    for j in range(n_states):
        if step == NOT_BEGUN:
            predicted = safe_log(start[places[ROW, place], j, 0])
        else:
            predicted = log_predicted(before, transitions, step, j)
        after[j] = predicted + numbers[n_states + j, place]
    increment = log_sum_exp(after)
    back = increment > -math.inf
    for j in range(n_states):
        after[j] = after[j] - increment if increment > -math.inf else -math.inf
        back = back and (after[j] > LOG_COVERED or after[j] == -math.inf)
    for j in range(n_states):
        numbers[j, place] = math.exp(after[j]) if back else after[j]
    numbers[2 * n_states + SUM, place] = increment
    filters[number, n_states + IN_LOGS] = 0.0 if back else 1.0


@inner
def advance(
    variant: Variant,
    n_filters: int,
    columns: FilterColumns,
    arrived: ArrivedEvents,
    models: Models,
    filters: Floats,
) -> None:
    """Take one step of the filters in the first `n_filters` columns; row SUM then has their increments."""
    places, numbers = columns
    n_states = states_of(variant, models.start.shape[1])
    if filters.shape[1] != n_states + EXTRA:
        return
    look_up(variant, n_filters, columns, arrived, models, filters)
    normalise(variant, n_filters, n_states, numbers)
    for place in range(n_filters):
        in_logs = filters[places[FILTER, place], n_states + IN_LOGS] > 0.0
        if in_logs or not numbers[2 * n_states + LEAST, place] > COVERED:
            step_in_logs(place, columns, models, filters)
    for place in range(n_filters):
        number = places[FILTER, place]
        for j in range(n_states):
            filters[number, j] = numbers[j, place]
        filters[number, n_states + LAST] = places[CODE, place]
        filters[number, n_states + COUNT] += 1.0
        filters[number, n_states + TOTAL] += numbers[2 * n_states + SUM, place]


@compiled
def update_one(
    x: Floats,
    code: int,
    log_floor: float,
    features: Floats,
    start: Floats,
    cells: Floats,
    transitions: Floats,
    steps: Integers,
    weights: Floats,
    filters: Floats,
) -> float:
    """Advance the only filter of a model by an event `x` (K,); return the increment, NaN if x does not fit.

    The call from Python is the most expensive part, and cheaper with single arrays than with a tuple of them.
    """
    if len(x) != len(features):
        return math.nan
    n_states, event = start.shape[1], np.empty((len(x), 1))
    for k in range(len(x)):
        event[k, 0] = x[k]
    if scale_values(event, features) >= 0:
        return math.nan
    places, numbers = np.empty((N_PLACES, 1), dtype=np.int64), np.empty((2 * n_states + N_NUMBERS, 1))
    places[FILTER, 0] = places[EVENT, 0] = 0
    places[ROW, 0] = places[CODE, 0] = code
    places[UNKNOWN, 0] = len(start) - 1
    for j in range(n_states):
        numbers[n_states + j, 0] = 0.0
    numbers[2 * n_states + FLOOR, 0] = log_floor
    models = Models(start, cells, transitions, steps, weights)
    advance(((), ()), 1, FilterColumns(places, numbers), ArrivedEvents(event, features), models, filters)
    return float(numbers[2 * n_states + SUM, 0])


@compiled
def update_many(
    variant: Variant,
    x: Floats,
    codes: Integers,
    sessions: Integers,
    given: Floats,
    chosen: Integers,
    members: Members,
    models: Models,
    filters: Floats,
    increments: Floats,
) -> int:
    """Advance the C filters of each of B sessions by one event, whose values `x` (K, B) are overwritten.

    Session s has the filters from s·C on; `chosen` (S, C) has the model of each. `codes` (B,) are those of
    the stream. `given` (B·C, M) has ln f of features that are not compiled; it is empty if all are.
    `increments` (B·C,) receives ln P. Returns −1, or, if a feature's family cannot have some value, the
    feature's number, with no filter changed.
    """
    translation, first_row, log_floors, features = members
    bad = scale_values(x, features)
    if bad >= 0:
        return bad
    n_states, n_models = states_of(variant, filters.shape[1] - EXTRA), chosen.shape[1]
    places = np.empty((N_PLACES, TOGETHER), dtype=np.int64)
    numbers = np.empty((2 * n_states + N_NUMBERS, TOGETHER))
    b, c = 0, 0
    for begin in range(0, len(increments), TOGETHER):
        together = min(TOGETHER, len(increments) - begin)
        for place in range(together):
            model = chosen[sessions[b], c]
            code = translation[model, codes[b]]
            places[FILTER, place] = sessions[b] * n_models + c
            places[EVENT, place] = b
            places[ROW, place] = first_row[model] + code
            places[UNKNOWN, place] = first_row[model + 1] - 1
            places[CODE, place] = code
            numbers[2 * n_states + FLOOR, place] = log_floors[model]
            for j in range(n_states):
                numbers[n_states + j, place] = given[begin + place, j] if len(given) else 0.0
            c += 1
            if c == n_models:
                b, c = b + 1, 0
        arrived = ArrivedEvents(x, features)
        advance(variant, together, FilterColumns(places, numbers), arrived, models, filters)
        for place in range(together):
            increments[begin + place] = numbers[2 * n_states + SUM, place]
    return -1
