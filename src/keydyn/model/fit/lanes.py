"""Algorithm 1 for many models over the same event sequences: fixed text, folds, surrogates.

A model takes a lane, and when it stops the next one takes its place. Each stops by its own log-likelihood:
its result is that of a fit on its own.
"""

from __future__ import annotations

from typing import NamedTuple

from keydyn.arrays import Floats, Integers, Truths, compiled, inner
from keydyn.model.engine.expectation import posteriors, sum_first_events
from keydyn.model.engine.layout import LANES, Variant
from keydyn.model.engine.maximisation import maximisation, smooth
from keydyn.model.engine.recursions import FAINT
from keydyn.model.fit.algorithm import ALONE, GOES_ON, IMPOSSIBLE, Job, Outcome, settle, total_score

FREE = -1
# What `cursor` remembers between two calls: the next model that waits for a lane, and how many are in one.
WAITING, BUSY = range(2)
# Of the arrays that models have, these go into a lane, and these come out: parameters do both.
N_LOADED, FIRST_UNLOADED = 5, 2


class Lanes(NamedTuple):
    """What the models have apart from each other, and what stands in the lanes.

    Attributes
    ----------
    model : (L,) in each lane, or FREE
    of_models : (B, n) values, least scales, the three tables and the four sums of all models
    in_lanes : (n, L) the arrays of the models in lanes, at which those of the job look
    floored, floored_in_lanes : likewise, where the scale floor acted
    """

    model: Integers
    of_models: tuple[Floats, ...]
    in_lanes: tuple[Floats, ...]
    floored: Truths
    floored_in_lanes: Truths


@compiled
def climb_in_lanes(variant: Variant, job: Job, lanes: Lanes, cursor: Integers, budget: int) -> None:
    """Fit all models from the parameters in `lanes.of_models`, which then hold the results; see `climb`."""
    rules, spans, events, chain, tables, sums, work, outcome = job
    span = spans[0]
    while cursor[WAITING] < len(outcome.reason) or cursor[BUSY] > 0:
        if budget <= 0 or needs_room(rules.max_iter, lanes.model, outcome):
            return
        if cursor[BUSY] > 0:
            maximisation(variant, span, rules, chain, sums, tables)
            smooth(variant, span, rules, chain, tables)
        for lane in range(LANES):
            if lanes.model[lane] == FREE and cursor[WAITING] < len(outcome.reason):
                b = cursor[WAITING]
                lanes.model[lane] = b
                cursor[WAITING] += 1
                cursor[BUSY] += 1
                for k in range(N_LOADED):
                    load(lane, b, lanes.of_models[k], lanes.in_lanes[k])
        posteriors(variant, span, rules, events, tables, sums, work)
        sum_first_events(variant, span, events, True, sums, work)
        for lane in range(LANES):
            b = lanes.model[lane]
            if b == FREE:
                continue
            settle(b, total_score(lane, span, events.weights, work.scores), rules, outcome)
            # A lane is not helped out in the log domain.
            if not work.worst[lane] >= FAINT or outcome.reason[b] == IMPOSSIBLE:
                outcome.reason[b] = ALONE
            if outcome.reason[b] >= 0:
                for k in range(FIRST_UNLOADED, len(lanes.of_models)):
                    unload(lane, b, lanes.of_models[k], lanes.in_lanes[k])
                unload(lane, b, lanes.floored, lanes.floored_in_lanes)
            if outcome.reason[b] != GOES_ON:
                lanes.model[lane] = FREE
                cursor[BUSY] -= 1
        budget -= len(events.x) * LANES


@inner
def needs_room(max_iter: int, models: Integers, outcome: Outcome) -> bool:
    """Whether a model in some lane has filled its row of the history and goes on."""
    full = False
    for b in models:
        full = full or (b != FREE and outcome.n_iter[b] == outcome.history.shape[1] < max_iter)
    return full


@inner
def load(lane: int, b: int, of_models: Floats, in_lanes: Floats) -> None:
    """An array of one model into its lane."""
    for p in range(len(in_lanes)):
        in_lanes[p, lane] = of_models[b, p]


@inner
def unload(lane: int, b: int, of_models: Floats | Truths, in_lanes: Floats | Truths) -> None:
    """An array out of its lane to the other arrays of its model."""
    for p in range(len(in_lanes)):
        of_models[b, p] = in_lanes[p, lane]
