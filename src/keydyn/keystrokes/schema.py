"""The one schema: a keystroke is a row of user, session, keyname, timepress and timerelease.

Times are milliseconds. `session` is the sample's number within the user; the rows of a sample are
contiguous, in order of press. A key whose release was not seen has no `timerelease`. Further columns are
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Integers

COLUMNS = ("user", "session", "keyname", "timepress", "timerelease")
SAMPLE = ["user", "session"]


def check_keystrokes(frame: pd.DataFrame, first_line: int = 0) -> pd.DataFrame:
    """A copy in the schema, its columns first; a `ValueError` names the column and the line that are wrong.

    `first_line` is what the first row is called in messages: 2 for a file with a header.
    """
    absent = [column for column in COLUMNS if column not in frame.columns]
    if absent:
        raise ValueError(
            f"no column {', '.join(map(repr, absent))}; there are {', '.join(map(repr, frame.columns))}"
        )
    if len(frame) == 0:
        raise ValueError("there are no keystrokes")
    others = [column for column in frame.columns if column not in COLUMNS]
    checked = frame[[*COLUMNS, *others]].reset_index(drop=True)
    for column in ("user", "session", "keyname"):
        _refuse(checked[column].isna().to_numpy(), column, "is missing", first_line)
    checked["keyname"] = checked["keyname"].astype(str)
    for column in ("timepress", "timerelease"):
        checked[column] = _as_times(checked[column], column, first_line)
    _refuse(checked["timepress"].isna().to_numpy(), "timepress", "is missing", first_line)
    _check_order(checked, first_line)
    return checked


def sample_starts(frame: pd.DataFrame) -> Integers:
    """The row at which each sample begins."""
    changed = np.zeros(len(frame), dtype=bool)
    changed[:1] = True
    for column in SAMPLE:
        # Not pandas' shift: it turns whole numbers into floats, and those beyond 2⁵³ would no longer differ.
        labels = frame[column].to_numpy()
        changed[1:] |= labels[1:] != labels[:-1]
    starts: Integers = np.flatnonzero(changed)
    return starts


def sample_lengths(starts: Integers, n_keystrokes: int) -> Integers:
    """The number of keystrokes in each sample, given the row at which each begins and the number of rows."""
    lengths: Integers = np.diff(starts, append=n_keystrokes)
    return lengths


def sample_of_row(starts: Integers, n_keystrokes: int) -> Integers:
    """The sample that each row belongs to, numbered from 0."""
    return np.repeat(np.arange(len(starts)), sample_lengths(starts, n_keystrokes))


def _as_times(values: pd.Series[Any], column: str, first_line: int) -> pd.Series[Any]:
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    _refuse((numbers.isna() & values.notna()).to_numpy(), column, "is not a number", first_line)
    _refuse(np.isinf(numbers.to_numpy()), column, "is infinite", first_line)
    return numbers


def _check_order(frame: pd.DataFrame, first_line: int) -> None:
    starts = sample_starts(frame)
    first = frame.loc[starts, SAMPLE]
    twice = first.duplicated().to_numpy()
    if twice.any():
        row = int(starts[np.argmax(twice)])
        user, session = (str(frame[column].iloc[row]) for column in SAMPLE)
        raise ValueError(
            f"line {row + first_line}: the rows of user {user}, session {session} are not contiguous"
        )
    back = np.diff(frame["timepress"].to_numpy(), prepend=-np.inf) < 0
    back[starts] = False
    _refuse(back, "timepress", "is before the press above it", first_line)
    held = frame["timerelease"].to_numpy() - frame["timepress"].to_numpy()
    _refuse(held < 0, "timerelease", "is before the press", first_line)


def _refuse(bad: Any, column: str, problem: str, first_line: int) -> None:
    if bad.any():
        raise ValueError(f"line {int(np.argmax(bad)) + first_line}: {column} {problem}")
