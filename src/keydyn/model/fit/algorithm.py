"""Algorithm 1, the modified Baum–Welch: expectation → maximisation → smoothing, until the gain is too small.

`climb` does the work of every fit. It is compiled, works through the models of a batch, and returns to Python
when its budget is used up; called again, it resumes. `climb_in_lanes` takes the same steps for many models
side by side.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from keydyn.arrays import Floats, Integers, Truths, compiled, inner, without_counting
from keydyn.model.engine.densities import Densities, log_densities
from keydyn.model.engine.expectation import posteriors, sum_first_events, sum_moments
from keydyn.model.engine.layout import (
    LANES,
    ROW,
    SEQUENCE,
    FitEvents,
    FitJob,
    Observed,
    Outcome,
    Rules,
    Sums,
    Tables,
    TypeChain,
    Variant,
    Walk,
)
from keydyn.model.engine.log_domain import posterior_in_logs
from keydyn.model.engine.maximisation import marginal_emission, maximisation, smooth, smooth_emission
from keydyn.model.engine.recursions import FAINT

# A decrease of the log-likelihood by less than this share of it is taken for rounding.
ROUNDING = 1e-10
# Reasons why a fit stopped. The negative ones are internal: the fit goes on; its last expectation step must
# be finished in the log domain; some sequence has probability zero; or the model must be fitted alone,
# because in its lane a probability came near underflow.
REASONS = ("tol", "decrease", "max_iter", "callback")
TOL, DECREASE, MAX_ITER, CALLBACK = range(4)
GOES_ON, IN_LOGS, IMPOSSIBLE, ALONE = -1, -2, -3, -4
# Marks a lane without a model.
FREE = -1
# Entries of the `cursor` of `climb_in_lanes`, which is kept between calls: the next model that waits for a
# lane, and the number of busy lanes.
WAITING, BUSY = range(2)
# Of the arrays in `Lanes`, the first N_LOADED are copied into a lane when a model enters it, and those from
# FIRST_UNLOADED on are copied back; parameters are copied both ways.
N_LOADED, FIRST_UNLOADED = 5, 2


@without_counting
def climb(variant: Variant, job: FitJob, first: int, budget: int) -> None:
    """Fit the models from number `first` on, starting at the parameters in the tables, which are updated.

    After `max_iter` iterations one more expectation step gives the log-likelihood of the result. `budget`
    counts events times expectation steps; at least one expectation step is made.
    """
    rules, spans, events, chain, tables, sums, work, outcome = job
    for b in range(first, len(spans)):
        span = spans[b]
        while outcome.reason[b] == GOES_ON:
            if budget <= 0 or outcome.n_iter[b] == outcome.history.shape[1] < rules.max_iter:
                return
            if outcome.n_iter[b] > 0:
                maximisation(variant, span, rules, chain, sums, tables)
                smooth(variant, span, rules, chain, tables)
            posteriors(variant, span, job)
            log_likelihood = total_score(0, span, events.weights, work.scores)
            if not log_likelihood > -math.inf:
                outcome.reason[b] = IN_LOGS
                return
            settle(b, log_likelihood, rules, outcome)
            budget -= events.offsets[span[SEQUENCE + 1]] - events.offsets[span[SEQUENCE]]
            # The sums by type are needed if the next step uses them, or if Python may read them.
            every_type = rules.first_occurrence or budget <= 0 or outcome.reason[b] != GOES_ON
            sum_first_events(variant[:2], span, events, every_type, sums, work)


@compiled
def climb_in_logs(variant: Variant, job: FitJob, b: int) -> None:
    """Finish an expectation step: sequences in which underflow threatened are redone in the log domain."""
    rules, spans, events, _, tables, sums, work, outcome = job
    span, how = spans[b], Densities(rules.features, rules.log_floor, tables.cells)
    observed = Observed(events.x, events.codes, events.given)
    walk = Walk(
        events.offsets, events.weights, events.start_rows, events.steps, tables.start, tables.transitions
    )
    for s in range(span[SEQUENCE], span[SEQUENCE + 1]):
        if not work.scores[s, 0] > -math.inf:
            log_densities(variant, events.offsets[s], events.offsets[s + 1], observed, how, work.density)
            work.scores[s, 0] = posterior_in_logs(s, walk, work.density, work.states, sums.transitions)
    first, last = events.offsets[span[SEQUENCE]], events.offsets[span[SEQUENCE + 1]]
    sums.moments[span[ROW] : span[ROW + 1]] = 0.0
    sum_moments(variant, (first, last), observed, how, work.states, sums.moments)
    sum_first_events(variant[:2], span, events, True, sums, work)
    settle(b, total_score(0, span, events.weights, work.scores), rules, outcome)


@inner
def total_score(lane: int, span: Integers, weights: Floats, scores: Floats) -> float:
    """The weighted log-likelihood of all sequences."""
    total = 0.0
    for s in range(span[SEQUENCE], span[SEQUENCE + 1]):
        total += weights[s] * scores[s, lane]
    return total


@inner
def settle(b: int, log_likelihood: float, rules: Rules, outcome: Outcome) -> None:
    """Record the log-likelihood of a model, and decide whether its fit stops."""
    n_iter = outcome.n_iter[b]
    outcome.log_likelihood[b] = log_likelihood
    if not log_likelihood > -math.inf:
        outcome.reason[b] = IMPOSSIBLE
    elif n_iter == rules.max_iter:
        outcome.reason[b] = MAX_ITER
    else:
        gain = log_likelihood - outcome.history[b, n_iter - 1] if n_iter > 0 else math.inf
        outcome.history[b, n_iter] = log_likelihood
        outcome.n_iter[b] = n_iter + 1
        outcome.reason[b] = why_stop(log_likelihood, gain, rules.tol)


@compiled
def why_stop(log_likelihood: float, gain: float, tol: float) -> int:
    """The code of the reason to stop, or `GOES_ON`."""
    if gain < -ROUNDING * (1.0 + abs(log_likelihood)):
        return DECREASE
    if gain < tol or gain == 0.0:
        return TOL
    return GOES_ON


@without_counting
def smooth_emissions(
    variant: Variant, spans: Integers, rules: Rules, chain: TypeChain, sums: Sums, tables: Tables
) -> None:
    """Compute the marginals of starting emissions and, if the rules say so, smooth towards them."""
    for b in range(len(spans)):
        span = spans[b]
        marginal_emission(variant, span, rules, chain, sums.moments, tables.emission)
        if rules.smooth_emission and not rules.fixed_emission and span[ROW + 1] - span[ROW] > 2:
            smooth_emission(variant, span, rules, chain, tables.emission)


@without_counting
def share_states(
    spans: Integers, shifts: Integers, events: FitEvents, tables: Tables, chances: Floats, shares: Floats
) -> None:
    """Add Π[j | ω] times the weight of ω to `shares`, by propagating states along the event sequences.

    `shifts` (B, 2) is added to codes and steps if models share their events. `chances` (2, M) is workspace.
    """
    offsets = events.offsets
    for b in range(len(spans)):
        for s in range(spans[b, SEQUENCE], spans[b, SEQUENCE + 1]):
            for n in range(offsets[s + 1] - offsets[s]):
                event = offsets[s] + n
                row, step = shifts[b, 0] + events.codes[event], shifts[b, 1] + events.steps[event]
                for j in range(shares.shape[1]):
                    chance = tables.start[row, j, 0] if n == 0 else 0.0
                    for i in range(shares.shape[1] if n > 0 else 0):
                        chance += chances[1 - n % 2, i] * tables.transitions[step, i, j, 0]
                    chances[n % 2, j] = chance
                    shares[row, j] += events.weights[s] * chance


@without_counting
def maximise(
    variant: Variant, span: Integers, rules: Rules, chain: TypeChain, sums: Sums, tables: Tables
) -> None:
    """The maximisation step and smoothing of one model, callable from Python."""
    maximisation(variant, span, rules, chain, sums, tables)
    smooth(variant, span, rules, chain, tables)


class Lanes(NamedTuple):
    """The arrays of all models, and the arrays of those that are in lanes.

    Attributes
    ----------
    model : (L,) the model in each lane, or FREE
    of_models : values, least scales, the three tables of parameters, and the four sums of all models, (B, n)
        each
    in_lanes : the corresponding arrays of the models in lanes, (n, L) each; views of the job's arrays
    floored, floored_in_lanes : the same two layouts for the cells where the scale floor acted
    """

    model: Integers
    of_models: tuple[Floats, ...]
    in_lanes: tuple[Floats, ...]
    floored: Truths
    floored_in_lanes: Truths


@without_counting
def climb_in_lanes(variant: Variant, job: FitJob, lanes: Lanes, cursor: Integers, budget: int) -> None:
    """Fit all models side by side, as `climb` does; parameters in `lanes.of_models` are updated."""
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
        posteriors(variant, span, job)
        sum_first_events(variant[:2], span, events, True, sums, work)
        for lane in range(LANES):
            b = lanes.model[lane]
            if b == FREE:
                continue
            settle(b, total_score(lane, span, events.weights, work.scores), rules, outcome)
            # There is no log domain for lanes.
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
    """Whether the history must be enlarged, because the fit of some lane has filled its row and goes on."""
    full = False
    for b in models:
        full = full or (b != FREE and outcome.n_iter[b] == outcome.history.shape[1] < max_iter)
    return full


@inner
def load(lane: int, b: int, of_models: Floats, in_lanes: Floats) -> None:
    """Copy an array of one model into its lane."""
    for p in range(len(in_lanes)):
        in_lanes[p, lane] = of_models[b, p]


@inner
def unload(lane: int, b: int, of_models: Floats | Truths, in_lanes: Floats | Truths) -> None:
    """Copy an array from its lane back to the model's own arrays."""
    for p in range(len(in_lanes)):
        of_models[b, p] = in_lanes[p, lane]
