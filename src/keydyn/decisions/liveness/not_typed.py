"""The times of a sample, and signs that a person did not type them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, plain, within, without_counting
from keydyn.decisions.decision import Evidence
from keydyn.keystrokes.clock import NEAR, SYSTEM_TICK
from keydyn.keystrokes.samples import Samples
from keydyn.population.features import HOLD, INTERVAL

# Clocks that are coarse beside typing: a hundredth of a second, the timer interrupt, a screen's refresh.
TICKS = (10.0, SYSTEM_TICK, 1000 / 60)
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
    """A sample's times, and what shows in them whether hands made them.

    `times` are intervals and holds, (N, 2), and `tick` is that of the clock, 0 if it is fine; milliseconds.
    `spread` is how much intervals and holds vary, in units of the least that people show, and `pasted` says
    whether half of the keys came too fast to have been typed.
    """

    times: Floats
    tick: float
    spread: tuple[float, float]
    pasted: bool

    @classmethod
    def of(cls, sample: Samples) -> SampleTimes:
        """Those of a single sample, which keeps them for the next question."""
        if "times" not in sample.kept:
            sample.kept["times"] = cls.among(times_of(sample))
        found: SampleTimes = sample.kept["times"]
        return found

    @classmethod
    def among(cls, times: Floats) -> SampleTimes:
        """What shows in these times."""
        signs = np.empty(4)
        fill_signs(plain(times), np.empty(DIFFERENT), signs)
        tick, intervals, holds, pasted = signs.tolist()
        return cls(times, tick, (intervals, holds), pasted > 0.0)


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


@without_counting
def fill_signs(times: Floats, room: Floats, signs: Floats) -> None:
    """Of times, (N, 2), the tick, the spreads of intervals and of holds, and whether keys were pasted."""
    signs[0] = tick = _tick(times, room)
    for f in range(2):
        n, total, mean, squares = 0, 0.0, 0.0, 0.0
        for k in range(len(times)):
            if not np.isnan(times[k, f]):
                x = max(times[k, f], 1.0)
                n, total, mean = n + 1, total + x, mean + math.log(x)
        for k in range(len(times)):
            if not np.isnan(times[k, f]):
                squares += (math.log(max(times[k, f], 1.0)) - mean / n) ** 2
        signs[1 + f] = np.nan
        if n >= FEWEST_TIMES:
            hidden = (tick * n / total) ** 2 / 6
            least = min(LEAST_SPREAD[f] * math.sqrt(n), MOST_SPREAD[f])
            signs[1 + f] = math.sqrt(squares / (n - 1) + hidden) / least
    signs[3] = 1.0 if _pasted(times) else 0.0


@within
def _tick(times: Floats, different: Floats) -> float:
    """The coarse tick that most times fall on, 0 if there is none; a clock shows several different times."""
    known, most, found = 0, 0, 0.0
    for k in range(len(times)):
        for f in range(2):
            known += not np.isnan(times[k, f])
    for tick in TICKS:
        on, n = 0, 0
        for k in range(len(times)):
            for f in range(2):
                if not np.isnan(times[k, f]):
                    multiple = round(times[k, f] / tick)
                    away = abs(times[k, f] - tick * multiple)
                    # Near zero only zero itself is a multiple: no interval is shorter than the tick.
                    on += away <= NEAR and (multiple != 0 or away == 0.0)
                    here = n == len(different)
                    for one in different[:n]:
                        here = here or one == multiple
                    if not here:
                        different[n], n = multiple, n + 1
        if on > 0 and on >= most:
            most, found = on, tick if on >= ON_TICK * known and n == len(different) else 0.0
    return found


@within
def _pasted(times: Floats) -> bool:
    """Whether the median interval is too short; one that is missing counts as none, since keys came."""
    n, below, shorter, longer = len(times) - 1, 0, 0.0, np.inf
    for k in range(1, len(times)):
        x = 0.0 if np.isnan(times[k, 0]) else times[k, 0]
        if x < FASTEST:
            below, shorter = below + 1, max(shorter, x)
        else:
            longer = min(longer, x)
    return n > 1 and (2 * below > n or (2 * below == n and shorter + longer < 2.0 * FASTEST))


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
    regular = regularity_reason(times.spread)
    reasons = [] if regular is None else [regular]
    if times.pasted:
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


def spreads(samples: Samples) -> Floats:
    """(n, 2) the spread of each sample's intervals and of its holds, in units of the least that people show.

    Below 1 they are too regular. It is the standard deviation of logarithms, with what a coarse clock may
    have hidden of it added. NaN with fewer than eight times.
    """
    times = np.split(times_of(samples), samples.sequences.offsets[1:-1])
    return np.array([SampleTimes.among(rows).spread for rows in times]).reshape(-1, 2)


def regularity_reason(spread: Iterable[float]) -> str | None:
    """Why a sample with these two spreads is not believed, in words; None if it is not too regular."""
    names = [name for name, value in zip(TIMES, spread, strict=True) if value < 1.0]
    return f"too regular: the {' and the '.join(names)} vary less than anybody's" if names else None
