"""Continuous verification: the rank penalty in a sliding window (Section 5.3)."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from keydyn.model.arrays import Floats, Integers

WINDOW = 25
# Scores closer than this are ties: what differs is rounding.
TIE = 1e-9


def ranks(event_scores: Floats) -> Floats:
    """The rank of every template at every event, (N, U): 0 is best, ties share their mean rank."""
    if np.isnan(event_scores).any():
        row = int(np.argwhere(np.isnan(event_scores))[0][0])
        raise ValueError(f"event {row} has a score that is NaN")
    return np.asarray(rankdata(-np.round(event_scores / TIE) * TIE, method="average", axis=1) - 1.0)


def rank_penalty(event_scores: Floats, offsets: Integers, window: int = WINDOW) -> Floats:
    """The sum of each template's ranks over the last `window` events of the same sample, (N, U)."""
    if window < 1:
        raise ValueError(f"window must be 1 or more, not {window}")
    running = np.vstack([np.zeros((1, event_scores.shape[1])), np.cumsum(ranks(event_scores), axis=0)])
    rows = np.arange(len(event_scores))
    begin = np.repeat(offsets[:-1], np.diff(offsets))
    penalty: Floats = running[rows + 1] - running[np.maximum(rows + 1 - window, begin)]
    return penalty


def first_above(penalty: Floats, threshold: float) -> int:
    """The first event whose penalty is above the threshold, or the number of events if there is none."""
    above = penalty > threshold
    return int(np.argmax(above)) if above.any() else len(penalty)
