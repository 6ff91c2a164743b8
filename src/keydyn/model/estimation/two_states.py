"""The recursions of `recursions`, unrolled for two states: the same steps, in scalars."""

from __future__ import annotations

import math

from keydyn.model.arrays import Floats, Integers, compiled
from keydyn.model.estimation.recursions import COVERED, FAINT, LOST, SMALL


@compiled
def forward_two(
    first: int,
    last: int,
    code: int,
    steps: Integers,
    startprob: Floats,
    transmat: Floats,
    density: Floats,
    largest: Floats,
    states: Floats,
) -> float:
    """`recursions.forward`."""
    before0, before1 = startprob[code, 0], startprob[code, 1]
    alpha0, alpha1 = before0 * density[first, 0], before1 * density[first, 1]
    lost = (alpha0 < LOST and before0 > 0.0) or (alpha1 < LOST and before1 > 0.0)
    states[first, 0], states[first, 1] = alpha0, alpha1
    total = alpha0 + alpha1
    log_scale = largest[first]
    if not total >= FAINT:
        return math.nan
    for n in range(first + 1, last):
        step = steps[n]
        from00, from01 = alpha0 * transmat[step, 0, 0], alpha0 * transmat[step, 0, 1]
        from10, from11 = alpha1 * transmat[step, 1, 0], alpha1 * transmat[step, 1, 1]
        before0, before1 = from00 + from10, from01 + from11
        if before0 < COVERED and (
            lost
            or (alpha0 > 0.0 and transmat[step, 0, 0] > 0.0)
            or (alpha1 > 0.0 and transmat[step, 1, 0] > 0.0)
        ):
            return math.nan
        if before1 < COVERED and (
            lost
            or (alpha0 > 0.0 and transmat[step, 0, 1] > 0.0)
            or (alpha1 > 0.0 and transmat[step, 1, 1] > 0.0)
        ):
            return math.nan
        if total < SMALL:
            log_scale += math.log(total)
            before0, before1 = before0 / total, before1 / total
        log_scale += largest[n]
        alpha0, alpha1 = before0 * density[n, 0], before1 * density[n, 1]
        if (alpha0 < LOST and before0 > 0.0) or (alpha1 < LOST and before1 > 0.0):
            lost = True
        states[n, 0], states[n, 1] = alpha0, alpha1
        total = alpha0 + alpha1
        if not total >= FAINT:
            return math.nan
    return float(log_scale + math.log(total))


@compiled
def backward_two(
    first: int,
    last: int,
    weight: float,
    steps: Integers,
    transmat: Floats,
    states: Floats,
    transitions: Floats,
) -> None:
    """`recursions.backward`."""
    scale = weight / (states[last - 1, 0] + states[last - 1, 1])
    gamma0, gamma1 = states[last - 1, 0] * scale, states[last - 1, 1] * scale
    states[last - 1, 0], states[last - 1, 1] = gamma0, gamma1
    for n in range(last - 1, first, -1):
        step = steps[n]
        alpha0, alpha1 = states[n - 1, 0], states[n - 1, 1]
        from00, from01 = alpha0 * transmat[step, 0, 0], alpha0 * transmat[step, 0, 1]
        from10, from11 = alpha1 * transmat[step, 1, 0], alpha1 * transmat[step, 1, 1]
        before0, before1 = from00 + from10, from01 + from11
        # Not divided into γ: the quotients wait for no earlier step, γ then takes one product and one sum.
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
