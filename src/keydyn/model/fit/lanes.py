"""Algorithm 1 for many models over the same event sequences: fixed text, folds, surrogates.

A model takes a lane, and when it stops the next one takes its place. Each stops by its own log-likelihood:
its result is that of a fit on its own.
"""

from __future__ import annotations

from typing import NamedTuple

from keydyn.arrays import Floats, Integers, Truths, compiled, inner
from keydyn.model.engine.expectation import Events, Scratch, Sums, Tables, finish_sums, posteriors
from keydyn.model.engine.maximisation import Chain, Rules, maximisation
from keydyn.model.engine.recursions import FAINT
from keydyn.model.engine.smoothing import smooth
from keydyn.model.engine.variants import LANES, Variant
from keydyn.model.fit.algorithm import ALONE, DECREASE, GOES_ON, IMPOSSIBLE, TOL, Outcome, settle, total_score

FREE = -1
# What `cursor` remembers between two calls: the next model that waits for a lane, and how many are in one.
WAITING, BUSY = range(2)


class Lanes(NamedTuple):
    """What the models in the lanes have apart from each other.

    Attributes
    ----------
    model : (L,) in each lane, or FREE; x : (N, K, L); min_scale : (K, L)
    """

    model: Integers
    x: Floats
    min_scale: Floats


@compiled
def climb_in_lanes(
    variant: Variant,
    rules: Rules,
    features: Integers,
    span: Integers,
    events: Events,
    chain: Chain,
    values: Floats,
    given: Floats,
    min_scale: Floats,
    theta: Tables,
    found: Sums,
    found_floored: Truths,
    lanes: Lanes,
    tables: Tables,
    sums: Sums,
    floored: Truths,
    scratch: Scratch,
    outcome: Outcome,
    cursor: Integers,
    budget: int,
) -> None:
    """Fit all models from the parameters in `theta`, which then holds the results; see `climb`."""
    n_rows, n_steps = len(tables.start), len(tables.transitions)
    while cursor[WAITING] < len(outcome.reason) or cursor[BUSY] > 0:
        if budget <= 0 or needs_room(rules.max_iter, lanes.model, outcome):
            return
        if cursor[BUSY] > 0:
            maximisation(variant, span, chain, rules, features, sums, lanes.min_scale, tables, floored)
            smooth(variant, span, chain, rules, features, tables)
        for lane in range(LANES):
            if lanes.model[lane] == FREE and cursor[WAITING] < len(outcome.reason):
                b = cursor[WAITING]
                lanes.model[lane] = b
                cursor[WAITING] += 1
                cursor[BUSY] += 1
                load(lane, b, n_rows, n_steps, values, min_scale, theta, lanes, tables)
        posteriors(variant, span, events, lanes.x, given, features, rules.log_floor, tables, sums, scratch)
        finish_sums(variant, span, events, features, sums, scratch)
        for lane in range(LANES):
            b = lanes.model[lane]
            if b == FREE:
                continue
            settle(b, total_score(lane, span, events.weights, scratch.scores), rules, outcome)
            # A lane is not helped out in the log domain.
            if not scratch.worst[lane] >= FAINT or outcome.reason[b] == IMPOSSIBLE:
                outcome.reason[b] = ALONE
            if outcome.reason[b] in (TOL, DECREASE) or (
                outcome.reason[b] == GOES_ON and outcome.n_iter[b] == rules.max_iter
            ):
                unload_sums(lane, b, n_rows, n_steps, found, sums)
            if outcome.reason[b] >= 0:
                unload(lane, b, n_rows, n_steps, theta, found_floored, tables, floored)
            if outcome.reason[b] != GOES_ON:
                lanes.model[lane] = FREE
                cursor[BUSY] -= 1
        budget -= len(lanes.x) * LANES


@inner
def needs_room(max_iter: int, models: Integers, outcome: Outcome) -> bool:
    """Whether a model in some lane has filled its row of the history and goes on."""
    full = False
    for b in models:
        full = full or (b != FREE and outcome.n_iter[b] == outcome.history.shape[1] < max_iter)
    return full


@inner
def load(
    lane: int,
    b: int,
    n_rows: int,
    n_steps: int,
    values: Floats,
    min_scale: Floats,
    theta: Tables,
    lanes: Lanes,
    tables: Tables,
) -> None:
    """A model's values and the parameters that it starts from into a lane."""
    n_events, n_features = lanes.x.shape[0], lanes.x.shape[1]
    for k in range(n_features):
        lanes.min_scale[k, lane] = min_scale[b, k, 0]
        for n in range(n_events):
            lanes.x[n, k, lane] = values[b * n_events + n, k, 0]
    for j in range(2):
        for row in range(n_rows):
            tables.start[row, j, lane] = theta.start[b * n_rows + row, j, 0]
            for p in range(tables.emission.shape[1]):
                tables.emission[row, p, j, lane] = theta.emission[b * n_rows + row, p, j, 0]
        for step in range(n_steps):
            for i in range(2):
                tables.transitions[step, i, j, lane] = theta.transitions[b * n_steps + step, i, j, 0]


@inner
def unload(
    lane: int,
    b: int,
    n_rows: int,
    n_steps: int,
    theta: Tables,
    found_floored: Truths,
    tables: Tables,
    floored: Truths,
) -> None:
    """A lane's parameters to where its model has its place."""
    for j in range(2):
        for row in range(n_rows):
            at = b * n_rows + row
            theta.start[at, j, 0] = tables.start[row, j, lane]
            for p in range(tables.emission.shape[1]):
                theta.emission[at, p, j, 0] = tables.emission[row, p, j, lane]
            for k in range(floored.shape[1]):
                found_floored[at, k, j, 0] = floored[row, k, j, lane]
        for step in range(n_steps):
            for i in range(2):
                theta.transitions[b * n_steps + step, i, j, 0] = tables.transitions[step, i, j, lane]


@inner
def unload_sums(lane: int, b: int, n_rows: int, n_steps: int, found: Sums, sums: Sums) -> None:
    """The sums of a lane's last iteration to where its model has its place."""
    for j in range(2):
        for row in range(n_rows):
            at = b * n_rows + row
            found.start[at, j, 0] = sums.start[row, j, lane]
            found.first_seen[at, j, 0] = sums.first_seen[row, j, lane]
            for k in range(sums.moments.shape[1]):
                for p in range(sums.moments.shape[2]):
                    found.moments[at, k, p, j, 0] = sums.moments[row, k, p, j, lane]
        for step in range(n_steps):
            for i in range(2):
                found.transitions[b * n_steps + step, i, j, 0] = sums.transitions[step, i, j, lane]
