"""A fit from data alone, in compiled steps: encode, count, start (Section 3.5), smooth, run Algorithm 1.

The steps are called one by one: compiled into one they would take twice as long to compile, once a machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.model import walks
from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.algorithm import (
    marginal_emission,
    marginal_steps,
    printed_transitions,
    run,
    smooth,
)
from keydyn.model.estimation.formulas import normalise
from keydyn.model.estimation.indexing import (
    by_appearance,
    chain_of_counts,
    count_events,
    index_steps,
    places_among,
    seen_types,
)
from keydyn.model.estimation.smoothing import kept_shares, transition_weights
from keydyn.model.estimation.starting import scale_floor, start_moments
from keydyn.model.estimation.tables import (
    Basis,
    Counted,
    Events,
    Rules,
    Tables,
    Truths,
    carve,
    new_scratch,
    room,
)
from keydyn.model.sums import first_occurrences, weighted_moments

# A column has no value at all: there is nothing to start from.
NO_VALUES = -3
# From here on the transition table of two states is larger than a core's own cache.
MANY_PAIRS = 16_384


class Outcome(NamedTuple):
    """What a fit from data alone hands over.

    Attributes
    ----------
    reason, log_likelihood, history : as of `run`
    seen : the codes that the event types had in the source
    pairs : (2, P + V) the types of each row of the transition table; n_pairs : P
    memory : for `carve`; floored : as in `Tables`
    """

    reason: int
    log_likelihood: float
    history: Floats
    seen: Integers
    pairs: Integers
    n_pairs: int
    memory: Floats
    floored: Truths


def fit_cold(
    X: Floats, source: Integers, offsets: Integers, weights: Floats, n_source: int, rules: Rules
) -> Outcome:
    """Fit a model to sequences whose event types are coded into `n_source` of them, −1 for none."""
    n_features, n_states = rules.displacements.shape
    seen = seen_types(source, n_source)
    # Data without any event type have a single one.
    n_types = max(len(seen), 1)
    codes = places_among(source, seen, n_source)
    pairs, steps, n_pairs = index_steps(codes, offsets, n_types)
    order = np.arange(pairs.shape[1])
    if len(order) > MANY_PAIRS:
        # Events then walk along the table instead of jumping in it.
        order = by_appearance(steps, offsets, n_pairs, len(order))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        steps = place[steps]
    first_seen = first_occurrences(codes, offsets, n_types)
    events = Events(codes, offsets, steps, weights, working(X, rules.density.log_scale), first_seen)
    shape = (n_features, n_types, n_states, n_pairs, pairs.shape[1])
    memory = np.zeros(room(shape))
    floored = np.zeros((n_features, n_types, n_states), dtype=np.bool_)
    fit = carve(memory, shape, pairs[0][order], pairs[1][order], floored)
    scratch = new_scratch(len(weights), len(source), n_features, n_types, n_states)
    count(events, rules, fit.basis, fit.counted)
    reason, log_likelihood, history = NO_VALUES, math.nan, np.empty(0)
    if start(X, events, rules, fit.basis, fit.overall, fit.tables):
        reason, log_likelihood, history = run(events, fit.basis, rules, fit.tables, fit.sums, scratch)
        share_of_states(events, fit.tables, scratch.states, fit.stationary)
    if len(order) > MANY_PAIRS:
        put_back(order, fit.tables.transmat, fit.sums.transitions)
        fit.counted.pair[order[:n_pairs]] = fit.counted.pair.copy()
        fit.basis.pair_prob[order[:n_pairs]] = fit.basis.pair_prob.copy()
    return Outcome(reason, log_likelihood, history, seen, pairs, n_pairs, memory, floored)


@compiled
def put_back(order: Integers, transmat: Floats, transitions: Floats) -> None:
    """Rows that were taken in an order to where they came from."""
    for table in (transmat, transitions):
        taken = table.copy()
        for row in range(len(order)):
            table[order[row]] = taken[row]


@compiled
def count(events: Events, rules: Rules, basis: Basis, counted: Counted) -> None:
    """How often types and pairs occur, and the event chain and smoothing weights that follow."""
    n_types, n_pairs = len(basis.prob), len(basis.pair_prob)
    types, starts, taken = count_events(
        events.codes, events.offsets, events.steps, events.weights, n_types, len(basis.before)
    )
    pair = taken[:n_pairs]
    before, after = basis.before, basis.after
    prob, leaving, entering, startprob, pair_prob = chain_of_counts(before, after, types, starts, pair)
    counted.types[:], counted.starts[:], counted.pair[:] = types, starts, pair
    counted.entering[:], counted.startprob[:] = entering, startprob
    basis.prob[:], basis.leaving[:], basis.pair_prob[:] = prob, leaving, pair_prob
    behind_start = types if rules.first_occurrence else starts
    basis.keep_start[:] = kept_shares(rules.smooth_start, behind_start)
    basis.keep_emission[:] = kept_shares(rules.smooth_emission, types)
    weight_before, weight_after = transition_weights(
        rules.smooth_transitions, rules.published, before, after, pair, leaving, entering
    )
    basis.weight_before[:], basis.weight_after[:] = weight_before, weight_after


@compiled
def working(X: Floats, log_scale: Floats) -> Floats:
    """Values on the scale on which locations and spreads are taken."""
    x = X.copy()
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if log_scale[k] > 0.0:
                x[n, k] = math.log(x[n, k])
    return x


@compiled
def start(X: Floats, events: Events, rules: Rules, basis: Basis, overall: Floats, tables: Tables) -> bool:
    """Starting parameters, smoothed, and the scale floors; False if a column has no value at all."""
    n_types = len(basis.prob)
    everywhere = np.zeros(len(events.codes), dtype=np.int64)
    of_event = np.empty((len(events.codes), 1))
    for s in range(len(events.weights)):
        of_event[events.offsets[s] : events.offsets[s + 1]] = events.weights[s]
    for k in range(X.shape[1]):
        column, largest = events.x[:, k].copy(), 0.0
        for n in range(len(column)):
            if abs(X[n, k]) > largest:
                largest = abs(X[n, k])
        count, mean, square = weighted_moments(everywhere, 1, of_event, column)
        if not count[0, 0] > 0.0:
            return False
        of_all = (count[0, 0], mean[0, 0], square[0, 0])
        overall[k] = np.array([of_all[0], of_all[1], of_all[2], largest])
        on_log_scale = rules.density.log_scale[k] > 0.0
        basis.min_scale[k] = scale_floor(
            rules.min_scale, on_log_scale, of_all[0], of_all[1], of_all[2], largest
        )
        by_type = weighted_moments(events.codes, n_types, of_event, column)
        middle, scale, shift = start_moments(
            by_type[0],
            by_type[1],
            by_type[2],
            of_all,
            basis.min_scale[k],
            rules.displacements[k],
            rules.own_spread,
        )
        tables.loc[k, :n_types] = middle + shift
        tables.scale[k, :n_types] = scale
    tables.startprob[:] = 1.0 / tables.startprob.shape[1]
    tables.transmat[:] = 1.0 / tables.startprob.shape[1]
    printed_transitions(basis, tables)
    marginal_emission(basis, False, tables.loc, tables)
    marginal_steps(basis, tables)
    smooth(basis, rules, tables)
    return True


@compiled
def share_of_states(events: Events, tables: Tables, states: Floats, stationary: Floats) -> None:
    """Π[j | ω]: the share of each state among events of a type, propagated along the event sequences."""
    n_types, n_states = stationary.shape
    first = events.codes[events.offsets[:-1]]
    walks.propagate(events.offsets, first, tables.startprob, events.steps, tables.transmat, states)
    for s in range(len(events.weights)):
        for n in range(events.offsets[s], events.offsets[s + 1]):
            if events.codes[n] < n_types:
                for j in range(n_states):
                    stationary[events.codes[n], j] += events.weights[s] * states[n, j]
    for row in range(n_types):
        normalise(stationary[row])
