"""Samples with the keys of others and times that were made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keydyn.arrays import Floats
from keydyn.keystrokes.samples import Samples
from keydyn.population.features import HOLD, INTERVAL

# No time that is made up is shorter, milliseconds.
SHORTEST = 1.0


def made_up(texts: Samples, times: Floats, rounded: bool = True) -> Samples:
    """The keys of samples with other times, (N, 2) interval and hold in milliseconds; other features stay.

    Times are whole milliseconds if they are rounded, and at least 1. A sample's first interval is missing.
    """
    sequences = texts.sequences
    names = sequences.feature_names or ()
    times = np.maximum(np.round(times) if rounded else times, SHORTEST)
    times[sequences.offsets[:-1], 0] = np.nan
    X = np.array(sequences.X)
    X[:, [names.index(INTERVAL), names.index(HOLD)]] = times
    return replace(texts, sequences=sequences.with_values(X), feature_table=None)
