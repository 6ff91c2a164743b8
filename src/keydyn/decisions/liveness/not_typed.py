"""The times of a sample, and signs that no person typed them."""

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

# Ticks that are coarse compared with typing: a hundredth of a second, the timer interrupt, a screen refresh.
TICKS = (10.0, SYSTEM_TICK, 1000 / 60)
# The least share of times on multiples of a tick. By chance a fifth are within 1 ms of a multiple of 10 ms.
ON_TICK = 0.8
# Equal times fit any grid, so a clock must show at least this many different ones.
DIFFERENT = 4
# A sample with more evidence is called a copy. If people were as regular as assumed here, fewer than one in a
# thousand fresh samples would have so much.
COPY_LIMIT = math.log(1000.0)
# No person types with a median interval below this, in milliseconds.
FASTEST = 10.0
# A clock with a tick at least this long, in milliseconds, hides much of a rhythm.
COARSE = 10.0
# With a smaller share of known keys, much of a sample provides no evidence.
LEAST_KNOWN_SHARE = 0.75

TIMES = ("intervals between keys", "times for which keys are held")
# With fewer times, any sample may look regular.
FEWEST_TIMES = 8
# The least standard deviation of the logarithms of n intervals or holds is this times √n, up to the largest.
# Different keys differ, so that it takes many of them to see how regular a person is. The values are from
# every other user of the paper's five datasets, whose most regular sample has 1.2 times as much; no sample of
# the remaining users falls below.
LEAST_SPREAD, MOST_SPREAD = (0.019, 0.012), (0.19, 0.09)


class SampleTimes(NamedTuple):
    """A sample's times, and the signs in them that tell whether they were typed by hand.

    `times` are intervals and holds, (N, 2), and `tick` is that of the clock, 0 if it is fine; both in
    milliseconds. `spread` is the variation of intervals and of holds, in units of the least that people show,
    and `pasted` is whether half of the keys came too fast to have been typed.
    """

    times: Floats
    tick: float
    spread: tuple[float, float]
    pasted: bool

    @classmethod
    def of(cls, sample: Samples) -> SampleTimes:
        """The times of a single sample, cached in it."""
        if "times" not in sample.kept:
            sample.kept["times"] = cls.among(times_of(sample))
        found: SampleTimes = sample.kept["times"]
        return found

    @classmethod
    def among(cls, times: Floats) -> SampleTimes:
        """Compute the signs in times (N, 2)."""
        signs = np.empty(4)
        fill_signs(plain(times), np.empty(DIFFERENT), signs)
        tick, intervals, holds, pasted = signs.tolist()
        return cls(times, tick, (intervals, holds), pasted > 0.0)


def times_of(samples: Samples) -> Floats:
    """(N, 2) interval and hold of each keystroke in milliseconds; a sample's first interval is NaN."""
    sequences = samples.sequences
    names = sequences.feature_names or ()
    absent = [name for name in (INTERVAL, HOLD) if name not in names]
    if absent:
        raise ValueError(f"the samples have no feature {absent[0]!r}")
    times = sequences.X.take((names.index(INTERVAL), names.index(HOLD)), axis=1)
    times[sequences.offsets[:-1], 0] = np.nan
    return times


@without_counting
def fill_signs(times: Floats, room: Floats, signs: Floats) -> None:
    """Fill in the tick of times (N, 2), the spreads of intervals and holds, and whether keys were pasted."""
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
    """The coarse tick on which most times fall; 0 if there is none, or if too few times are different."""
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
    """Whether the median interval is too short; a missing interval counts as 0, since keys did come."""
    n, below, shorter, longer = len(times) - 1, 0, 0.0, np.inf
    for k in range(1, len(times)):
        x = 0.0 if np.isnan(times[k, 0]) else times[k, 0]
        if x < FASTEST:
            below, shorter = below + 1, max(shorter, x)
        else:
            longer = min(longer, x)
    return n > 1 and (2 * below > n or (2 * below == n and shorter + longer < 2.0 * FASTEST))


def copy_reason(evidence: float) -> str | None:
    """The reason to reject a sample as a copy, given the evidence; None if it is no copy."""
    if evidence <= COPY_LIMIT:
        return None
    return "a copy: the times repeat those of an earlier sample more closely than anybody types"


def not_typed(sample: Samples, copied: float) -> list[str]:
    """Reasons why one sample cannot have been typed; `copied` is the evidence for a copy."""
    copy = copy_reason(copied)
    return [*([] if copy is None else [copy]), *times_reasons(SampleTimes.of(sample))]


def times_reasons(times: SampleTimes) -> list[str]:
    """Reasons why these times cannot have been typed."""
    regular = regularity_reason(times.spread)
    reasons = [] if regular is None else [regular]
    if times.pasted:
        reasons.append("pasted: keys came faster than anybody types")
    return reasons


def remarks(sample: Samples, counts: Evidence) -> list[str]:
    """Remarks on flaws that weaken the evidence of one sample without deciding the answer."""
    found = []
    tick = SampleTimes.of(sample).tick
    if tick >= COARSE:
        found.append(f"a coarse clock: times fall on multiples of {tick:.3g} ms")
    unknown = counts.keystrokes - counts.known
    if unknown > (1.0 - LEAST_KNOWN_SHARE) * counts.keystrokes:
        found.append(f"{unknown} of {counts.keystrokes} keystrokes are of keys never seen")
    return found


def spreads(samples: Samples) -> Floats:
    """(n, 2) spread of each sample's intervals and holds, in units of the least that people show.

    Below 1, times are too regular. The spread is the standard deviation of logarithms, plus what a coarse
    clock may have hidden of it. It is NaN with fewer than eight times.
    """
    times = np.split(times_of(samples), samples.sequences.offsets[1:-1])
    return np.array([SampleTimes.among(rows).spread for rows in times]).reshape(-1, 2)


def regularity_reason(spread: Iterable[float]) -> str | None:
    """The reason to reject a sample with these two spreads as too regular; None if it is not."""
    names = [name for name, value in zip(TIMES, spread, strict=True) if value < 1.0]
    return f"too regular: the {' and the '.join(names)} vary less than anybody's" if names else None
