"""Warnings about a recording, to be read before its results: unit, copies, impossible times, cleaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.datasets.files.recordings import Recording
from keydyn.keystrokes.cleaning import meaning_of
from keydyn.keystrokes.quality import find_duplicates, impossible_in_words
from keydyn.keystrokes.reading_error import Finding, Remedy, Wording, as_arguments
from keydyn.keystrokes.schema import likelier_unit
from keydyn.keystrokes.timing import timing_features
from keydyn.keystrokes.typing_keys import not_typing

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
SHOWN = 3
# The least share of shortcuts and navigation keys that is reported; a few arrow keys occur in every text.
NOTICED = 0.02


@dataclass(frozen=True, eq=False)
class Notes:
    """Warnings about the quality of a recording."""

    # Findings that apply: signs of another unit, impossible times, copied samples, cleaning
    findings: tuple[Finding, ...]
    copies: pd.DataFrame  # as `find_duplicates` gives them
    # The number of keystrokes or samples that each cleaning rule applied to, if any
    cleaned: dict[str, int]
    impossible: pd.DataFrame  # impossible times due to the file's clock or order: user, reason, count

    def texts(self, wording: Wording = as_arguments) -> list[str]:
        """The findings as sentences."""
        return [finding.worded(wording) for finding in self.findings]

    def to_dict(self, wording: Wording = as_arguments) -> dict[str, Any]:
        """The notes as stored in run.json."""
        return {
            "texts": self.texts(wording),
            "copies": self.copies.astype(str).to_dict("records"),
            "cleaned": self.cleaned,
            "impossible": self.impossible.astype({"user": str}).to_dict("records"),
        }


def notes_of(recording: Recording, copies: bool = True, shortcuts: bool = True) -> Notes:
    """Examine a recording; `copies` and `shortcuts` say whether to look for these."""
    keystrokes = recording.keystrokes
    copied = find_duplicates(keystrokes if copies else keystrokes.head(1))
    report = recording.cleaning
    cleaned = {rule: n for rule, n in report.counts.items() if n} if report is not None else {}
    cannot_be = map(Finding, impossible_in_words(recording.impossible))
    found = [unlikely_unit(keystrokes, recording.unit), *cannot_be, _copies(copied)]
    if report is not None and cleaned:
        words = (f"{n} {meaning_of(rule, getattr(report.rules, rule))}" for rule, n in cleaned.items())
        found.append(Finding("; ".join(words)))
    found += [_no_typing(keystrokes)] if shortcuts else []
    kept = tuple(one for one in found if one is not None)
    return Notes(kept, copied, cleaned, recording.impossible)


def unlikely_unit(keystrokes: pd.DataFrame, unit: str) -> Finding | None:
    """A finding if the median interval suggests another unit than this one, else None."""
    intervals = timing_features(keystrokes, first="missing")["tau"].to_numpy()
    median = float(np.nanmedian(intervals)) if np.isfinite(intervals).any() else np.nan
    likelier = likelier_unit(median, unit)
    if likelier is None:
        return None
    return Finding(
        f"the median time between two presses is {median:.3g} ms, which is not how people type",
        (Remedy(f"if the file's times are in {UNIT_NAMES[likelier]}, give {{}}", {"unit": likelier}),),
    )


def _copies(copies: pd.DataFrame) -> Finding | None:
    n = len(copies)
    if n == 0:
        return None
    named = [
        f"user {row.user}, session {row.session} is the same as user {row.same_as_user}, session "
        f"{row.same_as_session}"
        for row in copies.head(SHOWN).itertuples(index=False)
    ]
    named += [f"and {n - SHOWN} more"] if n > SHOWN else []
    what = "session is a copy" if n == 1 else "sessions are copies"
    return Finding(
        f"{n} {what}, which makes recognition look better than it is: {'; '.join(named)}",
        (Remedy("{} leaves copies out", {"clean": True}),),
    )


def _no_typing(keystrokes: pd.DataFrame) -> Finding | None:
    shortcuts, navigation = not_typing(keystrokes)
    n = int((shortcuts | navigation).sum())
    if n < NOTICED * len(keystrokes):
        return None
    return Finding(
        f"{n:,d} of {len(keystrokes):,d} keystrokes are shortcuts or navigation keys, which are not typing",
        (Remedy("{} leaves them out", {"clean": True}),),
    )
