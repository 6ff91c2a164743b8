"""The forward and backward recursions along sequences (Eqs. 3–4, 8–13), for everything that is not online.

α is not normalised at each step but only kept in range: γ and ξ are ratios in which its scale cancels, and a
logarithm is taken only where a sequence ends or α has become small. The backward pass needs no β: given the
state that follows, the state before it has the probabilities α[i] a[i, j] / Σ α[i] a[i, j], so γ is computed
from the end backwards without densities and without underflow of its own (docs/decisions/0024).

If underflow may have lost a probability that matters, the score of a sequence is NaN. The sequence is then
computed in the log domain (`log_domain`); a model in a lane is fitted alone instead.

The functions work on a block, the sequences `first` … `last` − 1. The arrays `density` and `largest` hold
the events of the block; all other arrays hold those of all sequences.
"""

from __future__ import annotations

import math

from keydyn.arrays import Floats, inner
from keydyn.model.engine.densities import exponential, logarithm
from keydyn.model.engine.layout import FitRoom, Variant, Walk, fits, lanes_of, states_of

# α of a single model is rescaled to a sum of one when its sum falls below SMALL, α of lanes at regular
# intervals.
SMALL = 1e-60
RESCALE_EVERY = 16
# A probability below LOST may have lost digits to underflow; next to one above COVERED, thirty digits larger,
# the loss has no visible effect.
LOST = 1e-300
THIRTY_DIGITS = 1e30
COVERED = LOST * THIRTY_DIGITS
# Sums of α below this, or in lanes probabilities, are not trusted.
FAINT = 1e-200


@inner
def scale_densities(variant: Variant, n_events: int, density: Floats, largest: Floats) -> None:
    """Replace log-densities by densities relative to the event's largest, whose log goes to `largest`."""
    n_states, n_lanes = states_of(variant, density.shape[1]), lanes_of(variant)
    if not fits(n_states, n_lanes, density.shape[1:]) or largest.shape[1] != n_lanes:
        return
    for n in range(n_events):
        for lane in range(n_lanes):
            top = density[n, 0, lane]
            for j in range(1, n_states):
                top = max(top, density[n, j, lane])
            largest[n, lane] = top
    for n in range(n_events):
        for lane in range(n_lanes):
            if n_states == 2:
                # One state has the largest density, so one exponential is enough for two states.
                gap = density[n, 1, lane] - density[n, 0, lane]
                smaller = exponential(-abs(gap)) if abs(gap) < math.inf else 0.0
                density[n, 0, lane] = smaller if gap > 0.0 else 1.0
                density[n, 1, lane] = 1.0 if gap > 0.0 else smaller
            else:
                for j in range(n_states):
                    below = density[n, j, lane] - largest[n, lane]
                    density[n, j, lane] = exponential(below) if below > -math.inf else 0.0


@inner
def forward(variant: Variant, first: int, last: int, walk: Walk, work: FitRoom) -> None:
    """Write α (Eqs. 3–4) of every event to `states`, and ln P(x | Ω) of every sequence, or NaN, to `scores`.

    `increments`, if it has rows, receives ln P(x_n | x_1..n−1, Ω) of every event.
    """
    offsets, start_rows, steps = walk.offsets, walk.start_rows, walk.steps
    start, transitions, density, largest = walk.start, walk.transitions, work.density, work.largest
    states, scores, worst, increments = work.states, work.scores, work.worst, work.increments
    n_states, n_lanes, begin = states_of(variant, density.shape[1]), lanes_of(variant), offsets[first]
    if not (
        fits(n_states, n_lanes, density.shape[1:])
        and fits(n_states, n_lanes, states.shape[1:])
        and fits(n_states, n_lanes, start.shape[1:])
        and fits(n_states, n_lanes, transitions.shape[1:])
        and largest.shape[1] == n_lanes
        and scores.shape[1] == n_lanes
    ):
        return
    for s in range(first, last):
        n, total, before, lost = offsets[s], 0.0, 1.0, 0.0
        for lane in range(n_lanes):
            scores[s, lane] = 0.0
            for j in range(n_states):
                chance = start[start_rows[s], j, lane]
                value = chance * density[n - begin, j, lane]
                states[n, j, lane] = value
                total += value
                lost = max(lost, LOST) if value < LOST and chance > 0.0 else lost
        if len(increments):
            increments[n] = logarithm(total) + largest[n - begin, 0]
        for n in range(offsets[s] + 1, offsets[s + 1]):
            step, before = steps[n], total
            if (n - offsets[s]) % RESCALE_EVERY == 0 if n_lanes > 1 else total < SMALL:
                rescale(variant, n - 1, s, states, scores, worst)
                # Rescaling magnifies what was lost by the same factor as everything else.
                before, lost = 1.0, lost / total
            total = 0.0
            for lane in range(n_lanes):
                for j in range(n_states):
                    predicted = 0.0
                    for i in range(n_states):
                        predicted += states[n - 1, i, lane] * transitions[step, i, j, lane]
                    value = predicted * density[n - begin, j, lane]
                    states[n, j, lane] = value
                    if n_lanes > 1:
                        worst[lane] = min(worst[lane], predicted)
                    else:
                        total += value
                        if predicted < THIRTY_DIGITS * lost or (
                            predicted < COVERED and reachable(n_states, n, step, j, states, transitions)
                        ):
                            scores[s, lane] = math.nan
                        lost = max(lost, LOST) if value < LOST and predicted > 0.0 else lost
            if len(increments):
                increments[n] = logarithm(total / before) + largest[n - begin, 0]
        rescale(variant, offsets[s + 1] - 1, s, states, scores, worst)
        for n in range(offsets[s], offsets[s + 1]):
            for lane in range(n_lanes):
                scores[s, lane] += largest[n - begin, lane]


@inner
def reachable(n_states: int, n: int, step: int, j: int, states: Floats, transitions: Floats) -> bool:
    """Whether some step leads to state `j`; if none does, its probability is truly zero, not an underflow."""
    possible = False
    for i in range(n_states):
        possible = possible or (states[n - 1, i, 0] > 0.0 and transitions[step, i, j, 0] > 0.0)
    return possible


@inner
def rescale(variant: Variant, n: int, s: int, states: Floats, scores: Floats, worst: Floats) -> None:
    """Divide α of an event by its sum, whose logarithm is added to the score of the sequence."""
    n_states, n_lanes = states_of(variant, states.shape[1]), lanes_of(variant)
    if not fits(n_states, n_lanes, states.shape[1:]) or scores.shape[1] != n_lanes:
        return
    for lane in range(n_lanes):
        total = 0.0
        for j in range(n_states):
            total += states[n, j, lane]
        if n_lanes > 1:
            worst[lane] = min(worst[lane], total)
        elif not total >= FAINT:
            scores[s, lane] = math.nan
        scores[s, lane] += logarithm(total)
        for j in range(n_states):
            states[n, j, lane] /= total


@inner
def backward(variant: Variant, first: int, last: int, walk: Walk, work: FitRoom, step_sums: Floats) -> None:
    """Replace α by γ (Eq. 10) times the sequence's weight, and add ξ (Eq. 13, corrected) to `step_sums`.

    Sequences whose score is NaN or −inf are left out.
    """
    offsets, weights, steps, transitions = walk.offsets, walk.weights, walk.steps, walk.transitions
    states, scores, inverse = work.states, work.scores, work.inverse
    n_states, n_lanes = states_of(variant, states.shape[1]), lanes_of(variant)
    if not (
        fits(n_states, n_lanes, states.shape[1:])
        and fits(n_states, n_lanes, transitions.shape[1:])
        and fits(n_states, n_lanes, step_sums.shape[1:])
        and fits(n_states, n_lanes, inverse.shape)
    ):
        return
    for s in range(first, last):
        if n_lanes == 1 and not scores[s, 0] > -math.inf:
            continue
        for j in range(n_states):
            for lane in range(n_lanes):
                states[offsets[s + 1] - 1, j, lane] *= weights[s]
        for n in range(offsets[s + 1] - 1, offsets[s], -1):
            step = steps[n]
            for lane in range(n_lanes):
                # These quotients do not depend on later events; γ then takes a product and a sum per step.
                for j in range(n_states):
                    predicted = 0.0
                    for i in range(n_states):
                        predicted += states[n - 1, i, lane] * transitions[step, i, j, lane]
                    inverse[j, lane] = 1.0 / predicted if predicted > 0.0 else 0.0
                for i in range(n_states):
                    posterior = 0.0
                    for j in range(n_states):
                        share = states[n - 1, i, lane] * transitions[step, i, j, lane] * inverse[j, lane]
                        joint = share * states[n, j, lane]
                        step_sums[step, i, j, lane] += joint
                        posterior += joint
                    states[n - 1, i, lane] = posterior
