"""Times that no hand makes, which models of people take as missing.

A keyboard senses and reports its keys a hundred times per second or so (over USB, every 8 ms is usual), and a
finger needs several times as long to press a key and let it go. A shorter hold, or a shorter interval between
two presses, is a time of the keyboard, the operating system or the network. A key that is held for seconds
is stuck, leant on, or its release was lost; after a minute the hands were elsewhere. A key that is pressed
again before it was released repeats by itself.

Only a model of people loses these times. A keystroke stays where it is, with its other time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.samples import Samples

# Milliseconds. A time is possible from the shortest to the longest.
SHORTEST = 10.0
LONGEST_HOLD = 2_000.0
LONGEST_INTERVAL = 60_000.0


def out_of_reach(intervals: Floats, holds: Floats) -> tuple[Truths, Truths]:
    """Which intervals and holds are shorter or longer than hands can make them; missing ones are not."""
    return (
        (intervals < SHORTEST) | (intervals > LONGEST_INTERVAL),
        (holds < SHORTEST) | (holds > LONGEST_HOLD),
    )


def impossible(intervals: Floats, holds: Floats, keys: Integers, starts: Integers) -> tuple[Truths, Truths]:
    """Which intervals and holds no hand makes, (N,) each, given keys' codes and where samples start.

    A sample's first interval, whatever stands in for it, is not judged. Keys without a type have the code −1.
    """
    wrong_intervals, wrong_holds = out_of_reach(intervals, holds)
    again = np.zeros(len(keys), dtype=bool)
    # A key that is down cannot be pressed; a release that was not seen is taken to come later.
    again[1:] = (keys[1:] == keys[:-1]) & (keys[1:] >= 0) & ~(holds[:-1] <= intervals[1:])
    again[starts] = False
    # Neither the press that was held, nor the repetition, nor the interval after it has a hand's times.
    wrong_holds |= again
    wrong_holds[:-1] |= again[1:]
    wrong_intervals |= again
    wrong_intervals[1:] |= again[:-1]
    wrong_intervals[starts] = False
    return wrong_intervals, wrong_holds


def without_impossible(samples: Samples) -> Samples:
    """The samples with impossible times missing; as they are if there are none.

    Examples
    --------
    >>> from keydyn.keystrokes import one_sample, without_impossible
    >>> sample = one_sample(["a", "caps_lock", "b"], [0.0, 140.0, 250.0], [80.0, 140.5, 330.0])
    >>> without_impossible(sample).sequences.X[:, 0].tolist()
    [80.0, nan, 80.0]
    """
    sequences = samples.sequences
    names = sequences.feature_names or ()
    if "tau" not in names or "duration" not in names:
        return samples
    interval, hold = names.index("tau"), names.index("duration")
    first, X = sequences.offsets[:-1], sequences.X.copy()
    wrong_intervals, wrong_holds = impossible(X[:, interval], X[:, hold], sequences.codes, first)
    if not (wrong_intervals.any() or wrong_holds.any()):
        return samples
    # What stands in for a first interval is the median of the others, which may be 0.
    wrong_intervals[first] = X[first, interval] <= 0
    X[wrong_intervals, interval] = np.nan
    X[wrong_holds, hold] = np.nan
    return replace(samples, sequences=sequences.with_values(X))
