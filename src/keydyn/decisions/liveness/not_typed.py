"""Signs that a sample was not typed by a person, and remarks on samples that are hard to judge."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.evidence import Evidence
from keydyn.decisions.liveness.copies import copy_reason
from keydyn.decisions.liveness.sample_times import SampleTimes, tick_of, times_of
from keydyn.keystrokes.samples import Samples

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


def not_typed(sample: Samples, copied: float) -> list[str]:
    """Reasons, in words, why one sample cannot have been typed; `copied` is the evidence for a copy."""
    times = SampleTimes.of(sample)
    reasons = [copy_reason(copied), regularity_reason(_spread(times))]
    if was_pasted(times):
        reasons.append("pasted: keys came faster than anybody types")
    return [reason for reason in reasons if reason is not None]


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
    intervals = times.times[1:, 0]
    intervals = intervals[np.isfinite(intervals)]
    return len(intervals) > 1 and float(np.median(intervals)) < FASTEST


def spreads(samples: Samples) -> Floats:
    """(n, 2) the spread of each sample's intervals and of its holds, in units of the least that people show.

    Below 1 they are too regular. It is the standard deviation of logarithms, with what a coarse clock may
    have hidden of it added. NaN with fewer than eight times.
    """
    times = np.split(times_of(samples), samples.sequences.offsets[1:-1])
    return np.array([_spread(SampleTimes(rows, tick_of(rows))) for rows in times]).reshape(-1, 2)


def _spread(sample: SampleTimes) -> Floats:
    found = np.full(2, np.nan)
    for f, column in enumerate(sample.times.T):
        known = np.maximum(column[np.isfinite(column)], 1.0)
        if len(known) >= FEWEST_TIMES:
            hidden = (sample.tick / known.mean()) ** 2 / 6
            least = min(LEAST_SPREAD[f] * np.sqrt(len(known)), MOST_SPREAD[f])
            found[f] = np.sqrt(np.log(known).var(ddof=1) + hidden) / least
    return found


def regularity_reason(spread: Floats) -> str | None:
    """Why a sample with these two spreads is not believed, in words; None if it is not too regular."""
    names = [name for name, value in zip(TIMES, spread, strict=True) if value < 1.0]
    return f"too regular: the {' and the '.join(names)} vary less than anybody's" if names else None
