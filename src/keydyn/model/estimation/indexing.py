"""Event types and their pairs as row numbers, and how often they occur, compiled."""

from __future__ import annotations

import numpy as np

from keydyn.model.arrays import Floats, Integers, compiled

# An odd number whose bits look random; products with it scatter neighbouring keys.
SCATTER = 0x9E3779B97F4A7C1


@compiled
def seen_types(codes: Integers, n_source: int) -> Integers:
    """The codes that occur, ascending; a negative one is no type."""
    occurs = np.zeros(n_source, dtype=np.bool_)
    for code in codes:
        if code >= 0:
            occurs[code] = True
    return np.flatnonzero(occurs)


@compiled
def places_among(codes: Integers, seen: Integers, n_source: int) -> Integers:
    """Each code's place among the seen ones, len(seen) for no type."""
    place = np.full(n_source + 1, len(seen))
    for row in range(len(seen)):
        place[seen[row]] = row
    found = np.empty(len(codes), dtype=np.int64)
    for n in range(len(codes)):
        found[n] = place[codes[n]] if codes[n] >= 0 else len(seen)
    return found


@compiled
def index_steps(codes: Integers, offsets: Integers, n_types: int) -> tuple[Integers, Integers, int]:
    """The distinct pairs of types that follow each other, and which of them leads to each event.

    Pairs of two known types come first, in order, then those of which one is unknown (the code `n_types`).
    Returns the earlier and the later types (2, U), the pair's number for each event, 0 at the start of a
    sequence, and how many pairs are of known types.
    """
    known_keys = n_types * n_types
    keys = np.empty(len(codes), dtype=np.int64)
    for s in range(len(offsets) - 1):
        keys[offsets[s]] = -1
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if codes[n - 1] < n_types and codes[n] < n_types:
                keys[n] = codes[n - 1] * n_types + codes[n]
            else:
                keys[n] = known_keys + codes[n - 1] * (n_types + 1) + codes[n]
    steps = np.zeros(len(codes), dtype=np.int64)
    all_keys = known_keys + (n_types + 1) ** 2
    if all_keys <= 4 * len(codes) + 4096:
        # A table of all possible pairs is no larger than the data.
        number = np.full(all_keys, -1)
        for key in keys:
            if key >= 0:
                number[key] = 0
        distinct = np.flatnonzero(number == 0)
        number[distinct] = np.arange(len(distinct))
        for n in range(len(codes)):
            if keys[n] >= 0:
                steps[n] = number[keys[n]]
    else:
        found = numbered(keys, steps)
        order = np.argsort(found)
        distinct = found[order]
        number = np.empty(len(found), dtype=np.int64)
        number[order] = np.arange(len(found))
        for n in range(len(codes)):
            if keys[n] >= 0:
                steps[n] = number[steps[n]]
    pairs = np.empty((2, len(distinct)), dtype=np.int64)
    n_known = 0
    for row in range(len(distinct)):
        key, base = distinct[row], n_types
        if key < known_keys:
            n_known += 1
        else:
            key, base = key - known_keys, n_types + 1
        pairs[0, row], pairs[1, row] = key // base, key % base
    return pairs, steps, n_known


@compiled
def numbered(keys: Integers, numbers: Integers) -> Integers:
    """The distinct keys that are not negative in the order of their first appearance, and each key's number.

    A table that is searched from a place that the key scatters to, to the next free one.
    """
    size = 16
    while size < 2 * len(keys):
        size *= 2
    table = np.full(size, -1)
    distinct = np.empty(len(keys), dtype=np.int64)
    count = 0
    for n in range(len(keys)):
        if keys[n] < 0:
            continue
        place = (keys[n] * SCATTER >> 20) & (size - 1)
        while table[place] >= 0 and distinct[table[place]] != keys[n]:
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = count
            distinct[count] = keys[n]
            count += 1
        numbers[n] = table[place]
    return distinct[:count].copy()


@compiled
def by_appearance(steps: Integers, offsets: Integers, n_known: int, n_steps: int) -> Integers:
    """Pairs in the order in which the events first take them, those of known types first."""
    order, taken = np.empty(n_steps, dtype=np.int64), np.zeros(n_steps, dtype=np.bool_)
    known, unknown = 0, n_known
    for s in range(len(offsets) - 1):
        for n in range(offsets[s] + 1, offsets[s + 1]):
            step = steps[n]
            if not taken[step]:
                taken[step] = True
                if step < n_known:
                    order[known] = step
                    known += 1
                else:
                    order[unknown] = step
                    unknown += 1
    return order


@compiled
def count_events(
    codes: Integers, offsets: Integers, steps: Integers, weights: Floats, n_types: int, n_steps: int
) -> tuple[Floats, Floats, Floats]:
    """Weighted: events of each type, sequences that begin with it, and steps of each pair."""
    types, starts, taken = np.zeros(n_types), np.zeros(n_types), np.zeros(n_steps)
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            if codes[n] < n_types:
                types[codes[n]] += weights[s]
                if n == offsets[s]:
                    starts[codes[n]] += weights[s]
            if n > offsets[s]:
                taken[steps[n]] += weights[s]
    return types, starts, taken


@compiled
def chain_of_counts(
    before: Integers, after: Integers, types: Floats, starts: Floats, pair: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Π[ω] (Eq. 30), f(ψ,·), f(·,ω), π[ω] and a[ψ, ω] as observed; `before` and `after` may go on."""
    leaving, entering = np.zeros(len(types)), np.zeros(len(types))
    for row in range(len(pair)):
        leaving[before[row]] += pair[row]
        entering[after[row]] += pair[row]
    pair_prob = np.zeros(len(pair))
    for row in range(len(pair)):
        if pair[row] > 0.0:
            pair_prob[row] = pair[row] / leaving[before[row]]
    return shares(types), leaving, entering, shares(starts), pair_prob


@compiled
def shares(counts: Floats) -> Floats:
    """Counts divided by their sum; equal shares if there is nothing to divide."""
    total = counts.sum()
    return counts / total if total > 0.0 else np.full(len(counts), 1.0 / len(counts))
