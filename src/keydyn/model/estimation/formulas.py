"""The formulas of the maximisation step (Eqs. 12, 14, 15), compiled, each written once.

They fill the array that is their last argument. What has no evidence is left as it stands there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, compiled, inlined

# Below this a sum of posterior probabilities is no evidence, and the parameter stays as it was: it is not for
# underflow to decide.
NO_MASS = 1e-250
SMALLEST = 5e-324


@compiled
def normalise(row: Floats) -> None:
    """A row scaled to add up to one; a row of zeros becomes uniform."""
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    for j in range(len(row)):
        row[j] = row[j] / total if total > 0.0 else 1.0 / len(row)


@compiled
def update_start(expected: Floats, start_all: Floats, floor: float, startprob: Floats) -> None:
    """π[j | ω] (Eq. 12) of the types, one a row; one that starts no sequence has the marginal."""
    n_types, n_states = expected.shape
    for row in range(n_types):
        total = 0.0
        for j in range(n_states):
            total += max(expected[row, j], floor)
        for j in range(n_states):
            startprob[row, j] = max(expected[row, j], floor) / total if total > NO_MASS else start_all[j]


@compiled
def update_transitions(expected: Floats, floor: float, transmat: Floats) -> None:
    """a[i, j | ψ, ω] (Eq. 14) of the pairs that `expected` (P, M, M) has."""
    # Loops over a number of states that the compiler knows are unrolled.
    if expected.shape[1] == 2:
        _update_transitions(2, expected, floor, transmat)
    else:
        _update_transitions(expected.shape[1], expected, floor, transmat)


@inlined
def _update_transitions(n_states: int, expected: Floats, floor: float, transmat: Floats) -> None:
    for pair in range(len(expected)):
        for i in range(n_states):
            total = 0.0
            for j in range(n_states):
                total += max(expected[pair, i, j], floor)
            if total > NO_MASS:
                scale = 1.0 / total
                for j in range(n_states):
                    transmat[pair, i, j] = max(expected[pair, i, j], floor) * scale


@compiled
def update_normal(
    count: Floats,
    mean: Floats,
    square: Floats,
    min_scale: float,
    count_floor: float,
    loc: Floats,
    scale: Floats,
    floored: NDArray[np.bool_],
) -> None:
    """Mean and deviation (Eq. 15; for the log-normal Eqs. 17–18, corrected) of cells (m, M)."""
    n_types, n_states = count.shape
    for row in range(n_types):
        for j in range(n_states):
            floored[row, j] = False
            if count[row, j] > NO_MASS or count_floor > 0.0:
                divisor = max(count[row, j], max(count_floor, SMALLEST))
                found = count[row, j] * mean[row, j] / divisor if count_floor > 0.0 else mean[row, j]
                # Σγ(x − loc)², for a loc that is not the mean where the divisor was raised
                around = square[row, j] + count[row, j] * (mean[row, j] - found) ** 2
                deviation = math.sqrt(around / divisor)
                loc[row, j] = found
                scale[row, j] = max(deviation, min_scale)
                floored[row, j] = deviation < min_scale


@compiled
def update_student(
    count: Floats,
    precision: Floats,
    mean: Floats,
    square: Floats,
    min_scale: float,
    count_floor: float,
    loc: Floats,
    scale: Floats,
    floored: NDArray[np.bool_],
) -> None:
    """Location and scale of Student's t with ν fixed (Eq. 15 by Liu and Rubin) of cells (m, M)."""
    n_types, n_states = count.shape
    for row in range(n_types):
        for j in range(n_states):
            floored[row, j] = False
            if precision[row, j] > NO_MASS and count[row, j] > count_floor:
                deviation = math.sqrt(square[row, j] / count[row, j])
                loc[row, j] = mean[row, j]
                scale[row, j] = max(deviation, min_scale)
                floored[row, j] = deviation < min_scale
