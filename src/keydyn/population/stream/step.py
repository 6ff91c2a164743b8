"""One event after another of many sessions under their templates. Compiled."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.population.score.kernel import PER_EVENT, score

Four = tuple[Floats, ...]


@compiled
def advance(
    sessions: Integers,
    position: Integers,
    y: Floats,
    cell: Integers,
    class_before: Integers,
    class_now: Integers,
    claimed: Four,
    cohort: Four,
    tempo: Floats,
    parents: Integers,
    start: Floats,
    transitions: Floats,
    location: Floats,
    width: Floats,
    degrees: Integers,
    constant: Floats,
    left: Four,
    out: Floats,
    states: Floats,
) -> None:
    """Fill out, (B, U), with the terms of events, and bring `left` up to date.

    `states`, (B, S), are filled with the filtered probabilities of the hidden states at events, as claimed.
    `claimed` are the tables of templates with a row per session, `cohort` those that all sessions share, as
    `score` has them; `left` is its state, with a row per session. A position below 0 is no event.
    """
    F, U = y.shape[1], out.shape[1]
    # Only the templates' values in the cells of this event.
    mean, per_scale = np.empty((F, U)), np.empty((F, U))
    slopes, per_gain = np.empty((F, 3, U)), np.empty((F, U))
    for f in range(F):
        for u in range(1, U):
            per_gain[f, u] = cohort[3][f, u - 1]
            for j in range(3):
                slopes[f, j, u] = cohort[2][f, j, u - 1]
    # The event before is there for the class of its key alone.
    values, places = np.full((2, F), np.nan), np.empty((2, F), dtype=np.int64)
    classes, terms = np.empty(2, dtype=np.int64), np.empty((2, U))
    offsets = np.empty(2, dtype=np.int64)
    for b in range(len(sessions)):
        if position[b] < 0:
            continue
        s = sessions[b]
        # The first event of a sample is row 0; where the residuals of others are counts modulo 3.
        row = min(position[b], 1)
        begun = 3 + (position[b] - 1) % 3 if row == 1 else 0
        offsets[0], offsets[1] = row, row + 1
        classes[0], classes[row] = class_before[b], class_now[b]
        for f in range(F):
            c = cell[b, f]
            values[row, f], places[row, f] = y[b, f], f
            mean[f, 0], per_scale[f, 0] = claimed[0][s, c], claimed[1][s, c]
            per_gain[f, 0] = claimed[3][s, f]
            for j in range(3):
                slopes[f, j, 0] = claimed[2][s, f, j]
            for u in range(1, U):
                mean[f, u], per_scale[f, u] = cohort[0][c, u - 1], cohort[1][c, u - 1]
        score(
            PER_EVENT, values, places, offsets, classes, mean, per_scale, slopes, per_gain, tempo, parents,
            start, transitions, location, width, degrees, constant, terms, begun,
            (left[0][s], left[1][s], left[2][s], left[3][s]),
        )  # fmt: skip
        for u in range(U):
            out[b, u] = terms[row, u]
        for k in range(states.shape[1]):
            states[b, k] = left[3][s, k, 0]
