"""The times of samples as they were measured, and the tick of the clock that measured them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats
from keydyn.keystrokes.clock import NEAR, SYSTEM_TICK, on_grid
from keydyn.keystrokes.samples import Samples
from keydyn.population.features import HOLD, INTERVAL

# Clocks that are coarse beside typing: the timer interrupt, a screen's refresh, a hundredth of a second.
TICKS = (SYSTEM_TICK, 1000 / 60, 10.0)
# By chance a fifth of all times are within 1 ms of a multiple of 10 ms.
ON_TICK = 0.8
# Equal times are on any grid; a clock shows at least this many different ones.
DIFFERENT = 4


class SampleTimes(NamedTuple):
    """One sample's intervals and holds, (N, 2), and the clock's tick, 0 if it is fine; milliseconds."""

    times: Floats
    tick: float

    @classmethod
    def of(cls, sample: Samples) -> SampleTimes:
        """Those of a single sample, which keeps them for the next question."""
        if "times" not in sample.kept:
            times = times_of(sample)
            sample.kept["times"] = cls(times, tick_of(times))
        found: SampleTimes = sample.kept["times"]
        return found


def times_of(samples: Samples) -> Floats:
    """(N, 2) interval and hold of each keystroke, milliseconds; a sample's first interval is NaN."""
    sequences = samples.sequences
    names = sequences.feature_names or ()
    absent = [name for name in (INTERVAL, HOLD) if name not in names]
    if absent:
        raise ValueError(f"the samples have no feature {absent[0]!r}")
    times = np.array(sequences.X[:, [names.index(INTERVAL), names.index(HOLD)]])
    times[sequences.offsets[:-1], 0] = np.nan
    return times


def tick_of(times: Floats) -> float:
    """The tick that most of a sample's times fall on, milliseconds; 0 if they fall on no coarse one."""
    known = times[np.isfinite(times)]
    if len(known) == 0:
        return 0.0
    shares = on_grid(known[:, None], np.array(TICKS), NEAR).mean(axis=0)
    share, tick = max(zip(shares.tolist(), TICKS, strict=True))
    if share < ON_TICK:
        return 0.0
    return tick if len(np.unique(np.round(known / tick))) >= DIFFERENT else 0.0
