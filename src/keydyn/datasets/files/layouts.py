"""The layouts of tables of keystrokes: each is recognised by its columns and read by one function.

A log, with a row for each press and each release, is not a table of keystrokes; `published_logs.py` lists
logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from keydyn.datasets.files.columns import (
    further,
    key_names,
    labels,
    likely_names,
    press_and_release,
    refuse_absent,
    renamed,
)
from keydyn.datasets.files.digraphs import is_digraph_table, read_digraphs
from keydyn.datasets.files.event_files import is_event_table
from keydyn.datasets.files.file_form import ONLY, UNKNOWN, AsRead, FileForm
from keydyn.datasets.files.file_tables import FileTable
from keydyn.datasets.files.holds_and_flights import has_holds, read_holds
from keydyn.datasets.files.latency_tables import is_latency_table, read_latencies
from keydyn.keystrokes.key_names import in_our_names
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import COLUMNS, SAMPLE


class Layout(NamedTuple):
    """A layout of tables: the content of a row, a test that recognises it, and its reader."""

    row: str
    recognises: Callable[[FileTable, FileForm], bool]
    # Its last argument says whether a file without people is accepted.
    read: Callable[[FileTable, FileForm, bool], AsRead]


def layout_of(table: FileTable, form: FileForm) -> Layout:
    """The first layout that recognises the table."""
    return next(layout for layout in LAYOUTS if layout.recognises(table, form))


def read_keystrokes(table: FileTable, form: FileForm, anonymous: bool) -> AsRead:
    """Read keystrokes with the times of their presses and releases."""
    table = renamed(table, form.columns, form.others)
    constants: dict[str, Any] = {"user": form.user, "session": form.session}
    for name, constant in constants.items():
        if constant is not None and name in table.columns:
            raise ReadingError(
                f"there is a column {name}", Remedy("{} is for files without one", {name: ...})
            )
    names_users = "user" in table.columns or form.user is not None or not anonymous
    if anonymous:
        # A column that is likely to be the user or the session must be named; otherwise samples would run
        # together.
        likely = likely_names(table.columns, SAMPLE)
        constants |= {
            column: value
            for column, value in {"user": UNKNOWN, "session": ONLY}.items()
            if column not in table.columns and constants[column] is None and column not in likely
        }
    frame, unit = _frame(table, constants, form)
    return AsRead(frame, np.arange(len(table)), table, unit, names_users, "session" in table.columns)


def _frame(table: FileTable, constants: Mapping[str, Any], form: FileForm) -> tuple[pd.DataFrame, str]:
    """The schema's columns and the others, in file order and not yet checked; and the unit of times."""
    if is_event_table(table):
        remedy = Remedy("{} makes keystrokes of them", {"keydyn.keystrokes.pair_events": ...})
        raise ReadingError("it holds presses and releases in rows of their own", remedy)
    refuse_absent(table, constants, form.columns)
    frame = pd.DataFrame(index=range(len(table)))
    for name in SAMPLE:
        frame[name] = labels(table, name) if name in table.columns else constants[name]
    frame["keyname"] = in_our_names(key_names(table)) if form.by_command else key_names(table)
    frame["timepress"], frame["timerelease"], unit = press_and_release(table, form.unit, form.decimal)
    for name in table.columns:
        if name not in COLUMNS:
            frame[name] = further(table, name, form.decimal, form.by_command)
    return frame, unit


LAYOUTS = (
    Layout("a sample: the holds and latencies of a fixed text", is_latency_table, read_latencies),
    Layout("a pair of keys: their holds and latencies", is_digraph_table, read_digraphs),
    Layout("a keystroke: its hold and the time between keys", has_holds, read_holds),
    Layout("a keystroke: its press and release", lambda table, form: True, read_keystrokes),
)
