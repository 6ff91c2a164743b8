"""Event types and their pairs as row numbers, and how often they occur, compiled."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers, compiled

# An odd number whose bits look random; products with it scatter neighbouring keys.
SCATTER = 0x9E3779B97F4A7C1
# A table of all possible pairs that is no larger than a core's own cache.
SMALL_TABLE = 65_536


@compiled
def seen_types(codes: Integers, n_source: int) -> Integers:
    """The codes that occur, ascending; a negative one is no type."""
    occurs = np.zeros(n_source, dtype=np.bool_)
    count = 0
    for code in codes:
        if code >= 0 and not occurs[code]:
            occurs[code] = True
            count += 1
    seen = np.empty(count, dtype=np.int64)
    for code in range(n_source - 1, -1, -1):
        if occurs[code]:
            count -= 1
            seen[count] = code
    return seen


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
def index_steps(codes: Integers, offsets: Integers, n_types: int) -> tuple[Integers, Integers, int, bool]:
    """The distinct pairs of types that follow each other, and which of them leads to each event.

    Pairs of two known types come first, then those of which one is unknown (the code `n_types`). Few possible
    pairs are sorted. Many come in the order of the data, so that events walk along a table of them instead of
    jumping in it. Returns the earlier and the later types (2, U), the pair's number for each event, 0 at the
    start of a sequence, how many pairs are of known types, and whether they are sorted.
    """
    known_keys = n_types * n_types
    keys, steps = np.empty(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    for s in range(len(offsets) - 1):
        keys[offsets[s]] = -1
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if codes[n - 1] < n_types and codes[n] < n_types:
                keys[n] = codes[n - 1] * n_types + codes[n]
            else:
                keys[n] = known_keys + codes[n - 1] * (n_types + 1) + codes[n]
    all_keys = known_keys + (n_types + 1) ** 2
    in_order = all_keys <= min(4 * len(codes) + 4096, SMALL_TABLE)
    distinct = numbered_in_order(keys, all_keys, steps) if in_order else numbered(keys, steps)
    n_known = 0
    for key in distinct:
        if key < known_keys:
            n_known += 1
    pairs, number = np.empty((2, len(distinct)), dtype=np.int64), np.empty(len(distinct), dtype=np.int64)
    known, unknown = 0, n_known
    for row in range(len(distinct)):
        key = distinct[row]
        if key < known_keys:
            number[row], base = known, n_types
            known += 1
        else:
            number[row], base, key = unknown, n_types + 1, key - known_keys
            unknown += 1
        pairs[0, number[row]], pairs[1, number[row]] = key // base, key % base
    for n in range(len(codes)):
        if keys[n] >= 0:
            steps[n] = number[steps[n]]
    return pairs, steps, n_known, in_order


@compiled
def numbered_in_order(keys: Integers, n_keys: int, numbers: Integers) -> Integers:
    """The distinct keys that are not negative, ascending, and each key's number, by a table of all keys."""
    table, count = np.full(n_keys, -1), 0
    for key in keys:
        if key >= 0 and table[key] < 0:
            table[key] = 0
            count += 1
    distinct, count = np.empty(count, dtype=np.int64), 0
    for key in range(n_keys):
        if table[key] == 0:
            table[key] = count
            distinct[count] = key
            count += 1
    for n in range(len(keys)):
        if keys[n] >= 0:
            numbers[n] = table[keys[n]]
    return distinct


@compiled
def numbered(keys: Integers, numbers: Integers) -> Integers:
    """The distinct keys that are not negative in the order of their first appearance, and each key's number.

    A table that is searched from a place that the key scatters to, to the next free one.
    """
    size = 16
    while size < 2 * len(keys):
        size *= 2
    # A key and its number side by side: one look into memory finds both.
    table = np.full((size, 2), -1)
    distinct = np.empty(len(keys), dtype=np.int64)
    count = 0
    for n in range(len(keys)):
        key = keys[n]
        if key < 0:
            continue
        place = (key * SCATTER >> 20) & (size - 1)
        while table[place, 0] != key and table[place, 0] >= 0:
            place = (place + 1) & (size - 1)
        if table[place, 0] < 0:
            table[place, 0], table[place, 1] = key, count
            distinct[count] = key
            count += 1
        numbers[n] = table[place, 1]
    shorter = np.empty(count, dtype=np.int64)
    for row in range(count):
        shorter[row] = distinct[row]
    return shorter


@compiled
def find_sorted(codes: Integers, first: int, end: int, code: int) -> int:
    """Where a code is among the ascending ones from `first` to `end` − 1, −1 if it is not.

    Halving without a branch on what is found: types come in no order that a processor could guess.
    """
    size = end - first
    while size > 1:
        half = size >> 1
        first += half if codes[first + half] <= code else 0
        size -= half
    return first if size == 1 and codes[first] == code else -1


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
