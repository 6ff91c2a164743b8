"""Times that are too regular: nobody presses keys at equal intervals, or holds all of them equally long."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.liveness.sample_times import tick_of, times_of
from keydyn.keystrokes.samples import Samples

NAMES = ("intervals between keys", "times for which keys are held")
# With fewer times anything may look regular.
FEWEST = 8
# The least standard deviation of logarithms, of intervals and of holds, is this times √n, up to the most:
# different keys differ, so that it takes many of them to see how regular somebody is. The most regular sample
# of every other user of the paper's five datasets has 1.2 times as much; none of the others' falls below.
LEAST, MOST = (0.019, 0.012), (0.19, 0.09)


def spreads(samples: Samples) -> Floats:
    """(n, 2) the spread of a sample's intervals and of its holds, in units of the least that people show.

    Below 1 they are too regular. It is the standard deviation of logarithms, with what a coarse clock may
    have hidden of it added. NaN with fewer than eight times.
    """
    times, offsets = times_of(samples), samples.sequences.offsets
    found = np.full((len(samples), 2), np.nan)
    for s in range(len(samples)):
        rows = times[offsets[s] : offsets[s + 1]]
        tick = tick_of(rows)
        for f in range(2):
            known = np.maximum(rows[np.isfinite(rows[:, f]), f], 1.0)
            if len(known) >= FEWEST:
                hidden = (tick / known.mean()) ** 2 / 6
                least = min(LEAST[f] * np.sqrt(len(known)), MOST[f])
                found[s, f] = np.sqrt(np.log(known).var(ddof=1) + hidden) / least
    return found


def regularity_reason(spread: Floats) -> str | None:
    """Why a sample is not believed, given its two spreads, in words; None if it is not too regular."""
    names = [name for name, value in zip(NAMES, spread, strict=True) if value < 1.0]
    return f"too regular: the {' and the '.join(names)} vary less than anybody's" if names else None
