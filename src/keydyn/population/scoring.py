"""ln P of samples under templates, event by event, the tempo tracked as it goes. Compiled.

A sample's score is the sum of its events' terms. An event's term is known when the next key is, whose name
the cell of its hold needs.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.population.person import CLIP
from keydyn.population.states import bell

# How much of a sample's tempo is forgotten with each event.
FORGET = 0.02
# Densities of all features of an event are multiplied: a smaller product counts as this.
LEAST_DENSITY = 1e-300

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
) -> None:
    """Fill out with what is asked: (n, U) of samples, (N, U) of events, or (N, F) of one template's features.

    `mean`, (U, C), and `slopes`, (U, F, 3), are the templates'; `per_scale` and `per_gain` are one divided by
    their scales and gains, because dividing takes long.
    """
    U, F, S = len(mean), y.shape[1], len(start)
    kept = (1.0 - FORGET) ** 2
    r = np.zeros((3, F))
    d, unsure = np.empty(F), np.empty(F)
    alpha, likely = np.empty(S), np.empty(S)
    e = np.empty(F)
    for q in range(len(offsets) - 1):
        for u in range(U):
            total = 0.0
            r[:] = 0.0
            for f in range(F):
                d[f], unsure[f] = 0.0, tempo[f]
            for n in range(offsets[q], offsets[q + 1]):
                for s in range(S):
                    if n == offsets[q]:
                        likely[s] = start[s]
                    else:
                        likely[s] = 0.0
                        for i in range(S):
                            likely[s] += alpha[i] * transitions[classes[n - 1], classes[n], i, s]
                for f in range(F):
                    r[2, f] = r[1, f]
                    r[1, f] = r[0, f]
                    r[0, f] = 0.0
                factor = 1.0
                so_far = 0.0
                for f in range(F):
                    value = y[n, f]
                    if np.isnan(value):
                        e[f] = np.nan
                        if what == PER_FEATURE:
                            out[n, f] = 0.0
                        elif what == RESIDUALS:
                            out[n, f] = np.nan
                        continue
                    c = cell[n, f]
                    residual = (value - mean[u, c]) * per_scale[u, c]
                    r[0, f] = residual
                    for j in range(3):
                        of = parents[f, j, 0]
                        if of >= 0:
                            x = min(max(r[parents[f, j, 1], of], -CLIP), CLIP)
                            residual -= slopes[u, f, j] * x
                    e[f] = residual * per_gain[u, f]
                    factor *= per_scale[u, c] * per_gain[u, f]
                    for s in range(S):
                        gap = e[f] - d[f] - location[s, f]
                        spread = width[s, f] * width[s, f] + unsure[f]
                        likely[s] *= constant[s] * bell(gap * gap, spread, degrees[s])
                    if what == PER_FEATURE:
                        now = 0.0
                        for s in range(S):
                            now += likely[s]
                        now = math.log(max(now * factor, LEAST_DENSITY))
                        out[n, f] = now - so_far
                        so_far = now
                    elif what == RESIDUALS:
                        out[n, f] = e[f] - d[f]
                density = 0.0
                for s in range(S):
                    density += likely[s]
                if density > 0.0:
                    for s in range(S):
                        alpha[s] = likely[s] / density
                else:
                    for s in range(S):
                        alpha[s] = start[s]
                term = math.log(max(density * factor, LEAST_DENSITY))
                total += term
                if what == PER_EVENT:
                    out[n, u] = term
                for f in range(F):
                    if not np.isnan(e[f]):
                        weight, product = 0.0, 0.0
                        for s in range(S):
                            gap = e[f] - d[f] - location[s, f]
                            square = width[s, f] * width[s, f]
                            nu = degrees[s]
                            part = alpha[s] * (nu + 1.0) / (nu * square + gap * gap)
                            weight += part
                            product += part * gap
                        unsure[f] /= 1.0 + unsure[f] * weight
                        d[f] += unsure[f] * product
                    d[f] *= 1.0 - FORGET
                    unsure[f] = kept * unsure[f] + (1.0 - kept) * tempo[f]
            if what == PER_SAMPLE:
                out[q, u] = total
