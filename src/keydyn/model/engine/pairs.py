"""Lookup of the transitions of a pair of event types, and their construction for pairs that never occurred.

A table of transitions has the observed pairs of a model, sorted by the earlier and the later type; then
a[i, j | ψ] of each earlier type, a[i, j | ω] of each later one, and a[i, j]. Tables of several models stand
one after the other. Types are given by their rows in the models' tables; the last row of a model, `unknown`,
stands for all types that the model does not know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner, plain
from keydyn.model.engine.layout import check_shape


class Pairs(NamedTuple):
    """The index of a table of transitions, with R rows of event types and T of transitions.

    Attributes
    ----------
    steps : (R + T,) for each type the first row of the transitions from it, and for unknown types the first
        row of the marginals; then for each pair the code of its later type, ascending per earlier type
    weights : (R, 3) the weight of a[i, j | ψ] in an unseen pair that leads to the type, that of a[i, j | ω]
        in one that leaves it, and the largest allowed sum of both
    """

    steps: Integers
    weights: Floats


class Pair(NamedTuple):
    """The rows of a model's unknown types and of two of its types, and the code of the later type."""

    unknown: int
    earlier: int
    later: int
    code: int


def between(pairs: Pairs, transitions: Floats, before: Integers, after: Integers) -> tuple[Integers, Floats]:
    """The row of each pair in a single model's transitions, −1 if it never occurred, and its a[i, j | ψ, ω].

    `transitions` is (T, M, M), `before` and `after` (U,) are codes; the results are (U,) and (U, M, M).
    """
    n_types, n_states = len(pairs.weights) - 1, transitions.shape[1]
    check_shape("pairs", pairs.steps, (n_types + 1 + len(transitions),))
    check_shape("transitions", transitions, (len(transitions), n_states, n_states))
    check_shape("later types", after, before.shape)
    if len(before) and (min(before.min(), after.min()) < 0 or max(before.max(), after.max()) > n_types):
        raise ValueError(f"event types are numbered 0 to {n_types}")
    rows, table = np.empty(len(before), dtype=np.int64), np.empty((len(before), n_states, n_states, 1))
    find_steps(pairs, plain(transitions)[..., None], plain(before), plain(after), rows, table)
    seen = np.flatnonzero(rows >= 0)
    table[seen, ..., 0] = transitions[rows[seen]]
    return rows, table[..., 0]


@compiled
def find_steps(
    pairs: Pairs, transitions: Floats, before: Integers, after: Integers, rows: Integers, table: Floats
) -> None:
    """Find the row of each pair of a single model; for a pair that never occurred −1, and fill `table`."""
    unknown = len(pairs.weights) - 1
    for n in range(len(before)):
        pair = Pair(unknown, before[n], after[n], after[n])
        rows[n] = find_step(pairs, pair)
        if rows[n] < 0:
            lay_out_unseen(pairs, pair, transitions, table, n)


@inner
def find_step(pairs: Pairs, pair: Pair) -> int:
    """The row of the transitions between two types; −1 for a pair that never occurred."""
    steps, n_rows, (unknown, earlier, later, code) = pairs.steps, len(pairs.weights), pair
    marginals = steps[unknown]
    if earlier == unknown:
        return int(marginals + unknown - later + 2 * code)
    if later == unknown:
        return int(marginals + earlier - later + code)
    # Binary search without branches, because a processor could not predict them.
    first, size = n_rows + steps[earlier], steps[earlier + 1] - steps[earlier]
    while size > 1:
        half = size >> 1
        first += half if steps[first + half] <= code else 0
        size -= half
    return int(first - n_rows) if size == 1 and steps[first] == code else -1


@inner
def lay_out_unseen(pairs: Pairs, pair: Pair, transitions: Floats, table: Floats, row: int) -> None:
    """Write a[i, j | ψ, ω] of a pair that never occurred, a smoothed uniform estimate, to a table row."""
    unknown, earlier, later, code = pair
    n_states, first, marginals = transitions.shape[1], later - code, pairs.steps[unknown]
    from_earlier, to_later = marginals + earlier - first, marginals + unknown - first + code
    of_earlier, of_later = pairs.weights[later, 0], pairs.weights[earlier, 1]
    excess = max((of_earlier + of_later) / pairs.weights[later, 2], 1.0)
    of_earlier, of_later = of_earlier / excess, of_later / excess
    for i in range(n_states):
        total = 0.0
        for j in range(n_states):
            mixed = (1.0 - of_earlier - of_later) / n_states + of_earlier * transitions[from_earlier, i, j, 0]
            mixed = max(mixed + of_later * transitions[to_later, i, j, 0], 0.0)
            table[row, i, j, 0] = mixed
            total += mixed
        for j in range(n_states):
            # Without marginals all of this is NaN.
            share = table[row, i, j, 0] / total
            table[row, i, j, 0] = share if total > 0.0 else 1.0 / n_states
