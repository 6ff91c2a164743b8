"""Reads files of raw key events, and finds the columns with the time, type and key of each event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from keydyn.arrays import Integers
from keydyn.datasets.files.columns import dates_of, further, labels, likely_names, there_are, whole_numbers
from keydyn.datasets.files.file_tables import FileTable
from keydyn.datasets.files.published_logs import (
    FEWEST_TICKS,
    NANOSECONDS_PER_TICK,
    TICK_BITS,
    Log,
    log_with_columns,
)
from keydyn.keystrokes.key_names import (
    SCAN_CODES,
    VIRTUAL_KEYS,
    WINDOWS_KEYS,
    in_our_names,
    is_character,
    key_name,
    names_of_codes,
)
from keydyn.keystrokes.raw_events import PRESS, RELEASE, TYPES, kind_of
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import SAMPLE, unit_of_stamps

# Names of time columns that include the unit.
TIME_UNITS = {
    f"{name}{suffix}": unit
    for name in ("time", "timestamp", "t")
    for suffix, unit in (("ns", "ns"), ("us", "us"), ("seconds", "s"), ("sec", "s"))
}
# The name of a column of .NET ticks, of 100 ns each.
TICKS = "ticks"
# The system of numeric key codes in a column, by the column's name.
CODES = {
    **dict.fromkeys(("vk", "vkcode", "virtualkey", "virtualkeycode"), WINDOWS_KEYS),
    **dict.fromkeys(("keycode", "which"), VIRTUAL_KEYS),
    **dict.fromkeys(("scancode", "evdev", "evdevcode"), SCAN_CODES),
}
# Columns with the name of a key, in files that also have a column with its code.
KEY_NAMES = ("key", "keyname", "name", "keysym", "character", "char")
# Event types that could also be keys or numbers; recognised only in a column named as one of types.
SHORT = {"p", "r", "d", "u", "1", "0", "true", "false"}
# Columns that hold 1 or true for a press.
PRESSED = ("pressed", "ispressed", "isdown")
# The `value` of evdev for the automatic repetition of a key.
REPEATED = "2"
# Names of columns in browsers and loggers, in lower case and without separators. If a file has several, the
# first one is used: `code` is the physical key, `key` the character.
NAMES = {
    "time": ("time", "timestamp", "timems", "timestampms", "eventtime", "t", "ts", "ms", TICKS, *TIME_UNITS),
    "type": (
        "type",
        "event",
        "eventtype",
        "action",
        "kind",
        "state",
        "direction",
        "pressrelease",
        "value",
        *PRESSED,
    ),
    "key": ("code", "scancode", "physicalkey", "keycode", *CODES, *KEY_NAMES),
    "repeat": ("repeat", "isrepeat", "autorepeat"),
}
# Browser events that are neither presses nor releases and do not matter for pairing. `keypress` comes between
# the two; it is taken as a press only in files without other presses.
BESIDE = {"keypress", "input", "beforeinput", "change", "click", "scroll", "select", "copy", "cut", "wheel"}
BESIDE |= {"compositionstart", "compositionupdate", "compositionend", "mousedown", "mouseup", "mousemove"}
MOST_TYPES = 50


@dataclass(frozen=True, eq=False)
class EventFile:
    """The events of a file in the form of `pair_events`, their unit of time, and counts of those left out."""

    events: pd.DataFrame
    unit: str
    left_out: dict[str, int]


def is_event_table(table: FileTable) -> bool:
    """Whether a table has a column of presses and releases, and none of the schema's times."""
    if "timepress" in table.columns or "timerelease" in table.columns:
        return False
    return _type_column(table) is not None


def events_in(
    table: FileTable, columns: Mapping[str, str], unit: str | None, decimal: str, constants: Mapping[str, Any]
) -> EventFile:
    """Read the events of a table; `columns` gives the file's names of time, type, key, keyname and others."""
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
    events["time"], unit = _times(table, names["time"], unit, decimal)
    for role in ("type", "repeat"):
        if role in names:
            events[role] = _values(table, names[role])
    log = log_with_columns(table.columns)
    if log is not None and log.types:
        values = events["type"]
        events["type"] = values.map({value: log.types.get(str(value), value) for value in values.unique()})
    _refuse_types(events["type"], table)
    if "repeat" not in events and {str(value) for value in events["type"].unique()} == {"0", "1", REPEATED}:
        events["repeat"] = events["type"].astype(str) == REPEATED
        events["type"] = events["type"].astype(str).replace(REPEATED, "1")
    _name_keys(events, table, names, log)
    used |= set(log.columns if log is not None else ())
    for name in table.columns:
        if name not in used and name not in events:
            # A column of anything but numbers or text cannot be a feature.
            with suppress(ValueError):
                events[name] = further(table, name, decimal)
    return _without_others(events, unit)


def _refuse_types(types: pd.Series[Any], table: FileTable) -> None:
    """Raise a `ReadingError` at the first event of an unknown type."""
    known = (*BESIDE, REPEATED)
    strange = [value for value in types.unique() if _kind(value) == -1 and plain(value) not in known]
    if strange:
        row = int(np.argmax(types.isin(strange).to_numpy()))
        problem = f"type is {types[row]!r}; it must be one of {', '.join(TYPES)}"
        raise ReadingError(problem, place=table.place(row))


def _found(table: FileTable) -> dict[str, str]:
    """The columns recognised by their names, and the column of types recognised by its values."""
    own = {plain(name): name for name in reversed(table.columns)}
    found = {role: next((own[name] for name in names if name in own), None) for role, names in NAMES.items()}
    found["type"] = _type_column(table) or found["type"]
    found |= likely_names(table.columns, SAMPLE)
    found |= {name: name for name in SAMPLE if name in table.columns}
    if found["key"] is not None and plain(found["key"]) not in KEY_NAMES:
        found["keyname"] = _name_column(table, own, found["key"])
    return {role: name for role, name in found.items() if name is not None}


def _name_column(table: FileTable, own: Mapping[str, str], key: str) -> str | None:
    """The column of key names: any known one if the column of keys holds numbers, else only `keyname`."""
    wanted = (
        KEY_NAMES
        if pc.all(pc.match_substring_regex(table.columns[key].cast("string"), "^[0-9]*$")).as_py()
        else ("keyname",)
    )
    return next((own[name] for name in wanted if name in own), None)


def _name_keys(events: pd.DataFrame, table: FileTable, names: Mapping[str, str], log: Log | None) -> None:
    """Add `key`, which pairs presses with releases, and `keyname`, keydyn's name of the key.

    A key given by its character is paired by its name, because Shift may be released before "A" is.
    """
    key = _values(table, names["key"])
    codes = CODES.get(plain(names["key"]))
    # evdev's columns are type, code and value.
    codes = SCAN_CODES if plain(names["key"]) == "code" and plain(names["type"]) == "value" else codes
    codes = WINDOWS_KEYS if log is not None and log.codes else codes
    distinct = pd.Series(key.unique()).astype(object)
    numbers = pd.to_numeric(distinct, errors="coerce")
    if "keyname" in names:
        events["keyname"] = in_our_names(_values(table, names["keyname"]))
    elif codes is not None and numbers.notna().all():
        called = names_of_codes(numbers.to_numpy(dtype=float), codes).astype(object)
        events["keyname"] = key.map(dict(zip(distinct, called, strict=True)))
    else:
        events["keyname"] = in_our_names(key)
        key = key.map({name: key_name(name) if is_character(name) else name for name in distinct})
    events["key"] = key


def _values(table: FileTable, name: str) -> pd.Series[Any]:
    """The values of a column; text is stored once per distinct value, because logs have few."""
    column = table.columns[name]
    values: pd.Series[Any] = (column.dictionary_encode() if table.is_text(name) else column).to_pandas()
    return values


def _type_column(table: FileTable) -> str | None:
    """The column of presses and releases, which is named as one or holds nothing else."""
    named = [name for name in table.columns if plain(name) in NAMES["type"]]
    for name in [*named, *(name for name in table.columns if name not in named)]:
        column = table.columns[name].slice(0, 10_000)
        if name not in named and not table.is_text(name):
            continue
        try:
            distinct = pc.unique(column.cast("string")).drop_null().to_pylist()
        except pa.ArrowException:
            continue
        kinds = {_kind(value) for value in distinct}
        if len(distinct) > MOST_TYPES or not {PRESS, RELEASE} <= kinds:
            continue
        only_types = -1 not in {_kind(value) for value in distinct if plain(value) not in BESIDE}
        short = bool(SHORT & {plain(value) for value in distinct})
        if (name in named and (only_types or not short)) or (only_types and not short):
            return name
    return None


def _kind(value: Any) -> int:
    return PRESS if plain(value) == "keypress" else kind_of(value)


def plain(value: Any) -> str:
    """A name in lower case, without separators between words."""
    return re.sub(r"[^a-z0-9]", "", str(value).lower())


def _times(table: FileTable, name: str, unit: str | None, decimal: str) -> tuple[Any, str]:
    """The times and their unit, by default guessed from the times; whole numbers stay whole."""
    try:
        # A number may begin with a minus sign; a minus sign further on is part of a date.
        times = None if "-" in str(table.columns[name][0])[1:] else whole_numbers(table, name, decimal)
    except ReadingError:
        times = None
    if times is None:
        dates = dates_of(table, name)
        if dates is not None and not dates.isna().any():
            return dates.dt.as_unit("ns").astype("int64").to_numpy(), "ns"
        _refuse_date(table, name)
        times = whole_numbers(table, name, decimal)
    if plain(name) == TICKS and times.dtype.kind == "i" and (times & TICK_BITS).min() > FEWEST_TICKS:
        return _nanoseconds(times & TICK_BITS, name), "ns"
    return times, unit or TIME_UNITS.get(plain(name)) or unit_of_stamps(times) or "ms"


def _refuse_date(table: FileTable, name: str) -> None:
    """Raise a `ReadingError` at a column's first value that is not a date, if its very first value is."""
    texts = table.columns[name].to_pandas().astype(object)
    wrong = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce").isna().to_numpy()
    if wrong.any() and not wrong[0]:
        row = int(np.argmax(wrong))
        problem = f"{name} {str(texts[row])!r} is not a date with a time of day"
        raise ReadingError(problem, place=table.place(row))


def _nanoseconds(ticks: Integers, name: str) -> Integers:
    """Ticks of 100 ns in nanoseconds, counted from the first so that they fit into 64 bits."""
    since: Integers = ticks - ticks.min()
    if since.max() > np.iinfo(np.int64).max // NANOSECONDS_PER_TICK:
        raise ReadingError(f"{name} spans more than 290 years")
    return since * NANOSECONDS_PER_TICK


def _without_others(events: pd.DataFrame, unit: str) -> EventFile:
    """Leave out events that browsers send in addition to presses and releases, and count them."""
    types = {value: plain(value) for value in events["type"].unique()}
    presses = PRESS in {kind_of(name) for name in types.values()}
    beside = BESIDE if presses else BESIDE - {"keypress"}
    other = events["type"].isin([value for value, name in types.items() if name in beside])
    counts = events["type"][other].astype(object).map(types).value_counts()
    left_out = {str(name): int(n) for name, n in counts.items()}
    kept = events.loc[~other].reset_index(drop=True) if left_out else events
    if not presses:
        kept["type"] = kept["type"].astype(object).map(types).replace("keypress", "press")
    return EventFile(kept, unit, left_out)
