"""Reads files with hold times and the times between keys instead of absolute times: VK, HT, FT.

Such files do not state the unit of their times; it is inferred from the holds, whose usual length is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.datasets.files.columns import further, key_names, likely_names, samples_in, there_are
from keydyn.datasets.files.event_files import CODES, plain
from keydyn.datasets.files.file_form import AsRead, FileForm
from keydyn.datasets.files.file_tables import FileTable
from keydyn.keystrokes.key_names import in_our_names, names_of_codes
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import COLUMNS, milliseconds, sample_lengths, sample_starts

# Names of such columns, in lower case and without separators. A flight is the time from the release of the
# previous key to this press, `next_flight` from this release to the next press; an interval is from press to
# press.
NAMES = {
    "hold": ("hold", "ht", "holdtime", "dwell", "dwelltime", "du", "duration", "keyhold"),
    "flight": ("flight", "ft", "flighttime", "ud", "updown", "releasepress", "rp"),
    "interval": ("interval", "dd", "downdown", "presspress", "pp", "it", "interkey", "interkeytime"),
    "next_flight": ("nextflight",),
}
KEYS = ("key", "keyname", "code", "char", "character", "letter", *CODES)
TIMES = ("timepress", "timerelease")
# The range of plausible median holds, in milliseconds.
SHORTEST, LONGEST = 20.0, 1000.0


def holds_and_gaps(table: FileTable, columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of holds and of times between keys; empty if there are none, or if there are presses."""
    given = {role: name for role, name in columns.items() if role in NAMES}
    own = {plain(name): name for name in table.columns if name not in columns.values()}
    found = {
        role: next((own[name] for name in names if name in own), None)
        for role, names in NAMES.items()
        if role not in given
    }
    roles = {role: name for role, name in found.items() if name is not None} | given
    there = {*table.columns, *columns, *likely_names(list(own.values()), TIMES)}
    for name in given.values():
        if name not in table.columns:
            raise ReadingError(f"no column {name!r}; {there_are(table.columns)}")
    return roles if not there & set(TIMES) and "hold" in roles and len(roles) > 1 else {}


def has_holds(table: FileTable, form: FileForm) -> bool:
    """Whether a table has a row per keystroke, with holds and times between keys instead of times."""
    return bool(holds_and_gaps(table, form.columns))


def read_holds(table: FileTable, form: FileForm, anonymous: bool) -> AsRead:
    """Read keystrokes in the order of the file; times begin at 0 in each sample."""
    columns, roles = form.columns, holds_and_gaps(table, form.columns)
    frame, names = samples_in(table, form, anonymous)
    frame["keyname"] = _key_names(table, columns.get("keyname"))
    values = {role: table.numbers(name, form.decimal) for role, name in roles.items()}
    unit = form.unit or unit_of_holds(values["hold"])
    hold = milliseconds(values["hold"], unit)
    gaps = {role: milliseconds(values[role], unit) for role in values if role != "hold"}
    starts = sample_starts(frame)
    # For a column named by the caller, the role says which time it holds.
    gaps = {role: gap if role in columns else _led(gap, starts, roles[role]) for role, gap in gaps.items()}
    step = _steps(hold, gaps)
    step[starts] = 0.0
    since = np.cumsum(step)
    press = np.round(since - np.repeat(since[starts], sample_lengths(starts, len(frame))), 6)
    frame["timepress"], frame["timerelease"] = press, np.round(press + hold, 6)
    back = np.diff(press, prepend=0.0) < 0
    back[starts] = False
    if back.any():
        place = table.place(int(np.argmax(back)))
        raise ReadingError("by these times the key was pressed before the one above it", place=place)
    if form.by_command:
        frame["keyname"] = in_our_names(frame["keyname"])
    for name in table.columns:
        if name not in COLUMNS and name not in roles.values() and name not in columns.values():
            frame[name] = further(table, name, form.decimal, True)
    names_users = "user" in names or form.user is not None
    return AsRead(frame, np.arange(len(table)), table, unit, names_users, "session" in names)


def _steps(hold: Floats, gaps: Mapping[str, Floats]) -> Floats:
    """The time from the previous press to each press, (N,)."""
    if "interval" in gaps:
        return gaps["interval"]
    flight = gaps["flight"] if "flight" in gaps else np.concatenate([[0.0], gaps["next_flight"][:-1]])
    steps: Floats = np.concatenate([[0.0], hold[:-1]]) + flight
    return steps


def _led(gap: Floats, starts: Integers, name: str) -> Floats:
    """The time that leads to each key, which the file has in the key's own row or in the row before.

    A sample's first key has no key before it, and its last has none after it: if the values there are empty
    or 0, they show which of the two the column holds.
    """
    ends = np.append(starts[1:], len(gap)) - 1
    nothing_before, nothing_after = (bool((np.nan_to_num(gap[rows]) == 0).all()) for rows in (starts, ends))
    if nothing_before:
        return gap
    if nothing_after:
        return np.concatenate([[0.0], gap[:-1]])
    raise ReadingError(
        f"{name} may be the time from the key before or to the key after: neither the first nor the last of "
        "all samples is empty or 0",
        Remedy("from this release to the next press, it is {}", {"columns": {"next_flight": name}}),
        Remedy("from the release before to this press, {}", {"columns": {"flight": name}}),
    )


def _key_names(table: FileTable, given: str | None) -> Any:
    own = {plain(name): name for name in reversed(table.columns)}
    name = given or next((own[key] for key in KEYS if key in own), None)
    if name is None:
        raise ReadingError(
            f"no column of keys; {there_are(table.columns)}",
            Remedy("{} gives the file's own name of it", {"columns": {"keyname": "KEY"}}),
        )
    texts = key_names(table, name)
    codes = CODES.get(plain(name))
    if codes is not None and all(re.fullmatch(r"[0-9]+", str(text)) for text in texts.unique()):
        return names_of_codes(texts.astype(float).to_numpy(), codes).astype(object)
    return texts


def unit_of_holds(hold: Floats) -> str:
    """The unit in which the median hold is plausible."""
    median = float(np.nanmedian(hold)) if np.isfinite(hold).any() else np.nan
    for unit in ("ms", "s", "us", "ns"):
        if SHORTEST <= float(milliseconds(np.array([median]), unit)[0]) <= LONGEST:
            return unit
    raise ReadingError(
        f"keys are held for {median:.3g} in the middle, which is not how people type in any unit",
        Remedy("give {} if that is right", {"unit": "ms"}),
    )
