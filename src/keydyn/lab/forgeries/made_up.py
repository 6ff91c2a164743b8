"""Samples that combine the keys of given samples with made-up times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keydyn.arrays import Floats
from keydyn.keystrokes.samples import Samples
from keydyn.population.features import HOLD, INTERVAL

# The shortest made-up time, in milliseconds.
SHORTEST = 1.0


def made_up(texts: Samples, times: Floats, rounded: bool = True) -> Samples:
    """Replace the times of samples by (N, 2) intervals and holds in milliseconds; other features stay.

    Times are at least 1, and whole milliseconds if `rounded`. A sample's first interval is missing.
    """
    sequences = texts.sequences
    names = sequences.feature_names or ()
    times = np.maximum(np.round(times) if rounded else times, SHORTEST)
    times[sequences.offsets[:-1], 0] = np.nan
    X = np.array(sequences.X)
    X[:, [names.index(INTERVAL), names.index(HOLD)]] = times
    return replace(texts, sequences=sequences.with_values(X), feature_table=None)
