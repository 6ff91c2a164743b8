"""Cleaning of keystrokes for studies by rules, each off by default, applied in a fixed order and counted.

Times are not changed. A keystroke is dropped, or its release is marked as missing, or its sample is divided.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Integers
from keydyn.keystrokes.quality import is_duplicate
from keydyn.keystrokes.schema import (
    check_keystrokes,
    name_parts,
    sample_lengths,
    sample_of_row,
    sample_starts,
)
from keydyn.keystrokes.typing_keys import not_typing
from keydyn.short_repr import short_repr


@dataclass(frozen=True)
class CleaningRules:
    """The rules of cleaning, applied in the order listed here; None and False are off.

    Attributes
    ----------
    duplicate_samples : drop samples that are copies of an earlier one
    negative_holds : drop keystrokes whose release is before their press
    shortcuts : drop shortcuts (keys pressed with Ctrl, Alt or Meta) and navigation and function keys, which
        are not typing
    equal_presses : drop keystrokes pressed at the same time as the previous one in the sample
    zero_durations : mark the release as missing if it has the time of the press: the hold was shorter than
        the clock can resolve
    long_holds : mark the release as missing if the key was held for more than this many milliseconds
    pauses : divide samples at intervals longer than this many milliseconds; the first part keeps the session,
        the others get the user's next free ones
    keys : divide samples into parts of this many keystrokes, and drop the rest; shorter samples stay
    longest : keep only this many keystrokes, the first ones, of each sample
    shortest : drop samples with fewer keystrokes than this

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import CleaningRules, clean
    >>> rules = CleaningRules(pauses=2000.0, shortest=5)
    >>> keystrokes, report = clean(make_typists(2, 4), rules)
    >>> int(keystrokes.groupby(["user", "session"]).size().min()) >= 5
    True
    """

    duplicate_samples: bool = False
    negative_holds: bool = False
    shortcuts: bool = False
    equal_presses: bool = False
    zero_durations: bool = False
    long_holds: float | None = None
    pauses: float | None = None
    keys: int | None = None
    longest: int | None = None
    shortest: int | None = None

    def __post_init__(self) -> None:
        for name in ("duplicate_samples", "negative_holds", "shortcuts", "equal_presses", "zero_durations"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")
        for name in ("long_holds", "pauses"):
            limit = getattr(self, name)
            number = isinstance(limit, (int, float, np.integer, np.floating)) and not isinstance(limit, bool)
            if limit is not None and not (number and limit > 0):
                raise ValueError(f"{name} must be a number of milliseconds above 0, not {limit!r}")
        for name in ("keys", "longest", "shortest"):
            limit = getattr(self, name)
            whole = isinstance(limit, (int, np.integer)) and not isinstance(limit, bool)
            if limit is not None and not (whole and limit >= 1):
                raise ValueError(f"{name} must be a whole number of keystrokes, 1 or above, not {limit!r}")
        if self.longest is not None and self.shortest is not None and self.shortest > self.longest:
            raise ValueError(
                f"shortest is {self.shortest} and longest {self.longest}: no sample could satisfy both"
            )


@dataclass(frozen=True, eq=False)
class CleaningReport:
    """A report on what cleaning changed.

    Attributes
    ----------
    rules : as given
    steps : one row per rule that was on, in the order applied: `rule`, `setting`; `found`, the number of
        keystrokes, samples or intervals it applied to; `keystrokes` and `samples`, the numbers left
    keystrokes, samples : the numbers before cleaning
    lost : `rule`, `user` and the number of `keystrokes` that the rule dropped of that user, if any

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import CleaningRules, clean
    >>> _, report = clean(make_typists(2, 4), CleaningRules(longest=8))
    >>> report.samples, report.keystrokes
    (8, 88)
    >>> report.counts
    {'longest': 24}
    >>> report.steps[["rule", "setting", "keystrokes"]].values.tolist()
    [['longest', 8, 64]]
    >>> report.lost.values.tolist()
    [['longest', 0, 12], ['longest', 1, 12]]
    """

    rules: CleaningRules
    steps: pd.DataFrame
    keystrokes: int
    samples: int
    lost: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["rule", "user", "keystrokes"]))

    __repr__ = short_repr

    @property
    def counts(self) -> dict[str, int]:
        """The number of keystrokes, samples or intervals that each rule that was on applied to."""
        return dict(zip(self.steps["rule"].tolist(), self.steps["found"].tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The rules, numbers and steps as plain values and lists, ready for JSON."""
        columns = [[_plain(value) for value in self.steps[column]] for column in self.steps.columns]
        return {
            "rules": {rule: _plain(setting) for rule, setting in asdict(self.rules).items()},
            "before": {"keystrokes": self.keystrokes, "samples": self.samples},
            "steps": [dict(zip(self.steps.columns, row, strict=True)) for row in zip(*columns, strict=True)],
        }

    def __str__(self) -> str:
        lines = [f"{self.keystrokes:,d} keystrokes in {self.samples:,d} samples"]
        for step in self.to_dict()["steps"]:
            rule, setting = step["rule"], step["setting"]
            left = f"{step['keystrokes']:,d} keystrokes in {step['samples']:,d} samples left"
            lines.append(f"{step['found']:12,d}  {meaning_of(rule, setting)}; {left}")
        return "\n".join(lines if len(lines) > 1 else [*lines, "no rule was on, so nothing was changed"])


MEANINGS = {
    "duplicate_samples": "samples were copies: dropped",
    "negative_holds": "keystrokes released before they were pressed: dropped",
    "shortcuts": "keystrokes of shortcuts or navigation, which are not typing: dropped",
    "equal_presses": "keystrokes pressed at the same time as the previous one: dropped",
    "zero_durations": "keystrokes released at the time of the press: release marked as missing",
    "long_holds": "keystrokes held for longer than {} ms: release marked as missing",
    "pauses": "intervals longer than {} ms: sample divided",
    "keys": "parts of {} keystrokes, cut from longer samples: what is left over is dropped",
    "longest": "keystrokes beyond the first {} of a sample: dropped",
    "shortest": "samples of fewer than {} keystrokes: dropped",
}


def meaning_of(rule: str, setting: Any) -> str:
    """A description of what a rule applied to, and what it did with it."""
    return MEANINGS[rule].format("" if setting is True else f"{setting:g}")


def clean(keystrokes: pd.DataFrame, rules: CleaningRules) -> tuple[pd.DataFrame, CleaningReport]:
    """Clean keystrokes in the schema by the rules that are on, and report what each rule did.

    The order is that of the fields of `CleaningRules`: copies are dropped first, then single keystrokes
    are dropped or lose their release, then samples are divided and cut, and finally those that are too short
    are dropped. A `ValueError` names the rule that leaves nothing.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import CleaningRules, clean
    >>> keystrokes, report = clean(make_typists(2, 4), CleaningRules(longest=8))
    >>> len(keystrokes)
    64
    """
    if not isinstance(rules, CleaningRules):
        raise ValueError(f"rules must be CleaningRules, not {type(rules).__name__}")
    cleaned = check_keystrokes(keystrokes, negative_holds=rules.negative_holds)
    before = len(cleaned), len(sample_starts(cleaned))
    steps, lost = [], []
    for rule in fields(rules):
        setting = getattr(rules, rule.name)
        if setting is None or setting is False:
            continue
        there = cleaned["user"].value_counts(sort=False)
        cleaned, affected = _applied(cleaned, rule.name, setting)
        if len(cleaned) == 0:
            raise ValueError(f"the rule {rule.name}={setting!r} leaves no keystrokes")
        steps.append((rule.name, setting, affected, len(cleaned), len(sample_starts(cleaned))))
        gone = there.sub(cleaned["user"].value_counts(sort=False), fill_value=0)
        lost += [(rule.name, user, int(n)) for user, n in gone[gone > 0].items()]
    columns = ["rule", "setting", "found", "keystrokes", "samples"]
    table = pd.DataFrame(steps, columns=columns).astype({"setting": object})
    by_user = pd.DataFrame(lost, columns=["rule", "user", "keystrokes"])
    return cleaned, CleaningReport(rules, table, *before, by_user)


# Rules that mark releases as missing, that divide samples, and that drop whole samples.
FORGETS_RELEASE, DIVIDES = ("zero_durations", "long_holds"), ("pauses", "keys")
OF_SAMPLES = ("duplicate_samples", "shortest")


def _applied(keystrokes: pd.DataFrame, rule: str, setting: Any) -> tuple[pd.DataFrame, int]:
    """The keystrokes after one rule, and the number of keystrokes, samples or intervals it applied to."""
    starts = sample_starts(keystrokes)
    sample, lengths = sample_of_row(starts, len(keystrokes)), sample_lengths(starts, len(keystrokes))
    place = np.arange(len(keystrokes)) - starts[sample]
    if rule == "keys":
        parts = lengths // setting
        kept = (parts[sample] == 0) | (place < setting * parts[sample])
        cuts = (place % setting == 0)[kept] & (place > 0)[kept]
        return _divided(keystrokes.loc[kept].reset_index(drop=True), cuts), int(parts.sum())
    which = _concerned(keystrokes, rule, setting, place, lengths)
    count = int(which.sum())
    if rule in DIVIDES:
        return _divided(keystrokes, which), count
    if rule in FORGETS_RELEASE:
        return keystrokes.assign(timerelease=keystrokes["timerelease"].mask(which)), count
    dropped = which[sample] if rule in OF_SAMPLES else which
    return keystrokes.loc[~dropped].reset_index(drop=True), count


def _concerned(keystrokes: pd.DataFrame, rule: str, setting: Any, place: Integers, lengths: Integers) -> Any:
    """A mask of what a rule applies to: samples for the rules about whole samples, else keystrokes.

    `place` (N,) is the place of each keystroke in its sample, and `lengths` (S,) are those of the samples.
    """
    press, release = (keystrokes[name].to_numpy() for name in ("timepress", "timerelease"))
    match rule:
        case "duplicate_samples":
            return is_duplicate(keystrokes)
        case "shortest":
            return lengths < setting
        case "negative_holds":
            return release < press
        case "shortcuts":
            return np.logical_or(*not_typing(keystrokes))
        case "equal_presses":
            return (np.diff(press, prepend=np.nan) == 0) & (place > 0)
        case "zero_durations":
            return release == press
        case "long_holds":
            return release - press > setting
        case "pauses":
            return (np.diff(press, prepend=np.nan) > setting) & (place > 0)
        case _:
            return place >= setting


def _divided(keystrokes: pd.DataFrame, cuts: NDArray[np.bool_]) -> pd.DataFrame:
    """Divide samples before the keystrokes marked by `cuts`."""
    starts = sample_starts(keystrokes)
    begins = cuts.copy()
    begins[starts] = True
    first = np.flatnonzero(begins)
    before = np.cumsum(cuts)
    part: Integers = (before - before[starts][sample_of_row(starts, len(keystrokes))])[first]
    parts = keystrokes.iloc[first].reset_index(drop=True)
    sessions = name_parts(parts["user"], parts["session"], part)
    return keystrokes.assign(session=sessions.iloc[np.cumsum(begins) - 1].reset_index(drop=True))


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number."""
    return value.item() if isinstance(value, np.generic) else value
