"""Files of raw key events: which columns hold the time, the type and the key of each press and release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from keydyn.datasets.files.columns import dates_of, further, labels, likely_names, there_are
from keydyn.datasets.files.tables import Table
from keydyn.keystrokes.raw_events import PRESS, RELEASE, kind_of
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import SAMPLE

# What browsers and loggers call them, in small letters and without anything between the words. Where there
# are several, the first of these is meant: `code` is the physical key, `key` the character.
NAMES = {
    "time": ("time", "timestamp", "timems", "timestampms", "eventtime", "t", "ts", "ms"),
    "type": ("type", "event", "eventtype", "action", "kind", "state", "direction", "pressrelease"),
    "key": ("code", "scancode", "physicalkey", "keycode", "vkcode", "key", "keyname", "keysym", "character"),
    "repeat": ("repeat", "isrepeat", "autorepeat"),
}
# Events of browsers that are neither a press nor a release, nor anything else that matters to pairing.
# `keypress` comes between the two: it is a press only where there are no others.
BESIDE = {"keypress", "input", "beforeinput", "change", "click", "scroll", "select", "copy", "cut", "wheel"}
BESIDE |= {"compositionstart", "compositionupdate", "compositionend", "mousedown", "mouseup", "mousemove"}
MOST_TYPES = 50


@dataclass(frozen=True, eq=False)
class EventFile:
    """The events of a file as `pair_events` takes them, the unit of their times, and what was left out."""

    events: pd.DataFrame
    unit: str
    left_out: dict[str, int]


def is_event_table(table: Table) -> bool:
    """Whether a table has a column of presses and releases, and none of the schema's times."""
    if "timepress" in table.columns or "timerelease" in table.columns:
        return False
    return _type_column(table) is not None


def events_in(
    table: Table, columns: Mapping[str, str], unit: str | None, decimal: str, constants: Mapping[str, Any]
) -> EventFile:
    """The events of a table; `columns` gives the file's own names of time, type, key, keyname and others."""
    names = {role: name for role, name in _found(table).items() if role not in columns} | dict(columns)
    for role, name in columns.items():
        if name not in table.columns:
            raise ReadingError(f"no column {name!r} for {role}; {there_are(table.columns)}")
    absent = [role for role in ("time", "type", "key") if role not in names]
    if absent:
        raise ReadingError(
            f"no column for the {' or the '.join(absent)} of an event; {there_are(table.columns)}",
            Remedy("{} gives the file's own names of time, type and key", {"columns": ...}),
        )
    events, used = pd.DataFrame(index=range(len(table))), set(names.values())
    for name in SAMPLE:
        if name in names:
            events[name] = labels(table, names[name])
        elif constants.get(name) is not None:
            events[name] = constants[name]
    events["time"], unit = _times(table, names["time"], unit or "ms", decimal)
    for role in ("type", "key", "keyname", "repeat"):
        if role in names:
            events[role] = table.columns[names[role]].to_pandas()
    for name in table.columns:
        if name not in used and name not in events:
            # A column that is neither numbers nor text is no feature.
            with suppress(ValueError):
                events[name] = further(table, name, decimal)
    return _without_others(events, unit)


def _found(table: Table) -> dict[str, str]:
    """The columns that are recognised by their names, and that of the types by its values."""
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(table.columns)}
    found = {
        role: next((plain[name] for name in names if name in plain), None) for role, names in NAMES.items()
    }
    found["type"] = _type_column(table) or found["type"]
    found |= likely_names(table.columns, SAMPLE)
    found |= {name: name for name in (*SAMPLE, "keyname") if name in table.columns and found["key"] != name}
    return {role: name for role, name in found.items() if name is not None}


def _type_column(table: Table) -> str | None:
    """The column that has presses and releases, whatever it is called."""
    for name, column in table.columns.items():
        if not table.is_text(name):
            continue
        distinct = pc.unique(column.slice(0, 10_000).cast("string")).to_pylist()
        if len(distinct) <= MOST_TYPES and {PRESS, RELEASE} <= {_kind(value) for value in distinct}:
            return name
    return None


def _kind(value: Any) -> int:
    return PRESS if _plain(value) == "keypress" else kind_of(value)


def _plain(value: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(value).lower())


def _times(table: Table, name: str, unit: str, decimal: str) -> tuple[Any, str]:
    """The times and their unit; dates are nanoseconds, as whole numbers."""
    try:
        return table.numbers(name, decimal), unit
    except ReadingError as error:
        dates = dates_of(table, name)
        if dates is None or dates.isna().any():
            raise error from None
        return dates.dt.as_unit("ns").astype("int64").to_numpy(), "ns"


def _without_others(events: pd.DataFrame, unit: str) -> EventFile:
    """Without the events that browsers send beside presses and releases, which are counted."""
    types = events["type"].map({value: _plain(value) for value in events["type"].unique()})
    kinds = {value: kind_of(value) for value in types.unique()}
    beside = BESIDE if PRESS in kinds.values() else BESIDE - {"keypress"}
    other = types.isin(beside)
    kept = events.loc[~other].reset_index(drop=True)
    if "keypress" not in beside:
        kept["type"] = types.replace("keypress", "press")[~other].reset_index(drop=True)
    return EventFile(kept, unit, {str(k): int(n) for k, n in types[other].value_counts().items()})
