"""What makes a sample doubtful, whoever typed it."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.evidence import Evidence
from keydyn.decisions.liveness.copies import copy_reason
from keydyn.decisions.liveness.regularity import regularity_reason, spreads
from keydyn.decisions.liveness.sample_times import tick_of, times_of
from keydyn.keystrokes.samples import Samples

# Nobody presses keys faster than this, milliseconds, for long: half of the intervals below it were not typed.
FASTEST = 10.0
# A clock that ticks less often hides much of a rhythm, milliseconds.
COARSE = 10.0
# With a smaller share of its keys known, much of a sample says nothing.
LEAST_KNOWN_SHARE = 0.75


def was_pasted(sample: Samples) -> bool:
    """Whether one sample's keys came too fast to have been typed."""
    intervals = _intervals(sample)
    return len(intervals) > 1 and float(np.median(intervals)) < FASTEST


def not_typed(sample: Samples, copied: float) -> list[str]:
    """Why nobody can have typed one sample, in words; `copied` is the evidence that it is a copy."""
    reasons = [copy_reason(copied), regularity_reason(spreads(sample)[0])]
    if was_pasted(sample):
        reasons.append("pasted: keys came faster than anybody types")
    return [reason for reason in reasons if reason is not None]


def remarks(sample: Samples, counts: Evidence) -> list[str]:
    """What weakens the evidence of one sample, in words, without deciding the answer."""
    found = []
    tick = tick_of(times_of(sample))
    if tick >= COARSE:
        found.append(f"a coarse clock: times fall on multiples of {tick:.3g} ms")
    unknown = counts.keystrokes - counts.known
    if unknown > (1.0 - LEAST_KNOWN_SHARE) * counts.keystrokes:
        found.append(f"{unknown} of {counts.keystrokes} keystrokes are of keys never seen")
    return found


def _intervals(sample: Samples) -> Floats:
    intervals = times_of(sample)[1:, 0]
    return intervals[np.isfinite(intervals)]
