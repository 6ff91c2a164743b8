"""Many filters of two states, unrolled: the same as `update_many`, and several times as fast.

Filters are taken some at a time, in three passes. What is looked up goes first, one filter after the other.
The arithmetic with its exponential, its division and its logarithm is the second, a loop without a branch
that becomes vector instructions. The third writes the results. Only what is unusual goes to another function,
for a call that is handed whole arrays costs as much as the arithmetic of an event: a first event, a pair that
was not observed, a probability near underflow.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.elementary import exponential, logarithm
from keydyn.model.watch.densities import COEFFICIENTS, LOG_NORMAL, log_density
from keydyn.model.watch.online_kernels import (
    COUNT,
    COVERED,
    IN_LOGS,
    LAST,
    TOTAL,
    find_sorted,
    find_step,
    general_step,
)
from keydyn.model.watch.online_tables import END_PAIR, FIRST_PAIR, HEAD, KIND, LOG_FLOOR

# Where the coefficients of a type's emissions begin: after its start row and two matrices.
EMISSIONS = HEAD + 2 + 2 * 4
# Filters at a time: what is kept of them between the passes stays in the first-level cache.
TOGETHER = 128


@compiled
def update_many_of_two(
    x: Floats,
    codes: Integers,
    numbers: Integers,
    models: Integers,
    translation: Integers,
    filters: Floats,
    types: Floats,
    successors: Integers,
    steps: Floats,
    features: Floats,
    rules: Floats,
    first_row: Integers,
    increments: Floats,
) -> None:
    """`update_many` for two states and compiled families."""
    n_features, n_filters, dense = len(features), models.shape[1], len(successors) == 0
    log_x = np.empty(x.shape)
    logarithms(x.ravel(), log_x.ravel())
    step = np.empty(6)
    # Of each filter: P(z_n = 0), P(z_n = 1) before the event is looked at, then after; ln f of both states.
    state_0, state_1 = np.empty(TOGETHER), np.empty(TOGETHER)
    density_0, density_1 = np.empty(TOGETHER), np.empty(TOGETHER)
    increment, own_code = np.empty(TOGETHER), np.empty(TOGETHER, dtype=np.int64)
    for begin in range(0, len(x) * n_filters, TOGETHER):
        together = min(TOGETHER, len(x) * n_filters - begin)
        b, c = begin // n_filters, begin % n_filters
        for place in range(together):
            model = models[numbers[b], c]
            number = numbers[b] * n_filters + c
            code = translation[model, codes[b]]
            first = first_row[model]
            own_code[place] = code
            state_0[place] = state_1[place] = own_0 = own_1 = 0.0
            if filters[number, 2 + COUNT] > 0.0 and filters[number, 2 + IN_LOGS] == 0.0:
                before = int(filters[number, 2 + LAST])
                unknown = first_row[model + 1] - first - 1
                pair, row = -1, first + before
                if dense:
                    pair = int(types[row, FIRST_PAIR]) + code
                elif before != unknown and code != unknown:
                    pair = find_sorted(
                        successors, int(types[row, FIRST_PAIR]), int(types[row, END_PAIR]), code
                    )
                if pair >= 0:
                    from_0_to_0, from_0_to_1 = steps[pair, 0], steps[pair, 1]
                    from_1_to_0, from_1_to_1 = steps[pair, 2], steps[pair, 3]
                else:
                    find_step(types, successors, steps, rules, model, first, unknown, before, code, 2, step)
                    from_0_to_0, from_0_to_1 = step[0], step[1]
                    from_1_to_0, from_1_to_1 = step[2], step[3]
                state_0[place] = filters[number, 0] * from_0_to_0 + filters[number, 1] * from_1_to_0
                state_1[place] = filters[number, 0] * from_0_to_1 + filters[number, 1] * from_1_to_1
                row = first + code
                floor = rules[model, LOG_FLOOR]
                e = EMISSIONS
                for k in range(n_features):
                    value, log_value = x[b, k], log_x[b, k]
                    if not math.isnan(value):
                        kind = int(features[k, KIND])
                        if kind == LOG_NORMAL:
                            standard = (log_value - types[row, e]) / types[row, e + 1]
                            of_0 = types[row, e + 2] - 0.5 * standard * standard - log_value
                            standard = (log_value - types[row, e + 4]) / types[row, e + 5]
                            of_1 = types[row, e + 6] - 0.5 * standard * standard - log_value
                        else:
                            of_0 = log_density(
                                kind,
                                value,
                                log_value,
                                types[row, e],
                                types[row, e + 1],
                                types[row, e + 2],
                                types[row, e + 3],
                            )
                            of_1 = log_density(
                                kind,
                                value,
                                log_value,
                                types[row, e + 4],
                                types[row, e + 5],
                                types[row, e + 6],
                                types[row, e + 7],
                            )
                        own_0 += max(of_0, floor)
                        own_1 += max(of_1, floor)
                    e += 2 * COEFFICIENTS
            density_0[place], density_1[place] = own_0, own_1
            c += 1
            if c == n_filters:
                b, c = b + 1, 0
        advance_two(together, state_0, state_1, density_0, density_1, increment)
        b, c = begin // n_filters, begin % n_filters
        for place in range(together):
            number = numbers[b] * n_filters + c
            code = own_code[place]
            if density_0[place] > COVERED and density_1[place] > COVERED:
                filters[number, 0] = state_0[place]
                filters[number, 1] = state_1[place]
                filters[number, 2 + LAST] = code
                filters[number, 2 + COUNT] += 1.0
                filters[number, 2 + TOTAL] += increment[place]
                increments[b, c] = increment[place]
            else:
                model = models[numbers[b], c]
                first = first_row[model]
                increments[b, c] = general_step(
                    x,
                    b,
                    log_x[b],
                    code,
                    model,
                    first,
                    first_row[model + 1] - first - 1,
                    filters,
                    number,
                    types,
                    successors,
                    steps,
                    features,
                    rules,
                    np.zeros(2),
                    step,
                )
            c += 1
            if c == n_filters:
                b, c = b + 1, 0


@compiled
def logarithms(x: Floats, log_x: Floats) -> None:
    """ln x of each value > 0; what stands in the places of others has no meaning, nor is it looked at."""
    for n in range(len(x)):
        log_x[n] = logarithm(x[n])


@compiled
def advance_two(
    n_filters: int, state_0: Floats, state_1: Floats, density_0: Floats, density_1: Floats, increment: Floats
) -> None:
    """One step of some filters (Eqs. 3–4), in place: predicted to filtered, and ln P(x_n | x_1..n−1, Ω).

    The densities give way to the products, by which underflow is seen.
    """
    for place in range(n_filters):
        log_0, log_1 = density_0[place], density_1[place]
        # One exponential for two states: the larger density is the unit.
        smaller = exponential(-abs(log_0 - log_1))
        value_0 = state_0[place] * (smaller if log_0 < log_1 else 1.0)
        value_1 = state_1[place] * (1.0 if log_0 < log_1 else smaller)
        total = value_0 + value_1
        scale = 1.0 / total
        state_0[place], state_1[place] = value_0 * scale, value_1 * scale
        density_0[place], density_1[place] = value_0, value_1
        increment[place] = logarithm(total) + max(log_0, log_1)
