"""Fits of several models from data alone, each to data of its own, compiled: threads take whole models.

Handing one small model over between Python and compiled code can cost more than its fit.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.estimation.algorithm import IMPOSSIBLE
from keydyn.model.estimation.cold_start import prepare, run_prepared
from keydyn.model.estimation.tables import Events, Rules, Truths

Array = TypeVar("Array", Floats, Integers, Truths)

# What stands in a row of `places`: where a model's part of each array begins.
MEMORY, NUMBERS, FLOORED, HISTORY = range(4)


class Fits(NamedTuple):
    """What B fits left, one behind the other.

    Attributes
    ----------
    memory : for `carve`; floored : (K, m, M) of each model
    numbers : the codes that the event types had in the source, the earlier types of the pairs, the later
    history : log-likelihood at each expectation step
    places : (B + 1, 4) where a model's part of the four begins, and ends
    n_seen, n_pairs : (B,) event types and pairs of them; in_order : (B,) whether the pairs are sorted
    reason : (B,) as of `run`, negative if there is no result; log_likelihood : (B,)
    """

    memory: Floats
    numbers: Integers
    floored: Truths
    history: Floats
    places: Integers
    n_seen: Integers
    n_pairs: Integers
    in_order: Truths
    reason: Integers
    log_likelihood: Floats


@compiled
def fit_several(
    X: Floats,
    source: Integers,
    offsets: Integers,
    weights: Floats,
    first: Integers,
    n_source: Integers,
    rules: Rules,
) -> Fits:
    """Model b has the sequences `first[b]` … `first[b + 1]` − 1.

    Their events are coded into `n_source[b]` types, −1 for none.
    """
    n_models, (n_features, n_states) = len(n_source), rules.displacements.shape
    memory, numbers, history = np.empty(0), np.empty(0, dtype=np.int64), np.empty(0)
    floored: Truths = np.empty(0, dtype=np.bool_)
    places = np.zeros((n_models + 1, 4), dtype=np.int64)
    n_seen, n_pairs = np.zeros(n_models, dtype=np.int64), np.zeros(n_models, dtype=np.int64)
    reason, log_likelihood = np.full(n_models, IMPOSSIBLE), np.full(n_models, math.nan)
    in_order = np.zeros(n_models, dtype=np.bool_)
    for b in range(n_models):
        places[b + 1] = places[b]
        own = offsets[first[b] : first[b + 1] + 1] - offsets[first[b]]
        begin, end = offsets[first[b]], offsets[first[b + 1]]
        of_sequences = weights[first[b] : first[b + 1]]
        data = prepare(X[begin:end], source[begin:end], own, of_sequences, n_source[b], rules)
        if not data.usable:
            continue
        n_seen[b], n_pairs[b], in_order[b] = len(data.seen), data.n_pairs, data.in_order
        n_types = max(n_seen[b], 1)
        acted = np.zeros((n_features, n_types, n_states), dtype=np.bool_)
        shape = (n_features, n_types, n_states, n_pairs[b], data.pairs.shape[1])
        events = Events(data.codes, own, data.steps, of_sequences, data.x, data.first_seen)
        outcome = run_prepared(events, data.pairs, data.memory, acted, shape, rules)
        reason[b], log_likelihood[b] = outcome[0], outcome[1]
        at = places[b]
        memory = put(memory, at[MEMORY], data.memory)
        numbers = put(numbers, at[NUMBERS], data.seen)
        numbers = put(numbers, at[NUMBERS] + len(data.seen), data.pairs.ravel())
        floored = put(floored, at[FLOORED], acted.ravel())
        history = put(history, at[HISTORY], outcome[2])
        places[b + 1, MEMORY] += len(data.memory)
        places[b + 1, NUMBERS] += len(data.seen) + data.pairs.size
        places[b + 1, FLOORED] += acted.size
        places[b + 1, HISTORY] += len(outcome[2])
    return Fits(memory, numbers, floored, history, places, n_seen, n_pairs, in_order, reason, log_likelihood)


@compiled
def put(where: Array, at: int, values: Array) -> Array:
    """Values into an array from `at` on; a larger array if they do not fit."""
    end = at + len(values)
    if end > len(where):
        larger = np.empty(max(end, 2 * len(where)), dtype=where.dtype)
        larger[:at] = where[:at]
        where = larger
    where[at:end] = values
    return where
