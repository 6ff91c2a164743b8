"""The formulas of starting parameters (Section 3.5, Eqs. 23–24), compiled."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, compiled


@compiled
def scale_floor(
    min_scale: float, on_log_scale: bool, count: float, mean: float, square: float, largest: float
) -> float:
    """The least scale of a feature: as given, or, where that is NaN, a thousandth of the data's own spread.

    Where the data have no spread it is absolute: 1e-3 on the log scale, 1e-6·max(1, |x|) on the linear one.
    """
    if min_scale == min_scale:
        return min_scale
    spread = math.sqrt(square / count)
    # Equal values leave a spread of rounding errors.
    if spread > 1e-12 * max(abs(mean), 1.0 if on_log_scale else 0.0):
        return 1e-3 * spread
    return 1e-3 if on_log_scale else 1e-6 * max(1.0, largest)


@compiled
def start_moments(
    count: Floats,
    mean: Floats,
    square: Floats,
    of_all: tuple[float, float, float],
    floor: float,
    displacements: Floats,
    own_spread: bool,
) -> tuple[Floats, Floats, Floats]:
    """Mean and scale of each type (m, 1), and how far each state is displaced from the mean (m, M).

    `count`, `mean` and `square` (m, 1) are moments by type, `of_all` the same of all events: a type without
    any value starts there. Displacements are in units of the type's own deviation, or of that of all events.
    """
    n_types, n_states = len(count), len(displacements)
    middle, scale, shift = np.empty((n_types, 1)), np.empty((n_types, 1)), np.empty((n_types, n_states))
    everywhere = math.sqrt(of_all[2] / of_all[0])
    for row in range(n_types):
        seen = count[row, 0] > 0.0
        middle[row, 0] = mean[row, 0] if seen else of_all[1]
        deviation = math.sqrt(square[row, 0] / count[row, 0]) if seen else everywhere
        scale[row, 0] = max(deviation, floor)
        for j in range(n_states):
            shift[row, j] = displacements[j] * (deviation if own_spread else everywhere)
    return middle, scale, shift
