"""The level at which the claimed person is locked out a stated number of times per hour of typing."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.evaluation.continuous.rejection import rejection_times

MS_PER_HOUR = 3.6e6


def locked_at(levels: Floats, offsets: Integers, limits: Floats) -> Integers:
    """(n,) the first key, from 0, whose level (N,) is above the session's limit (n,); its length if none is.

    A session that is locked is over: the person has to sign in again.
    """
    return rejection_times(levels[:, None], offsets, limits[:, None])[:, 0]


def watched_hours(hours: Floats, offsets: Integers, at: Integers) -> Floats:
    """(n,) hours of typing up to the lock-out, or to the end; `hours` (N,) are since the session's start."""
    ends = np.minimum(offsets[:-1] + at, offsets[1:] - 1)
    watched: Floats = hours[ends]
    return watched


def lockout_level(
    levels: Floats, offsets: Integers, hours: Floats, sessions: Truths, per_hour: float
) -> float:
    """The lowest level that locks these sessions (n,) at most `per_hour` times per hour of typing.

    The rate is that of all of them together: lock-outs by the hours watched until then.
    """
    if not per_hour > 0.0:
        raise ValueError(f"per_hour must be above 0, not {per_hour}")
    if not sessions.any():
        raise ValueError("there are no sessions to find a level for")
    highest = np.unique(np.maximum.reduceat(levels, offsets[:-1])[sessions])

    def too_many(limit: float) -> bool:
        at = locked_at(levels, offsets, np.full(len(sessions), limit))
        locked = at < np.diff(offsets)
        return bool(locked[sessions].sum() > per_hour * watched_hours(hours, offsets, at)[sessions].sum())

    # The higher the level, the fewer lock-outs: with the highest there are none.
    low, high = 0, len(highest) - 1
    while low < high:
        middle = (low + high) // 2
        if too_many(float(highest[middle])):
            low = middle + 1
        else:
            high = middle
    return float(highest[low])
