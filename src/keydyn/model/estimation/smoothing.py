"""The formulas of smoothing (Eqs. 32–36, corrected), compiled."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inlined

# A smoothing rule as a number; any other is a fixed share of the marginal.
NO_RULE, FREQUENCY = 0.0, -1.0


@compiled
def kept_shares(rule: float, counts: Floats) -> Floats:
    """w_ω (Eq. 32), the weight of an estimate that rests on so many events."""
    keep = np.empty(len(counts))
    for row in range(len(counts)):
        keep[row] = 1.0 - 1.0 / (1.0 + counts[row]) if rule == FREQUENCY else 1.0 - rule
    return keep


@compiled
def transition_weights(
    rule: float,
    published: bool,
    before: Integers,
    after: Integers,
    pair_count: Floats,
    leaving: Floats,
    entering: Floats,
) -> tuple[Floats, Floats]:
    """What a[i, j | ψ] and a[i, j | ω] weigh in ã[i, j | ψ, ω] (Eq. 35, corrected), by pair.

    `leaving` is f(ψ,·) and `entering` f(·,ω), by type. Weights above one together are scaled to one, or,
    `published`, left as they are.
    """
    weight_before, weight_after = np.empty(len(pair_count)), np.empty(len(pair_count))
    for row in range(len(pair_count)):
        if rule == FREQUENCY:
            weight_before[row] = 1.0 / (1.0 + pair_count[row] + entering[after[row]])
            weight_after[row] = 1.0 / (1.0 + pair_count[row] + leaving[before[row]])
        else:
            weight_before[row] = weight_after[row] = 0.5 * rule
        if not published:
            excess = max(weight_before[row] + weight_after[row], 1.0)
            weight_before[row] /= excess
            weight_after[row] /= excess
    return weight_before, weight_after


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
    # Loops over a number of states that the compiler knows are unrolled.
    weights, marginals = (weight_before, weight_after), (from_type, to_type)
    if transmat.shape[1] == 2:
        _blend_transitions(2, weights, before, after, marginals, transmat)
    else:
        _blend_transitions(transmat.shape[1], weights, before, after, marginals, transmat)


@inlined
def _blend_transitions(
    n_states: int,
    weights: tuple[Floats, Floats],
    before: Integers,
    after: Integers,
    marginals: tuple[Floats, Floats],
    transmat: Floats,
) -> None:
    (weight_before, weight_after), (from_type, to_type) = weights, marginals
    for pair in range(len(weight_before)):
        earlier, later = before[pair], after[pair]
        of_earlier, of_later = weight_before[pair], weight_after[pair]
        own = 1.0 - of_earlier - of_later
        for i in range(n_states):
            total = 0.0
            for j in range(n_states):
                mixed = own * transmat[pair, i, j] + of_earlier * from_type[earlier, i, j]
                mixed = max(mixed + of_later * to_type[later, i, j], 0.0)
                transmat[pair, i, j] = mixed
                total += mixed
            # A row is indexed, not taken out: a view costs more than its two sums.
            scale = 1.0 / total if total > 0.0 else 0.0
            for j in range(n_states):
                transmat[pair, i, j] = transmat[pair, i, j] * scale if total > 0.0 else 1.0 / n_states
