"""The formulas of the marginals (Section 3.6), compiled: event types integrated out."""

from __future__ import annotations

from keydyn.arrays import Floats, Integers, compiled, inlined
from keydyn.model.estimation.formulas import normalise


@compiled
def sum_by_type(
    before: Integers,
    after: Integers,
    matrices: Floats,
    weights: Floats,
    from_type: Floats,
    to_type: Floats,
) -> None:
    """Σ of the pairs' weighted matrices by earlier type into `from_type`, by later into `to_type`."""
    from_type[:] = 0.0
    to_type[:] = 0.0
    # Loops over a number of states that the compiler knows are unrolled.
    if matrices.shape[1] == 2:
        _sum_by_type(2, before, after, matrices, weights, from_type, to_type)
    else:
        _sum_by_type(matrices.shape[1], before, after, matrices, weights, from_type, to_type)


@inlined
def _sum_by_type(
    n_states: int,
    before: Integers,
    after: Integers,
    matrices: Floats,
    weights: Floats,
    from_type: Floats,
    to_type: Floats,
) -> None:
    for pair in range(len(weights)):
        for i in range(n_states):
            for j in range(n_states):
                value = matrices[pair, i, j] * weights[pair]
                from_type[before[pair], i, j] += value
                to_type[after[pair], i, j] += value


@compiled
def any_after_dead_ends(leaving: Floats, from_type: Floats, to_type: Floats) -> None:
    """A type that none follows is followed by any, each with equal probability, each step uniform."""
    n_types, n_states, _ = from_type.shape
    dead_ends = 0
    for row in range(n_types):
        if leaving[row] == 0.0:
            dead_ends += 1
            for i in range(n_states):
                for j in range(n_states):
                    from_type[row, i, j] = 1.0 / n_states
    if dead_ends > 0:
        share = dead_ends / n_types / n_states
        for row in range(n_types):
            for i in range(n_states):
                for j in range(n_states):
                    to_type[row, i, j] += share


@compiled
def normalise_marginals(from_type: Floats, to_type: Floats, of_all: Floats) -> None:
    """a[i, j] from the sums, then every row of all three adds up to one."""
    n_types, n_states, _ = from_type.shape
    uniform = 1.0 / n_states
    of_all[:] = 0.0
    for row in range(n_types):
        for i in range(n_states):
            from_total, to_total = 0.0, 0.0
            for j in range(n_states):
                of_all[i, j] += from_type[row, i, j]
                from_total += from_type[row, i, j]
                to_total += to_type[row, i, j]
            # Rows are indexed, not taken out: a view costs more than its sums.
            for j in range(n_states):
                from_type[row, i, j] = from_type[row, i, j] / from_total if from_total > 0.0 else uniform
                to_type[row, i, j] = to_type[row, i, j] / to_total if to_total > 0.0 else uniform
    for i in range(n_states):
        normalise(of_all[i])
