"""One event at a time, compiled: the forward recursion of many filters, each with its model.

A filter is a row of `filters`, (M + 4) numbers: the states' probabilities, whether these are logarithms,
the last event's type, how many events there were, and ln P of them. Probabilities are kept scaled to one.
What came before cannot be done again, so a step that would lose a probability to underflow is taken in
logarithms, and the filter stays there until nothing would be lost by coming back.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.log_domain import filter_step, safe_log
from keydyn.model.watch.densities import COEFFICIENTS, CUSTOM, log_density, takes_logarithm
from keydyn.model.watch.online_tables import (
    BY_FREQUENCY,
    END_PAIR,
    ENTERING,
    FIRST_PAIR,
    HEAD,
    HIGHEST,
    KIND,
    LEAVING,
    LOG_FLOOR,
    LOWEST,
    NO_SMOOTHING,
    PROPER,
    SHARE,
)

# Columns of a filter after its M probabilities.
IN_LOGS, LAST, COUNT, TOTAL, EXTRA = range(5)
TINY = 1e-280
# Underflow takes less than 2.3e-308. A probability of COVERED or more leaves thirty digits above TINY.
COVERED = 1e-250
LOG_COVERED = math.log(COVERED)


@compiled
def find_sorted(codes: Integers, first: int, end: int, code: int) -> int:
    """Where a code is among the ascending ones from `first` to `end` − 1, −1 if it is not.

    Halving without a branch on what is found: types come in no order that a processor could guess.
    """
    size = end - first
    while size > 1:
        half = size >> 1
        first += half if codes[first + half] <= code else 0
        size -= half
    return first if size == 1 and codes[first] == code else -1


@compiled
def bad_column(x: Floats, event: int, features: Floats) -> int:
    """The first feature whose value its family cannot emit, −1 if there is none."""
    for k in range(len(features)):
        if x[event, k] < features[k, LOWEST] or x[event, k] > features[k, HIGHEST]:
            return k
    return -1


@compiled
def take_logarithms(x: Floats, event: int, features: Floats, log_x: Floats) -> None:
    """ln x of one event, where a density needs it."""
    for k in range(len(features)):
        if takes_logarithm(int(features[k, KIND])):
            log_x[k] = math.log(x[event, k])


@compiled
def event_densities(
    x: Floats,
    event: int,
    log_x: Floats,
    features: Floats,
    types: Floats,
    row: int,
    floor: float,
    density: Floats,
) -> None:
    """Add ln f(x; b[j | ω]) to `density` (M,): features multiplied, missing ones left out."""
    n_states = len(density)
    first = HEAD + n_states + 2 * n_states * n_states
    for k in range(len(features)):
        kind = int(features[k, KIND])
        if kind == CUSTOM or math.isnan(x[event, k]):
            continue
        for j in range(n_states):
            c = first + (k * n_states + j) * COEFFICIENTS
            value = log_density(
                kind,
                x[event, k],
                log_x[k],
                types[row, c],
                types[row, c + 1],
                types[row, c + 2],
                types[row, c + 3],
            )
            density[j] += max(value, floor)


@compiled
def unseen_step(
    types: Floats, before: int, after: int, rules: Floats, model: int, n_states: int, step: Floats
) -> None:
    """ã[i, j | ψ, ω] of a pair that was never observed: a uniform estimate, smoothed (Eqs. 35–36)."""
    uniform = 1.0 / n_states
    share = rules[model, SHARE]
    if share == NO_SMOOTHING:
        step[:] = uniform
        return
    if share == BY_FREQUENCY:
        from_before = 1.0 / (1.0 + types[after, ENTERING])
        to_after = 1.0 / (1.0 + types[before, LEAVING])
    else:
        from_before = to_after = 0.5 * share
    if rules[model, PROPER] > 0.0:
        excess = max(from_before + to_after, 1.0)
        from_before, to_after = from_before / excess, to_after / excess
    own = (1.0 - from_before - to_after) * uniform
    column_from = HEAD + n_states
    column_to = column_from + n_states * n_states
    for i in range(n_states):
        total = 0.0
        for j in range(i * n_states, (i + 1) * n_states):
            mixed = (
                own + from_before * types[before, column_from + j] + to_after * types[after, column_to + j]
            )
            step[j] = max(mixed, 0.0)
            total += step[j]
        for j in range(i * n_states, (i + 1) * n_states):
            step[j] = step[j] / total if total > 0.0 else uniform


@compiled
def find_step(
    types: Floats,
    successors: Integers,
    steps: Floats,
    rules: Floats,
    model: int,
    first_row: int,
    unknown: int,
    before: int,
    after: int,
    n_states: int,
    step: Floats,
) -> None:
    """a[i, j | ψ, ω] of any two types into `step` (M·M,); `unknown` is the code of those not listed."""
    square = n_states * n_states
    if len(successors) == 0:
        # All pairs are laid out.
        pair = int(types[first_row + before, FIRST_PAIR]) + after
        for k in range(square):
            step[k] = steps[pair, k]
        return
    if before == unknown or after == unknown:
        # a[i, j | ψ] if the later is unknown, a[i, j | ω] if the earlier is, a[i, j] in the last row
        use_from = after == unknown
        row = first_row + (before if use_from else after)
        column = HEAD + n_states + (0 if use_from else square)
        for k in range(square):
            step[k] = types[row, column + k]
        return
    row = first_row + before
    pair = find_sorted(successors, int(types[row, FIRST_PAIR]), int(types[row, END_PAIR]), after)
    if pair >= 0:
        for k in range(square):
            step[k] = steps[pair, k]
    else:
        unseen_step(types, row, first_row + after, rules, model, n_states, step)


@compiled
def advance(
    filters: Floats, number: int, start: Floats, start_row: int, step: Floats, density: Floats, code: int
) -> float:
    """One step of one filter (Eqs. 3–4): ln P(x_n | x_1..n−1, Ω).

    `density` (M,) is ln f of the event in each state. A first event takes its start probabilities from row
    `start_row` of the types, later ones the transitions `step` (M·M,).
    """
    n_states = len(density)
    begun = filters[number, n_states + COUNT] > 0.0
    largest = -math.inf
    for j in range(n_states):
        largest = max(largest, density[j])
    # Scaled values go behind the transitions in `step`, so that nothing is lost if logarithms are needed.
    values = n_states * n_states
    total = 0.0
    exact = filters[number, n_states + IN_LOGS] == 0.0 and largest > -math.inf
    for j in range(n_states):
        if not exact:
            break
        predicted = 0.0
        if begun:
            for i in range(n_states):
                predicted += filters[number, i] * step[i * n_states + j]
            if predicted < COVERED:
                for i in range(n_states):
                    p, a = filters[number, i], step[i * n_states + j]
                    if p > 0.0 and a > 0.0 and p * a < TINY:
                        exact = False
        else:
            predicted = start[start_row, HEAD + j]
        value = predicted if density[j] == largest else predicted * math.exp(density[j] - largest)
        if value < TINY and predicted > 0.0 and density[j] > -math.inf:
            exact = False
        step[values + j] = value
        total += value
    if exact and total > 0.0:
        scale = 1.0 / total
        for j in range(n_states):
            filters[number, j] = step[values + j] * scale
        increment = math.log(total) + largest
    else:
        increment = advance_in_logs(filters, number, start, start_row, step, density, begun)
    filters[number, n_states + LAST] = code
    filters[number, n_states + COUNT] += 1.0
    filters[number, n_states + TOTAL] += increment
    return increment


@compiled
def advance_in_logs(
    filters: Floats, number: int, start: Floats, start_row: int, step: Floats, density: Floats, begun: bool
) -> float:
    """The same step in the log domain. Rare, so that it may allocate."""
    n_states = len(density)
    log_filtered = np.empty((1, n_states))
    first, matrix = np.empty((1, n_states)), np.empty((1, n_states, n_states))
    log_densities, increment = np.empty((1, n_states)), np.empty(1)
    in_logs = filters[number, n_states + IN_LOGS] > 0.0
    for j in range(n_states):
        log_filtered[0, j] = filters[number, j] if in_logs else safe_log(filters[number, j])
        first[0, j] = start[start_row, HEAD + j]
        log_densities[0, j] = density[j]
        for i in range(n_states):
            matrix[0, i, j] = step[i * n_states + j]
    filter_step(log_filtered, np.array([begun]), first, matrix, log_densities, increment)
    back = increment[0] > -math.inf
    for j in range(n_states):
        back = back and (log_filtered[0, j] > LOG_COVERED or log_filtered[0, j] == -math.inf)
    for j in range(n_states):
        filters[number, j] = math.exp(log_filtered[0, j]) if back else log_filtered[0, j]
    filters[number, n_states + IN_LOGS] = 0.0 if back else 1.0
    return float(increment[0])


@compiled
def general_step(
    x: Floats,
    event: int,
    log_x: Floats,
    code: int,
    model: int,
    first: int,
    unknown: int,
    filters: Floats,
    number: int,
    types: Floats,
    successors: Integers,
    steps: Floats,
    features: Floats,
    rules: Floats,
    density: Floats,
    step: Floats,
) -> float:
    """The event in row `event` of `x` in one filter, for any number of states; ln P(x_n | x_1..n−1, Ω).

    `density` (M,) holds ln f of features that are not compiled, or zeros, and is used up; `step` (M·M + M,)
    is scratch.
    """
    n_states = len(density)
    row = first + code
    event_densities(x, event, log_x, features, types, row, rules[model, LOG_FLOOR], density)
    if filters[number, n_states + COUNT] > 0.0:
        before = int(filters[number, n_states + LAST])
        find_step(types, successors, steps, rules, model, first, unknown, before, code, n_states, step)
    return advance(filters, number, types, row, step, density, code)


@compiled
def update_one(
    x: Floats,
    code: int,
    filters: Floats,
    types: Floats,
    successors: Integers,
    steps: Floats,
    features: Floats,
    rules: Floats,
) -> float:
    """The next event `x` (K,) of the only filter of one model; NaN if a value is none of its family."""
    event = x.reshape((1, len(x)))
    if bad_column(event, 0, features) >= 0:
        return math.nan
    n_states, unknown = filters.shape[1] - EXTRA, len(types) - 1
    log_x = np.empty(len(features))
    take_logarithms(event, 0, features, log_x)
    density, step = np.zeros(n_states), np.empty(n_states * (n_states + 1))
    return general_step(
        event,
        0,
        log_x,
        code,
        0,
        0,
        unknown,
        filters,
        0,
        types,
        successors,
        steps,
        features,
        rules,
        density,
        step,
    )


@compiled
def update_many(
    x: Floats,
    codes: Integers,
    numbers: Integers,
    models: Integers,
    translation: Integers,
    given: Floats,
    filters: Floats,
    types: Floats,
    successors: Integers,
    steps: Floats,
    features: Floats,
    rules: Floats,
    first_row: Integers,
    increments: Floats,
) -> None:
    """One event in each of B sessions, (B, K), for each of the C filters of a session.

    Session s has the filters s·C … and `models` (S, C) tells the model of each. `translation` (U, V) turns
    `codes` (B,) into each model's own. `given` (B, C, M) has ln f of features that are not compiled; it has
    no rows where all are. Values were checked before. ln P goes into `increments` (B, C).
    """
    n_states, n_filters = filters.shape[1] - EXTRA, models.shape[1]
    log_x, density = np.empty(len(features)), np.empty(n_states)
    step = np.empty(n_states * (n_states + 1))
    for b in range(len(x)):
        take_logarithms(x, b, features, log_x)
        for c in range(n_filters):
            model = models[numbers[b], c]
            first = first_row[model]
            for j in range(n_states):
                density[j] = given[b, c, j] if len(given) else 0.0
            increments[b, c] = general_step(
                x,
                b,
                log_x,
                translation[model, codes[b]],
                model,
                first,
                first_row[model + 1] - first - 1,
                filters,
                numbers[b] * n_filters + c,
                types,
                successors,
                steps,
                features,
                rules,
                density,
                step,
            )
