"""The layout of the CMU password data: a row per sample, with hold times H.KEY and intervals DD.KEY.KEY."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.datasets.files.columns import labels
from keydyn.datasets.files.tables import Table
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import milliseconds

HOLD, DOWN_DOWN, UP_DOWN = "H.", "DD.", "UD."
USERS = ("user", "subject")
# Further columns, and what they are called in the schema.
FURTHER = {"sessionIndex": "sitting", "rep": "repetition"}


def is_layout(table: Table) -> bool:
    """Whether a table has the layout's columns."""
    return all(
        any(name.startswith(prefix) for name in table.columns for prefix in prefixes)
        for prefixes in ((HOLD,), (DOWN_DOWN, UP_DOWN))
    )


def keystrokes_of(
    table: Table, unit: str = "s", decimal: str = ".", user_column: str | None = None, user: Any = None
) -> tuple[pd.DataFrame, Integers]:
    """The keystrokes, and which row of the table each comes from; samples are numbered within their user.

    DD is the time from press to press. Where there is only UD, from release to press, DD follows from both.
    """
    column = user_column or next((name for name in USERS if name in table.columns), None)
    if user is None and column is None:
        raise ReadingError(
            "no column 'user' or 'subject'",
            Remedy("{} gives the file's own name of it", {"columns": ...}),
            Remedy("otherwise, give {}", {"user": "NAME"}),
        )
    keys = [name.removeprefix(HOLD) for name in table.columns if name.startswith(HOLD)]
    hold = numbers_of(table, [HOLD + key for key in keys], decimal)
    step = np.pad(_steps(table, keys, hold, decimal), ((0, 0), (1, 0)))
    # The file has tenths of a millisecond; rounding takes away what summing in binary added.
    press = np.round(milliseconds(step.cumsum(axis=1), unit), 6)
    release = np.round(press + milliseconds(hold, unit), 6)
    users = pd.Series(labels(table, str(column)) if user is None else [user] * len(table))
    per_sample: dict[str, Any] = {"user": users, "session": users.groupby(users).cumcount()}
    for theirs, ours in FURTHER.items():
        if theirs in table.columns:
            per_sample[ours] = integers_of(table, theirs)
    rows = np.repeat(np.arange(len(table)), len(keys))
    keystrokes = pd.DataFrame(per_sample).loc[rows]
    keystrokes["keyname"] = np.tile(keys, len(table))
    keystrokes["timepress"] = press.ravel()
    keystrokes["timerelease"] = release.ravel()
    return keystrokes, rows


def _steps(table: Table, keys: list[str], hold: Floats, decimal: str) -> Floats:
    pairs = [f"{key}.{after}" for key, after in pairwise(keys)]
    kind = DOWN_DOWN if any(name.startswith(DOWN_DOWN) for name in table.columns) else UP_DOWN
    absent = [repr(kind + pair) for pair in pairs if kind + pair not in table.columns]
    if absent:
        raise ReadingError(f"no column {', '.join(absent)}; the columns {HOLD} give the order of the keys")
    steps = numbers_of(table, [kind + pair for pair in pairs], decimal)
    return steps if kind == DOWN_DOWN else steps + hold[:, :-1]


def numbers_of(table: Table, names: list[str], decimal: str = ".") -> Floats:
    """Columns of numbers, none of them missing, (n, d)."""
    values: Floats = np.column_stack([table.numbers(name, decimal) for name in names])
    missing = np.argwhere(np.isnan(values))
    if len(missing):
        row, column = missing[0]
        raise ReadingError(f"{names[column]} is missing", place=table.place(int(row)))
    return values


def integers_of(table: Table, name: str) -> Integers:
    """A column of whole numbers."""
    values: Integers = numbers_of(table, [name])[:, 0].astype(np.int64)
    return values
