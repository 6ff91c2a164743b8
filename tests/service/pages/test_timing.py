"""Recorded times against the times of the recording typed; timing.py measures them in more ways."""

from __future__ import annotations

import numpy as np
import pytest

from tests.service.pages.recorded import PRECISION, quality_of, times_of
from tests.service.typists import keystrokes_of

# A busy machine hands keys to the browser late now and then; so many recordings are never late all.
TRIES = 10


def test_times_are_as_true_as_the_clock_of_the_browser(page, keyboard):
    for session in range(TRIES):
        rows = keystrokes_of(0, session)
        keyboard.type(rows)
        typed = np.array([[row["timepress"], row["timerelease"]] for row in rows])
        errors = np.abs(np.array(times_of(page)) - (typed - typed[0, 0]))
        assert quality_of(page)["clock_tick_ms"] == pytest.approx(0.1)
        page.evaluate("recorder.clear()")
        # What the recorder itself did wrong would be wrong in each of them.
        if errors.max() < PRECISION:
            return
    raise AssertionError(f"times are off by {errors.max()} ms")
