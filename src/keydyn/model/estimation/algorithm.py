"""Algorithm 1, compiled: expectation → maximisation → smoothing, until it gains too little."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, compiled, inlined
from keydyn.model.estimation.expectation import expectation, scores
from keydyn.model.estimation.formulas import (
    normalise,
    update_normal,
    update_start,
    update_student,
    update_transitions,
)
from keydyn.model.estimation.gathering import sum_first_occurrences
from keydyn.model.estimation.marginals import any_after_dead_ends, normalise_marginals, sum_by_type
from keydyn.model.estimation.smoothing import NO_RULE, blend, blend_transitions
from keydyn.model.estimation.tables import Basis, Events, Rules, Scratch, Sums, Tables
from keydyn.model.moments import mixture_of_state

# A fall of the log-likelihood by less than this share of it is rounding.
ROUNDING = 1e-10

# Why a fit stopped, and that it cannot go on here: some sequence has no probability at all.
REASONS = ("tol", "decrease", "max_iter")
GOES_ON, IMPOSSIBLE = -1, -2


@inlined
def run(
    events: Events, basis: Basis, rules: Rules, tables: Tables, sums: Sums, scratch: Scratch
) -> tuple[int, float, Floats]:
    """A fit from the parameters in `tables`, which then hold the result.

    The number of the reason to stop, the log-likelihood of the result, and that of each expectation step.
    """
    history = np.empty(min(rules.max_iter, 64))
    last = math.nan
    for iteration in range(rules.max_iter):
        log_likelihood = expectation(events, rules, tables, sums, scratch)
        if not log_likelihood > -math.inf:
            return IMPOSSIBLE, log_likelihood, history[:iteration]
        if iteration == len(history):
            history = np.concatenate((history, np.empty(iteration)))
        history[iteration] = log_likelihood
        reason = why_stop(log_likelihood, log_likelihood - last if iteration > 0 else math.inf, rules.tol)
        if reason != GOES_ON:
            if not rules.first_occurrence:
                sum_first_occurrences(events, sums, scratch.states)
            return reason, log_likelihood, history[: iteration + 1]
        last = log_likelihood
        maximisation(basis, rules, sums, tables)
        smooth(basis, rules, tables)
    sum_first_occurrences(events, sums, scratch.states)
    scores(events, rules.density, tables, scratch)
    return 2, float(events.weights @ scratch.scores), history[: rules.max_iter]


@compiled
def why_stop(log_likelihood: float, gain: float, tol: float) -> int:
    """The number of the reason to stop, or `GOES_ON`."""
    if gain < -ROUNDING * (1.0 + abs(log_likelihood)):
        return 1
    if gain < tol or gain == 0.0:
        return 0
    return GOES_ON


@inlined
def maximisation(basis: Basis, rules: Rules, sums: Sums, tables: Tables) -> None:
    """The M-step (Eqs. 12, 14, 15) and the marginals of what it finds, nothing smoothed yet."""
    n_types, n_states = sums.occupancy.shape
    start_all = tables.startprob[n_types]
    for j in range(n_states):
        start_all[j] = max(sums.start_all[j], rules.count_floor)
    normalise(start_all)
    if not rules.fixed_start:
        expected = sums.first_occurrence if rules.first_occurrence else sums.start
        update_start(expected, start_all, rules.count_floor, tables.startprob)
    joint = sums.transitions[: len(basis.pair_prob)]
    if not rules.fixed_transitions:
        update_transitions(joint, rules.count_floor, tables.transmat)
    if not rules.fixed_emission:
        update_emission(basis, rules, sums, tables)
    if rules.exact:
        sum_by_type(basis.before, basis.after, joint, np.ones(len(joint)), tables.from_type, tables.to_type)
        normalise_marginals(tables.from_type, tables.to_type, tables.of_all)
    else:
        printed_transitions(basis, tables)
    marginal_emission(basis, rules.exact, sums.mass, tables)
    marginal_steps(basis, tables)


@inlined
def printed_transitions(basis: Basis, tables: Tables) -> None:
    """Eqs. 26–28 as printed: every earlier type counts alike, whatever its share of the events."""
    sum_by_type(basis.before, basis.after, tables.transmat, basis.pair_prob, tables.from_type, tables.to_type)
    any_after_dead_ends(basis.leaving, tables.from_type, tables.to_type)
    normalise_marginals(tables.from_type, tables.to_type, tables.of_all)


@inlined
def update_emission(basis: Basis, rules: Rules, sums: Sums, tables: Tables) -> None:
    """b[j | ω], feature by feature."""
    for k in range(len(tables.loc)):
        loc, scale, floored = tables.loc[k], tables.scale[k], tables.floored[k]
        count, mean, square = sums.mass[k], sums.mean[k], sums.square[k]
        floor = basis.min_scale[k]
        if math.isinf(rules.density.df[k]):
            update_normal(count, mean, square, floor, rules.count_floor, loc, scale, floored)
        else:
            precision = sums.precision[k]
            update_student(count, precision, mean, square, floor, rules.count_floor, loc, scale, floored)


@inlined
def marginal_emission(basis: Basis, exact: bool, mass: Floats, tables: Tables) -> None:
    """b[j] into the last row of each feature's table; types weigh Π[ω], or as often as they occur in j."""
    n_types, n_states = len(basis.prob), tables.loc.shape[2]
    weights, variance = np.empty((n_types, n_states)), np.empty((n_types, n_states))
    for k in range(len(tables.loc)):
        for j in range(n_states):
            for row in range(n_types):
                weights[row, j] = mass[k, row, j] if exact else basis.prob[row]
                variance[row, j] = tables.scale[k, row, j] ** 2
            if exact:
                normalise(weights[:, j])
            mean, spread = mixture_of_state(tables.loc[k], variance, weights, j)
            tables.loc[k, n_types, j] = mean
            tables.scale[k, n_types, j] = math.sqrt(spread)


@inlined
def marginal_steps(basis: Basis, tables: Tables) -> None:
    """The rows of the transition table in which the earlier type, the later, or both are unknown."""
    n_types = len(tables.from_type)
    for step in range(len(basis.pair_prob), len(basis.before)):
        before, after = basis.before[step], basis.after[step]
        for i in range(len(tables.of_all)):
            for j in range(len(tables.of_all)):
                if before < n_types:
                    tables.transmat[step, i, j] = tables.from_type[before, i, j]
                elif after < n_types:
                    tables.transmat[step, i, j] = tables.to_type[after, i, j]
                else:
                    tables.transmat[step, i, j] = tables.of_all[i, j]


@compiled
def smooth(basis: Basis, rules: Rules, tables: Tables) -> None:
    """Regularisation (Eqs. 32–36): all parameters towards the same, unsmoothed marginals."""
    n_types = len(tables.from_type)
    if n_types == 1:
        return
    if rules.smooth_start != NO_RULE and not rules.fixed_start:
        blend(basis.keep_start, tables.startprob[n_types], tables.startprob, False)
    if rules.smooth_transitions != NO_RULE and not rules.fixed_transitions:
        blend_transitions(
            basis.weight_before,
            basis.weight_after,
            basis.before,
            basis.after,
            tables.from_type,
            tables.to_type,
            tables.transmat,
        )
    if rules.smooth_emission != NO_RULE and not rules.fixed_emission:
        for k in range(len(tables.loc)):
            student = not math.isinf(rules.density.df[k])
            blend(basis.keep_emission, tables.loc[k, n_types], tables.loc[k], False)
            blend(basis.keep_emission, tables.scale[k, n_types], tables.scale[k], student)
