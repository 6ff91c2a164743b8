"""The formulas of smoothing (Eqs. 33–36, corrected), compiled; `keydyn.model.smoothing` has the weights."""

from __future__ import annotations

import math

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.formulas import normalise


@compiled
def blend(keep: Floats, marginal: Floats, table: Floats, squares: bool) -> None:
    """Rows of a table moved towards the marginal (Eqs. 33–34); `keep` is the share that each row keeps.

    With `squares` it is the squares that are interpolated, as the t families do with their scales.
    """
    n_states = table.shape[1]
    for row in range(len(keep)):
        for j in range(n_states):
            own, other = table[row, j], marginal[j]
            if squares:
                table[row, j] = math.sqrt(keep[row] * (own * own) + (1.0 - keep[row]) * (other * other))
            else:
                table[row, j] = keep[row] * own + (1.0 - keep[row]) * other


@compiled
def blend_transitions(
    weight_before: Floats,
    weight_after: Floats,
    before: Integers,
    after: Integers,
    from_type: Floats,
    to_type: Floats,
    transmat: Floats,
) -> None:
    """ã[i, j | ψ, ω] (Eqs. 35–36, corrected) of pairs in place of a[i, j | ψ, ω].

    `from_type` is a[i, j | ψ], `to_type` a[i, j | ω], by type; what is left below zero becomes zero.
    """
    n_states = transmat.shape[1]
    for pair in range(len(weight_before)):
        earlier, later = before[pair], after[pair]
        own = 1.0 - weight_before[pair] - weight_after[pair]
        for i in range(n_states):
            for j in range(n_states):
                mixed = (
                    own * transmat[pair, i, j]
                    + weight_before[pair] * from_type[earlier, i, j]
                    + weight_after[pair] * to_type[later, i, j]
                )
                transmat[pair, i, j] = max(mixed, 0.0)
            normalise(transmat[pair, i])
