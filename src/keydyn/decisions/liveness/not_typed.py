"""The times of a sample, and signs that a person did not type them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.decision import Evidence
from keydyn.keystrokes.clock import NEAR, SYSTEM_TICK, on_grid
from keydyn.keystrokes.samples import Samples
from keydyn.population.features import HOLD, INTERVAL

# Clocks that are coarse beside typing: the timer interrupt, a screen's refresh, a hundredth of a second.
TICKS = (SYSTEM_TICK, 1000 / 60, 10.0)
# By chance a fifth of all times are within 1 ms of a multiple of 10 ms.
ON_TICK = 0.8
# Equal times are on any grid; a clock shows at least this many different ones.
DIFFERENT = 4
# A sample with more evidence is called a copy. If people were as regular as assumed here, fewer than one
# fresh sample in a thousand would be.
COPY_LIMIT = math.log(1000.0)
# A median interval below this, milliseconds, is faster than any person types.
FASTEST = 10.0
# A clock that ticks less often than this, milliseconds, hides much of a rhythm.
COARSE = 10.0
# With a smaller share of known keys, much of a sample says nothing.
LEAST_KNOWN_SHARE = 0.75

TIMES = ("intervals between keys", "times for which keys are held")
# With fewer times, any sample may look regular.
FEWEST_TIMES = 8
# The least standard deviation of logarithms, of intervals and of holds, is this times √n, up to the most:
# different keys differ, so that it takes many of them to see how regular a person is. The most regular sample
# of every other user of the paper's five datasets has 1.2 times as much; none of the others' falls below.
LEAST_SPREAD, MOST_SPREAD = (0.019, 0.012), (0.19, 0.09)


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


def copy_reason(evidence: float) -> str | None:
    """Why a sample is not believed, in words; None if it is no copy."""
    if evidence <= COPY_LIMIT:
        return None
    return "a copy: the times repeat those of an earlier sample more closely than anybody types"


def not_typed(sample: Samples, copied: float) -> list[str]:
    """Reasons, in words, why one sample cannot have been typed; `copied` is the evidence for a copy."""
    copy = copy_reason(copied)
    return [*([] if copy is None else [copy]), *times_reasons(SampleTimes.of(sample))]


def times_reasons(times: SampleTimes) -> list[str]:
    """Reasons, in words, why these times cannot have been typed."""
    regular = regularity_reason(_spread(times))
    reasons = [] if regular is None else [regular]
    if was_pasted(times):
        reasons.append("pasted: keys came faster than anybody types")
    return reasons


def remarks(sample: Samples, counts: Evidence) -> list[str]:
    """What weakens the evidence of one sample, in words, without deciding the answer."""
    found = []
    tick = SampleTimes.of(sample).tick
    if tick >= COARSE:
        found.append(f"a coarse clock: times fall on multiples of {tick:.3g} ms")
    unknown = counts.keystrokes - counts.known
    if unknown > (1.0 - LEAST_KNOWN_SHARE) * counts.keystrokes:
        found.append(f"{unknown} of {counts.keystrokes} keystrokes are of keys never seen")
    return found


def was_pasted(times: SampleTimes) -> bool:
    """Whether one sample's keys came too fast to have been typed."""
    # A press always has a time, so an interval that is missing was not one of hands.
    intervals = np.sort(np.nan_to_num(times.times[1:, 0]))
    n = len(intervals)
    return n > 1 and bool(intervals[(n - 1) // 2] + intervals[n // 2] < 2.0 * FASTEST)


def spreads(samples: Samples) -> Floats:
    """(n, 2) the spread of each sample's intervals and of its holds, in units of the least that people show.

    Below 1 they are too regular. It is the standard deviation of logarithms, with what a coarse clock may
    have hidden of it added. NaN with fewer than eight times.
    """
    times = np.split(times_of(samples), samples.sequences.offsets[1:-1])
    return np.array([_spread(SampleTimes(rows, tick_of(rows))) for rows in times]).reshape(-1, 2)


def _spread(sample: SampleTimes) -> Floats:
    found = np.full(2, np.nan)
    for f in range(2):
        column = sample.times[:, f]
        known = np.maximum(column[np.isfinite(column)], 1.0)
        n = len(known)
        if n >= FEWEST_TIMES:
            logs = np.log(known)
            logs -= logs.sum() / n
            hidden = (sample.tick * n / float(known.sum())) ** 2 / 6
            least = min(LEAST_SPREAD[f] * math.sqrt(n), MOST_SPREAD[f])
            found[f] = math.sqrt(float(logs @ logs) / (n - 1) + hidden) / least
    return found


def regularity_reason(spread: Floats) -> str | None:
    """Why a sample with these two spreads is not believed, in words; None if it is not too regular."""
    names = [name for name, value in zip(TIMES, spread, strict=True) if value < 1.0]
    return f"too regular: the {' and the '.join(names)} vary less than anybody's" if names else None
