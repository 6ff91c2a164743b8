"""ln P of samples under templates, event by event, the tempo tracked as it goes. Compiled.

A sample's score is the sum of its events' terms. An event's term is known when the next key is, whose name
the cell of its hold needs. The innermost loops go over templates, which do not depend on each other, so that
the machine computes several at a time.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.population.person.fitting import CLIP

# How much of a sample's tempo is forgotten with each event.
FORGET = 0.02
# Densities of all features of an event are multiplied: a smaller product counts as this.
LEAST_DENSITY = 1e-300
# What is known of so many templates fits into the fastest memory.
TEMPLATES = 64

# Nothing came before, and what comes after does not matter.
NOTHING = (np.empty((0, 0, 0)), np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0)))

PER_SAMPLE, PER_EVENT = 0, 1
# Of one template: the terms of each feature, which add up to those of the events; or the residuals e.
PER_FEATURE, RESIDUALS = 2, 3


@compiled
def score(
    what: int,
    y: Floats,
    cell: Integers,
    offsets: Integers,
    classes: Integers,
    mean: Floats,
    per_scale: Floats,
    slopes: Floats,
    per_gain: Floats,
    tempo: Floats,
    parents: Integers,
    start: Floats,
    transitions: Floats,
    location: Floats,
    width: Floats,
    degrees: Integers,
    constant: Floats,
    out: Floats,
    begun: int,
    state: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Fill out with what is asked: (n, U) of samples, (N, U) of events, or (N, F) of one template's features.

    `mean`, (C, U), and `slopes`, (F, 3, U), are the templates'; `per_scale` and `per_gain`, (F, U), are one
    divided by their scales and gains, because dividing takes long. If `begun` events of the one sample came
    before, `state` is what they left: the last residuals, (3, F, U), the tempo and its variance, (F, U) each,
    and the hidden states, (S, U). It is brought up to date unless it is empty.
    """
    U, F, S = mean.shape[1], y.shape[1], len(start)
    kept = (1.0 - FORGET) ** 2
    # Of this event and the two before: event n is at n modulo 3.
    r = np.empty((3, F, TEMPLATES))
    e, d, unsure = np.empty((F, TEMPLATES)), np.empty((F, TEMPLATES)), np.empty((F, TEMPLATES))
    alpha, likely = np.empty((S, TEMPLATES)), np.empty((S, TEMPLATES))
    factor, density, total = np.empty(TEMPLATES), np.empty(TEMPLATES), np.empty(TEMPLATES)
    ratio, weight, product = np.empty(TEMPLATES), np.empty(TEMPLATES), np.empty(TEMPLATES)
    for q in range(len(offsets) - 1):
        for begin in range(0, U, TEMPLATES):
            m = min(TEMPLATES, U - begin)
            for u in range(m):
                total[u] = 0.0
                for f in range(F):
                    d[f, u] = state[1][f, begin + u] if begun > 0 else 0.0
                    unsure[f, u] = state[2][f, begin + u] if begun > 0 else tempo[f]
                    for k in range(3):
                        r[k, f, u] = state[0][k, f, begin + u] if begun > 0 else 0.0
                for s in range(S):
                    alpha[s, u] = state[3][s, begin + u] if begun > 0 else 0.0
            for n in range(offsets[q], offsets[q + 1]):
                first = n == offsets[q] and begun == 0
                for s in range(S):
                    for u in range(m):
                        likely[s, u] = start[s] if first else 0.0
                    if not first:
                        for i in range(S):
                            step = transitions[classes[n - 1], classes[n], i, s]
                            for u in range(m):
                                likely[s, u] += alpha[i, u] * step
                now = (begun + n) % 3
                for u in range(m):
                    factor[u], density[u] = 1.0, 0.0
                so_far = 0.0
                for f in range(F):
                    if np.isnan(y[n, f]):
                        for u in range(m):
                            r[now, f, u] = 0.0
                        if what == PER_FEATURE:
                            out[n, f] = 0.0
                        elif what == RESIDUALS:
                            out[n, f] = np.nan
                        continue
                    c = cell[n, f]
                    for u in range(m):
                        r[now, f, u] = (y[n, f] - mean[c, begin + u]) * per_scale[c, begin + u]
                        e[f, u] = r[now, f, u]
                    for j in range(3):
                        of, then = parents[f, j, 0], (begun + n + 3 - parents[f, j, 1]) % 3
                        if of >= 0:
                            for u in range(m):
                                e[f, u] -= slopes[f, j, begin + u] * min(max(r[then, of, u], -CLIP), CLIP)
                    for u in range(m):
                        e[f, u] *= per_gain[f, begin + u]
                        factor[u] *= per_scale[c, begin + u] * per_gain[f, begin + u]
                    for s in range(S):
                        # Student t with an even ν: (1 + z²/(ν v)) to the power −(ν + 1)/2, divided by √v.
                        for u in range(m):
                            gap = e[f, u] - d[f, u] - location[s, f]
                            spread = width[s, f] * width[s, f] + unsure[f, u]
                            per_root = 1.0 / math.sqrt(spread + gap * gap / degrees[s])
                            ratio[u] = spread * per_root * per_root
                            likely[s, u] *= constant[s] * per_root
                        for _ in range(degrees[s] // 2):
                            for u in range(m):
                                likely[s, u] *= ratio[u]
                    if what == PER_FEATURE:
                        now_dense = 0.0
                        for s in range(S):
                            now_dense += likely[s, 0]
                        term = math.log(max(now_dense * factor[0], LEAST_DENSITY))
                        out[n, f] = term - so_far
                        so_far = term
                    elif what == RESIDUALS:
                        out[n, f] = e[f, 0] - d[f, 0]
                for s in range(S):
                    for u in range(m):
                        density[u] += likely[s, u]
                for s in range(S):
                    for u in range(m):
                        alpha[s, u] = likely[s, u] / density[u] if density[u] > 0.0 else start[s]
                for u in range(m):
                    term = math.log(max(density[u] * factor[u], LEAST_DENSITY))
                    total[u] += term
                    if what == PER_EVENT:
                        out[n, begin + u] = term
                for f in range(F):
                    if not np.isnan(y[n, f]):
                        for u in range(m):
                            weight[u], product[u] = 0.0, 0.0
                        for s in range(S):
                            square, nu = degrees[s] * width[s, f] * width[s, f], degrees[s] + 1.0
                            for u in range(m):
                                gap = e[f, u] - d[f, u] - location[s, f]
                                part = alpha[s, u] * nu / (square + gap * gap)
                                weight[u] += part
                                product[u] += part * gap
                        for u in range(m):
                            unsure[f, u] /= 1.0 + unsure[f, u] * weight[u]
                            d[f, u] += unsure[f, u] * product[u]
                    for u in range(m):
                        d[f, u] *= 1.0 - FORGET
                        unsure[f, u] = kept * unsure[f, u] + (1.0 - kept) * tempo[f]
            if what == PER_SAMPLE:
                for u in range(m):
                    out[q, begin + u] = total[u]
            if state[0].size > 0:
                for u in range(m):
                    for f in range(F):
                        state[1][f, begin + u], state[2][f, begin + u] = d[f, u], unsure[f, u]
                        for k in range(3):
                            state[0][k, f, begin + u] = r[k, f, u]
                    for s in range(S):
                        state[3][s, begin + u] = alpha[s, u]
