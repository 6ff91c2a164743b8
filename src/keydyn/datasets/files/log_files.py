"""Reads logs of presses and releases, from one file or from a folder of a published collection."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from keydyn.datasets.files.event_files import EventFile, events_in, is_event_table
from keydyn.datasets.files.file_form import FileForm
from keydyn.datasets.files.file_tables import parse_table
from keydyn.datasets.files.holds_and_flights import has_holds
from keydyn.datasets.files.published_logs import LOGS, log_with_columns, whose_file
from keydyn.datasets.files.recordings import contents_of
from keydyn.keystrokes.reading_error import ReadingError

EMPTY = "empty files"


def read_log(source: str | PathLike[str] | BinaryIO, form: FileForm) -> EventFile:
    """Read the events of a file; the user is taken from `form`, or from the file's name in a known layout."""
    with contents_of(source) as (contents, name):
        table = parse_table(contents, form.separator, form.encoding, form.header)
        if has_holds(table, form) and not is_event_table(table):
            raise ReadingError(
                "it has hold times and times between keys, not single events; there is nothing to pair: fit, "
                "evaluate and the other commands read it as it is"
            )
        given = {"user": form.user, "session": form.session}
        whose = whose_file(log_with_columns(table.columns), name)
        whose |= {role: value for role, value in given.items() if value is not None}
        return events_in(table, form.columns, form.unit, form.decimal, whose)


def read_logs(folder: Path, form: FileForm) -> EventFile:
    """Read the events of all files below a folder whose names match a published collection."""
    names = [re.compile(log.file) for log in LOGS.values()]
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    paths = [path for path in files if any(name.fullmatch(path.name) for name in names)]
    filled = [path for path in paths if path.stat().st_size > 0]
    if not filled:
        kinds = "84500 (Clarkson II), 002001.txt (Buffalo) or 1_Desktop_Keyboard.csv (BB-MAS)"
        raise ReadingError(f"no file below it is called as a published log is, such as {kinds}")
    logs = [read_log(path, form) for path in filled]
    units = {log.unit for log in logs}
    if len(units) > 1:
        raise ReadingError(f"its files have different units: {', '.join(sorted(units))}")
    events = pd.concat([log.events for log in logs], ignore_index=True)
    empty = {EMPTY: len(paths) - len(filled)} if len(paths) > len(filled) else {}
    return EventFile(events, units.pop(), empty)
