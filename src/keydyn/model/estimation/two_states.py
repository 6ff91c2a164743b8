"""The recursions of `recursions`, unrolled for two states: the same steps, in scalars."""

from __future__ import annotations

import math

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.estimation.recursions import COVERED, FAINT, LOST, SMALL


@compiled
def forward_two(
    offsets: Integers,
    codes: Integers,
    steps: Integers,
    startprob: Floats,
    transmat: Floats,
    ratio: Floats,
    largest: Floats,
    states: Floats,
    scores: Floats,
) -> None:
    """`recursions.forward`; `ratio` (N, 1) is that of the two densities, see `relative_densities_two`."""
    for s in range(len(offsets) - 1):
        first = offsets[s]
        before0, before1 = startprob[codes[first], 0], startprob[codes[first], 1]
        alpha0, alpha1, total = 0.0, 0.0, 1.0
        log_scale, lost = 0.0, False
        for n in range(first, offsets[s + 1]):
            if n > first:
                step = steps[n]
                before0 = alpha0 * transmat[step, 0, 0] + alpha1 * transmat[step, 1, 0]
                before1 = alpha0 * transmat[step, 0, 1] + alpha1 * transmat[step, 1, 1]
                if before0 < COVERED and (
                    lost
                    or (alpha0 > 0.0 and transmat[step, 0, 0] > 0.0)
                    or (alpha1 > 0.0 and transmat[step, 1, 0] > 0.0)
                ):
                    total = math.nan
                    break
                if before1 < COVERED and (
                    lost
                    or (alpha0 > 0.0 and transmat[step, 0, 1] > 0.0)
                    or (alpha1 > 0.0 and transmat[step, 1, 1] > 0.0)
                ):
                    total = math.nan
                    break
            if total < SMALL:
                log_scale += math.log(total)
                before0, before1 = before0 / total, before1 / total
            log_scale += largest[n]
            smaller = ratio[n, 0]
            alpha0 = before0 * smaller if smaller > 0.0 else before0
            alpha1 = before1 if smaller > 0.0 else -before1 * smaller
            if (alpha0 < LOST and before0 > 0.0) or (alpha1 < LOST and before1 > 0.0):
                lost = True
            states[n, 0], states[n, 1] = alpha0, alpha1
            total = alpha0 + alpha1
            if not total >= FAINT:
                total = math.nan
                break
        scores[s] = log_scale + math.log(total)


@compiled
def backward_two(
    offsets: Integers,
    weights: Floats,
    scores: Floats,
    steps: Integers,
    transmat: Floats,
    states: Floats,
    transitions: Floats,
) -> None:
    """`recursions.backward`."""
    for s in range(len(scores)):
        if not scores[s] > -math.inf:
            continue
        first, last = offsets[s], offsets[s + 1]
        scale = weights[s] / (states[last - 1, 0] + states[last - 1, 1])
        gamma0, gamma1 = states[last - 1, 0] * scale, states[last - 1, 1] * scale
        states[last - 1, 0], states[last - 1, 1] = gamma0, gamma1
        for n in range(last - 1, first, -1):
            step = steps[n]
            alpha0, alpha1 = states[n - 1, 0], states[n - 1, 1]
            from00, from01 = alpha0 * transmat[step, 0, 0], alpha0 * transmat[step, 0, 1]
            from10, from11 = alpha1 * transmat[step, 1, 0], alpha1 * transmat[step, 1, 1]
            before0, before1 = from00 + from10, from01 + from11
            # Quotients that wait for no later event; γ itself then takes a product and a sum a step.
            inverse0 = 1.0 / before0 if before0 > 0.0 else 0.0
            inverse1 = 1.0 / before1 if before1 > 0.0 else 0.0
            joint00, joint10 = from00 * inverse0 * gamma0, from10 * inverse0 * gamma0
            joint01, joint11 = from01 * inverse1 * gamma1, from11 * inverse1 * gamma1
            transitions[step, 0, 0] += joint00
            transitions[step, 0, 1] += joint01
            transitions[step, 1, 0] += joint10
            transitions[step, 1, 1] += joint11
            gamma0, gamma1 = joint00 + joint01, joint10 + joint11
            states[n - 1, 0], states[n - 1, 1] = gamma0, gamma1
