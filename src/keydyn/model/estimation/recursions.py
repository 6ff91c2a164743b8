"""Forward and backward through all sequences, compiled, for any number of states.

α is not normalised at each step, only kept in range: γ and ξ are ratios in which its scale cancels, and a
logarithm is taken where a sequence ends or where α has become small. Backward there is no β: given the state
that follows, the state before it has the probabilities α[i] a[i, j] / Σ α[i] a[i, j], so that γ goes back
from the end without any density and without underflow of its own (docs/decisions/0024).

Forward says NaN where a probability that may matter could have been lost. `engine.kernels` then does
the sequence the careful way.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled

# α is scaled back to one when its sum is below SMALL, and too small to go on with below FAINT. A probability
# below LOST may have lost digits to underflow; thirty digits above it, at COVERED, nothing of that is seen.
SMALL = 1e-60
FAINT = 1e-200
LOST = 1e-300
COVERED = 1e-270


@compiled
def impossible_before(before: Floats, transmat: Floats, step: int, j: int) -> bool:
    """Whether a state that has no probability has none because no step leads to it, and not by underflow."""
    possible = 0.0
    for i in range(len(before)):
        if before[i] > 0.0:
            possible = max(possible, transmat[step, i, j])
    return possible == 0.0


@compiled
def forward(
    offsets: Integers,
    codes: Integers,
    steps: Integers,
    startprob: Floats,
    transmat: Floats,
    density: Floats,
    largest: Floats,
    states: Floats,
    scores: Floats,
) -> None:
    """α (Eqs. 3–4) of every event into `states`, ln P(x | Ω) of every sequence, or NaN, into `scores`.

    The scale of α changes where its sum was below SMALL.
    """
    n_states = density.shape[1]
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        log_scale, total, lost, n = 0.0, 1.0, False, first
        while n < last and total == total:
            rescale = 1.0
            if total < SMALL:
                log_scale += math.log(total)
                rescale = 1.0 / total
            log_scale += largest[n]
            total = 0.0
            for j in range(n_states):
                predicted = 0.0
                if n == first:
                    predicted = startprob[codes[first], j]
                else:
                    for i in range(n_states):
                        predicted += states[n - 1, i] * transmat[steps[n], i, j]
                    if predicted < COVERED and (
                        lost or not impossible_before(states[n - 1], transmat, steps[n], j)
                    ):
                        total = math.nan
                value = predicted * rescale * density[n, j]
                if value < LOST and predicted > 0.0:
                    lost = True
                states[n, j] = value
                total += value
            if not total >= FAINT:
                total = math.nan
            n += 1
        scores[s] = log_scale + math.log(total)


@compiled
def backward(
    offsets: Integers,
    weights: Floats,
    scores: Floats,
    steps: Integers,
    transmat: Floats,
    states: Floats,
    transitions: Floats,
) -> None:
    """γ times its sequence's weight in place of α, and ξ (Eq. 13, corrected) added to `transitions`.

    Sequences without a score are left out.
    """
    n_states = states.shape[1]
    ratio = np.empty(n_states)
    for s in range(len(scores)):
        if not scores[s] > -math.inf:
            continue
        first, last = offsets[s], offsets[s + 1]
        total = 0.0
        for j in range(n_states):
            total += states[last - 1, j]
        for j in range(n_states):
            states[last - 1, j] *= weights[s] / total
        for n in range(last - 1, first, -1):
            step = steps[n]
            for j in range(n_states):
                predicted = 0.0
                for i in range(n_states):
                    predicted += states[n - 1, i] * transmat[step, i, j]
                ratio[j] = states[n, j] / predicted if predicted > 0.0 else 0.0
            for i in range(n_states):
                posterior = 0.0
                for j in range(n_states):
                    joint = states[n - 1, i] * transmat[step, i, j] * ratio[j]
                    transitions[step, i, j] += joint
                    posterior += joint
                states[n - 1, i] = posterior
