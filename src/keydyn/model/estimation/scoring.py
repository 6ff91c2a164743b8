"""Likelihood of sequences under a finished model, compiled: encode, look up, filter."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inlined
from keydyn.model.estimation.cold_start import working
from keydyn.model.estimation.expectation import careful_score, filtered
from keydyn.model.estimation.indexing import find_sorted, index_steps
from keydyn.model.estimation.recursions import SMALL
from keydyn.model.estimation.smoothing import NO_RULE, blend_transitions, transition_weights
from keydyn.model.estimation.tables import Density, Events, Scratch, Tables, new_scratch

# So many events, if they are more than a sequence, keep all that is known of them in a core's own cache.
AT_ONCE = 4096


class Finished(NamedTuple):
    """A model as scoring needs it; see `Parameters`, `Marginal` and `EventChain`.

    Attributes
    ----------
    tables : the parameters, with the transition matrices of the listed pairs only
    pair_codes : (P,) ψ·m + ω of these pairs, ascending
    leaving, entering : (m,)
    df, log_scale : (K,) as in `Rules`; smooth_transitions, published : how unseen pairs are smoothed
    """

    tables: Tables
    pair_codes: Integers
    leaving: Floats
    entering: Floats
    df: Floats
    log_scale: Floats
    smooth_transitions: float
    published: bool


@compiled
def score(
    X: Floats,
    source: Integers,
    offsets: Integers,
    place: Integers,
    model: Finished,
    log_floor: float,
    of_events: bool,
) -> Floats:
    """ln P(x | Ω) of each sequence, or, with `of_events`, ln P(x_n | x_1..n−1, Ω) of each event.

    `place` is the model's code of each type in the source, m for one that it does not know, and m last, for
    events without a type.
    """
    n_sequences, n_codes = len(offsets) - 1, len(model.tables.from_type) + 1
    scores = np.empty(len(source) if of_events else n_sequences)
    # Where pairs are few and events many, a row for each possible pair saves looking for those that occur.
    any_pair = np.empty((0, 0, 0))
    if n_codes * n_codes <= len(source) // 4:
        every = np.arange(n_codes * n_codes)
        any_pair = step_tables(every // n_codes, every % n_codes, model)
    first = 0
    while first < n_sequences:
        last = first + 1
        while last < n_sequences and offsets[last + 1] - offsets[first] <= AT_ONCE:
            last += 1
        begin, end = offsets[first], offsets[last]
        own = offsets[first : last + 1] - begin
        found = score_some(X[begin:end], source[begin:end], own, place, model, any_pair, log_floor, of_events)
        if of_events:
            scores[begin:end] = found
        else:
            scores[first:last] = found
        first = last
    return scores


@inlined
def score_some(
    X: Floats,
    source: Integers,
    offsets: Integers,
    place: Integers,
    model: Finished,
    any_pair: Floats,
    log_floor: float,
    of_events: bool,
) -> Floats:
    """The same of a part of the sequences; `any_pair` has a[i, j | ψ, ω] of all pairs, or nothing."""
    n_types, n_states, _ = model.tables.from_type.shape
    codes = np.empty(len(source), dtype=np.int64)
    for n in range(len(source)):
        codes[n] = place[source[n]]
    transmat = any_pair
    if len(any_pair):
        steps = np.zeros(len(codes), dtype=np.int64)
        for n in range(1, len(codes)):
            steps[n] = codes[n - 1] * (n_types + 1) + codes[n]
    else:
        pairs, steps, _, _ = index_steps(codes, offsets, n_types)
        transmat = step_tables(pairs[0], pairs[1], model)
    own = model.tables
    tables = Tables(
        own.startprob, transmat, own.loc, own.scale, own.from_type, own.to_type, own.of_all, own.floored
    )
    nothing = np.empty(0)
    events = Events(codes, offsets, steps, nothing, working(X, model.log_scale), offsets)
    scratch = new_scratch(len(offsets) - 1, len(codes), X.shape[1], n_types, n_states)
    density = Density(model.df, model.log_scale, log_floor)
    filtered(events, density, tables, scratch)
    if of_events:
        increments_of(events, scratch)
    for s in range(len(scratch.scores)):
        if not scratch.scores[s] > -math.inf:
            careful_score(s, events, density, tables, scratch)
    return scratch.largest if of_events else scratch.scores


@compiled
def step_tables(before: Integers, after: Integers, model: Finished) -> Floats:
    """a[i, j | ψ, ω] of any pairs: as listed, smoothed if never seen, marginal where a type is unknown."""
    own = model.tables
    n_types, n_states, _ = own.from_type.shape
    found, nothing = np.empty((len(before), n_states, n_states)), np.zeros(1)
    for step in range(len(before)):
        earlier, later = before[step], after[step]
        if earlier < n_types and later < n_types:
            row = find_sorted(model.pair_codes, 0, len(model.pair_codes), earlier * n_types + later)
            for i in range(n_states):
                for j in range(n_states):
                    found[step, i, j] = own.transmat[row, i, j] if row >= 0 else 1.0 / n_states
            if row < 0 and model.smooth_transitions != NO_RULE:
                weight_before, weight_after = transition_weights(
                    model.smooth_transitions,
                    model.published,
                    before[step : step + 1],
                    after[step : step + 1],
                    nothing,
                    model.leaving,
                    model.entering,
                )
                blend_transitions(
                    weight_before,
                    weight_after,
                    before[step : step + 1],
                    after[step : step + 1],
                    own.from_type,
                    own.to_type,
                    found[step : step + 1],
                )
        else:
            for i in range(n_states):
                for j in range(n_states):
                    if earlier < n_types:
                        found[step, i, j] = own.from_type[earlier, i, j]
                    elif later < n_types:
                        found[step, i, j] = own.to_type[later, i, j]
                    else:
                        found[step, i, j] = own.of_all[i, j]
    return found


@inlined
def increments_of(events: Events, scratch: Scratch) -> None:
    """ln P(x_n | x_1..n−1, Ω) in place of the logarithms of the largest densities, from α and its scale."""
    n_states = scratch.states.shape[1]
    for s in range(len(scratch.scores)):
        before = 1.0
        if scratch.scores[s] > -math.inf:
            for n in range(events.offsets[s], events.offsets[s + 1]):
                total = 0.0
                for j in range(n_states):
                    total += scratch.states[n, j]
                # Where the sum had become small, α was divided by it.
                scratch.largest[n] += math.log(total / before if before >= SMALL else total)
                before = total
