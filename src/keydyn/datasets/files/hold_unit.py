"""The unit of hold times, which files of holds and latencies do not say."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import milliseconds

# The median hold of people who type is between these, in milliseconds.
SHORTEST, LONGEST = 20.0, 1000.0


def unit_of_holds(hold: Floats) -> str:
    """The unit in which keys are held as people hold them."""
    median = float(np.nanmedian(hold)) if np.isfinite(hold).any() else np.nan
    for unit in ("ms", "s", "us", "ns"):
        if SHORTEST <= float(milliseconds(np.array([median]), unit)[0]) <= LONGEST:
            return unit
    raise ReadingError(
        f"keys are held for {median:.3g} in the middle, which is not how people type in any unit",
        Remedy("give {} if that is right", {"unit": "ms"}),
    )
