"""What to know about a recording before its figures are believed: its unit, copies, what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.datasets.files.recordings import Recording
from keydyn.keystrokes.cleaning import MEANINGS
from keydyn.keystrokes.duplicates import find_duplicates
from keydyn.keystrokes.timing import timing_features
from keydyn.keystrokes.units import likelier_unit

NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Notes:
    """What was noticed.

    Attributes
    ----------
    unit : what speaks for another unit, if something does; copies : as `find_duplicates` gives them
    cleaned : how many keystrokes or samples each cleaning rule applied to, where it applied to any
    """

    unit: str
    copies: pd.DataFrame
    cleaned: dict[str, int]

    def copies_text(self) -> str:
        """The copies in words; empty if there are none."""
        n = len(self.copies)
        if n == 0:
            return ""
        named = [
            f"user {row.user}, session {row.session} is the same as user {row.same_as_user}, session "
            f"{row.same_as_session}"
            for row in self.copies.head(SHOWN).itertuples(index=False)
        ]
        more = f"; and {n - SHOWN} more" if n > SHOWN else ""
        what = "session is a copy" if n == 1 else "sessions are copies"
        return f"{n} {what}, which makes recognition look better than it is: {'; '.join(named)}{more}"

    def texts(self) -> list[str]:
        """All of it in words, a text for each thing."""
        cleaned = "; ".join(f"{n} {MEANINGS[rule]}" for rule, n in self.cleaned.items())
        return [text for text in (self.unit, self.copies_text(), cleaned) if text]

    def to_dict(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "texts": self.texts(),
            "copies": self.copies.astype(str).to_dict("records"),
            "cleaned": self.cleaned,
        }


def notes_of(recording: Recording, copies: bool = True) -> Notes:
    """What to know about a recording; without `copies` these are not looked for."""
    keystrokes = recording.keystrokes
    found = find_duplicates(keystrokes if copies else keystrokes.head(1))
    counts = recording.cleaning.counts if recording.cleaning is not None else {}
    return Notes(unit_text(keystrokes, recording.unit), found, {rule: n for rule, n in counts.items() if n})


def unit_text(keystrokes: pd.DataFrame, unit: str) -> str:
    """What speaks for another unit than this one; empty if nothing does."""
    intervals = timing_features(keystrokes, first="missing")["tau"].to_numpy()
    median = float(np.nanmedian(intervals)) if np.isfinite(intervals).any() else np.nan
    likelier = likelier_unit(median, unit)
    if likelier is None:
        return ""
    return (
        f"the median time between two presses is {median:.3g} ms, which is not how people type; if the "
        f"file's times are in {NAMES[likelier]}, give `unit={likelier!r}`"
    )
