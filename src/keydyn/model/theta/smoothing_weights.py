"""What estimates and marginals weigh in smoothing (Eqs. 32 and 35, corrected)."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.data.smoothing_rules import Rule


def kept_shares(rule: Rule, counts: Floats) -> Floats:
    """w_ω (Eq. 32), the weight of an estimate that rests on this many events."""
    if isinstance(rule, str):
        return 1.0 - 1.0 / (1.0 + counts)
    return np.full(len(counts), 1.0 - (rule or 0.0))


def transition_weights(
    rule: Rule, published: bool, pair_count: Floats, leaving: Floats, entering: Floats
) -> tuple[Floats, Floats]:
    """What a[i, j | ψ] and a[i, j | ω] weigh in ã[i, j | ψ, ω] (Eq. 35, corrected), by pair.

    `leaving` is f(ψ,·) and `entering` f(·,ω) of each pair. Weights above one together are scaled to one, or,
    `published`, left as they are.
    """
    if isinstance(rule, str):
        before, after = 1.0 / (1.0 + pair_count + entering), 1.0 / (1.0 + pair_count + leaving)
    else:
        before = after = np.full(len(pair_count), 0.5 * (rule or 0.0))
    if not published:
        excess = np.maximum(before + after, 1.0)
        before, after = before / excess, after / excess
    return before, after
