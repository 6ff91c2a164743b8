"""A fit from data alone, compiled: encode, count, start (Section 3.5), smooth, run Algorithm 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inlined
from keydyn.model.engine import walks
from keydyn.model.engine.sums import first_occurrences, weighted_moments
from keydyn.model.estimation.algorithm import (
    marginal_emission,
    marginal_steps,
    printed_transitions,
    run,
    smooth,
)
from keydyn.model.estimation.formulas import normalise
from keydyn.model.estimation.indexing import (
    chain_of_counts,
    count_events,
    index_steps,
    places_among,
    seen_types,
)
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.smoothing import kept_shares, transition_weights
from keydyn.model.estimation.starting import scale_floor, start_moments
from keydyn.model.estimation.tables import (
    Basis,
    Counted,
    Events,
    Rules,
    Shape,
    Tables,
    Truths,
    carve,
    new_scratch,
    room,
)


class Prepared(NamedTuple):
    """Data as a fit takes them, with the parameters that it starts from.

    Attributes
    ----------
    codes, steps, x, first_seen : as in `Events`
    seen : the codes that the event types had in the source
    pairs : (2, P + V) the types of each row of the transition table; n_pairs : P
    in_order : whether these are sorted
    memory : for `carve`
    usable : whether every column has a value
    """

    codes: Integers
    steps: Integers
    x: Floats
    first_seen: Integers
    seen: Integers
    pairs: Integers
    n_pairs: int
    in_order: bool
    memory: Floats
    usable: bool


@inlined
def prepare(
    X: Floats, source: Integers, offsets: Integers, weights: Floats, n_source: int, rules: Rules
) -> Prepared:
    """Encode, count and start: events coded into `n_source` types, −1 for none."""
    n_features, n_states = rules.displacements.shape
    seen = seen_types(source, n_source)
    # Data without any event type have a single one.
    n_types = max(len(seen), 1)
    codes = places_among(source, seen, n_source)
    pairs, steps, n_pairs, in_order = index_steps(codes, offsets, n_types)
    first_seen = first_occurrences(codes, offsets, n_types)
    x = working(X, rules.density.log_scale)
    shape = (n_features, n_types, n_states, n_pairs, pairs.shape[1])
    memory = np.zeros(room(shape))
    floored = np.zeros((n_features, n_types, n_states), dtype=np.bool_)
    fit = carve(memory, shape, pairs[0], pairs[1], floored)
    events = Events(codes, offsets, steps, weights, x, first_seen)
    count(events, rules, fit.basis, fit.counted)
    usable = start(X, events, rules, fit.basis, fit.overall, fit.tables)
    return Prepared(codes, steps, x, first_seen, seen, pairs, n_pairs, in_order, memory, usable)


@inlined
def run_prepared(
    events: Events, pairs: Integers, memory: Floats, floored: Truths, shape: Shape, rules: Rules
) -> tuple[int, float, Floats]:
    """`run` from what a piece of memory holds, which then holds the result, with Π[j | ω]."""
    fit = carve(memory, shape, pairs[0], pairs[1], floored)
    scratch = new_scratch(len(events.weights), len(events.codes), shape[0], shape[1], shape[2])
    outcome = run(events, fit.basis, rules, fit.tables, fit.sums, scratch)
    share_of_states(events, fit.tables, scratch.states, fit.stationary)
    return outcome


@inlined
def count(events: Events, rules: Rules, basis: Basis, counted: Counted) -> None:
    """How often types and pairs occur, and the event chain and smoothing weights that follow."""
    n_types, n_pairs = len(basis.prob), len(basis.pair_prob)
    types, starts, taken = count_events(
        events.codes, events.offsets, events.steps, events.weights, n_types, len(basis.before)
    )
    pair, before, after = taken[:n_pairs], basis.before, basis.after
    prob, leaving, entering, startprob, pair_prob = chain_of_counts(before, after, types, starts, pair)
    copy_into(counted.types, types)
    copy_into(counted.starts, starts)
    copy_into(counted.pair, pair)
    copy_into(counted.entering, entering)
    copy_into(counted.startprob, startprob)
    copy_into(basis.prob, prob)
    copy_into(basis.leaving, leaving)
    copy_into(basis.pair_prob, pair_prob)
    copy_into(basis.keep_start, kept_shares(rules.smooth_start, types if rules.first_occurrence else starts))
    copy_into(basis.keep_emission, kept_shares(rules.smooth_emission, types))
    weight_before, weight_after = transition_weights(
        rules.smooth_transitions, rules.published, before, after, pair, leaving, entering
    )
    copy_into(basis.weight_before, weight_before)
    copy_into(basis.weight_after, weight_after)


@compiled
def copy_into(target: Floats, source: Floats) -> None:
    """An assignment of all elements, which is much slower to compile where it is written out."""
    for row in range(len(source)):
        target[row] = source[row]


@compiled
def working(X: Floats, log_scale: Floats) -> Floats:
    """Values on the scale on which locations and spreads are taken."""
    n_features = X.shape[1]
    x = X.copy()
    values = x.ravel()
    if log_scale.min() > 0.0:
        # All in one loop, in vector instructions; a missing value stays NaN.
        for n in range(len(values)):
            values[n] = logarithm(values[n]) if values[n] == values[n] else values[n]
    else:
        for n in range(len(values)):
            if log_scale[n % n_features] > 0.0 and values[n] == values[n]:
                values[n] = logarithm(values[n])
    return x


@inlined
def start(X: Floats, events: Events, rules: Rules, basis: Basis, overall: Floats, tables: Tables) -> bool:
    """Starting parameters, smoothed, and the scale floors; False if a column has no value at all."""
    n_types, n_states = len(basis.prob), tables.loc.shape[2]
    everywhere = np.zeros(len(events.codes), dtype=np.int64)
    of_event = event_weights(events.offsets, events.weights)
    for k in range(X.shape[1]):
        column, largest = taken_out(X, events.x, k)
        count, mean, square = weighted_moments(everywhere, 1, of_event, column)
        if not count[0, 0] > 0.0:
            return False
        of_all = (count[0, 0], mean[0, 0], square[0, 0])
        overall[k, 0], overall[k, 1], overall[k, 2], overall[k, 3] = of_all[0], of_all[1], of_all[2], largest
        floor = scale_floor(rules.min_scale, rules.density.log_scale[k] > 0.0, *of_all, largest)
        basis.min_scale[k] = floor
        by_type = weighted_moments(events.codes, n_types, of_event, column)
        middle, scale, shift = start_moments(
            by_type[0], by_type[1], by_type[2], of_all, floor, rules.displacements[k], rules.own_spread
        )
        for row in range(n_types):
            for j in range(n_states):
                tables.loc[k, row, j] = middle[row, 0] + shift[row, j]
                tables.scale[k, row, j] = scale[row, 0]
    tables.startprob.fill(1.0 / n_states)
    tables.transmat.fill(1.0 / n_states)
    printed_transitions(basis, tables)
    marginal_emission(basis, False, tables.loc, tables)
    marginal_steps(basis, tables)
    smooth(basis, rules, tables)
    return True


@compiled
def event_weights(offsets: Integers, weights: Floats) -> Floats:
    """The weight of each event, (N, 1)."""
    of_event = np.empty((offsets[-1], 1))
    for s in range(len(weights)):
        for n in range(offsets[s], offsets[s + 1]):
            of_event[n, 0] = weights[s]
    return of_event


@compiled
def taken_out(X: Floats, x: Floats, k: int) -> tuple[Floats, float]:
    """A column of the values on the working scale, and the largest |x| of the feature as it was given."""
    column, largest = np.empty(len(x)), 0.0
    for n in range(len(x)):
        column[n] = x[n, k]
        if abs(X[n, k]) > largest:
            largest = abs(X[n, k])
    return column, largest


@inlined
def share_of_states(events: Events, tables: Tables, states: Floats, stationary: Floats) -> None:
    """Π[j | ω]: the share of each state among events of a type, propagated along the event sequences."""
    n_types, n_states = stationary.shape
    first = np.empty(len(events.weights), dtype=np.int64)
    for s in range(len(first)):
        first[s] = events.codes[events.offsets[s]]
    walks.propagate(events.offsets, first, tables.startprob, events.steps, tables.transmat, states)
    for s in range(len(events.weights)):
        for n in range(events.offsets[s], events.offsets[s + 1]):
            if events.codes[n] < n_types:
                for j in range(n_states):
                    stationary[events.codes[n], j] += events.weights[s] * states[n, j]
    for row in range(n_types):
        normalise(stationary[row])
