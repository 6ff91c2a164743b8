"""Finds the columns of the schema in a file, and converts their values to the schema's types."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from keydyn.arrays import Floats, Integers
from keydyn.datasets.files.file_form import ONLY, UNKNOWN, FileForm
from keydyn.datasets.files.file_tables import NO_VALUE, NUMBER, FileTable
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, milliseconds, unit_of_stamps

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
# Whole numbers that fit into 64 bits.
WHOLE = r"^-?([0-9]{1,18}|[1-8][0-9]{18})$"
# Words in the names of columns that are likely to be the schema's, the likeliest first. Times come first,
# because "keydown" is not the name of a key.
LIKELY = {
    "timepress": ("timepress", "press", "pressed", "down", "keydown"),
    "timerelease": ("timerelease", "release", "released", "up", "keyup"),
    "user": ("user", "userid", "username", "subject", "participant", "person", "typist"),
    "session": ("session", "sessionid", "sessionindex", "sample", "trial", "attempt", "repetition", "rep"),
    "keyname": ("keyname", "key", "keycode", "code", "character", "char", "letter"),
}
# Names of columns that hold durations instead of times.
DURATIONS = re.compile(r"hold|dwell|flight|latenc|interval|duration|delay|elapsed", re.IGNORECASE)


def renamed(table: FileTable, columns: Mapping[str, str], others: Collection[str] | None) -> FileTable:
    """Rename columns to the schema's names, and keep the other columns that are wanted."""
    there = table.columns
    for ours, theirs in columns.items():
        if theirs not in there:
            raise ReadingError(f"no column {theirs!r} for {ours}; {there_are(there)}")
    chosen = {ours: there[theirs] for ours, theirs in columns.items()}
    rest = [name for name in there if name not in columns.values()]
    for name in others or ():
        if name not in rest and name not in chosen:
            raise ReadingError(f"no column {name!r}, which is in `others`; {there_are(there)}")
    for name in rest:
        if others is not None and name not in others and (name not in COLUMNS or name in chosen):
            continue
        if name in chosen:
            raise ReadingError(
                f"the file has a column {name!r} as well as {columns[name]!r}, which is to become {name}",
                Remedy("{} names the other columns to keep", {"others": ...}),
            )
        chosen[name] = there[name]
    return FileTable(chosen, table.records)


def refuse_absent(table: FileTable, constants: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    """Raise a `ReadingError` that lists the absent columns, with a remedy that provides all of them."""
    absent = [name for name in COLUMNS if name not in table.columns and constants.get(name) is None]
    if not absent:
        return
    likely = likely_names(table.columns, absent)
    problem = f"no column {', '.join(map(repr, absent))}; {there_are(table.columns)}"
    if any(name not in likely and name not in SAMPLE for name in absent):
        remedies = [Remedy("{} gives the file's own names", {"columns": ...})]
        if absent == ["timerelease"]:
            remedies.append(Remedy("without releases there are no hold times to learn from"))
        raise ReadingError(problem, *remedies)
    arguments: dict[str, Any] = {"columns": dict(columns) | likely} if likely else {}
    # One value for all rows: the file of a single person, or with a single sample of each person.
    constant = {"user": "NAME", "session": 0}
    arguments |= {name: constant[name] for name in SAMPLE if name in absent and name not in likely}
    condition = " if that is what they are called" if likely else ""
    raise ReadingError(problem, Remedy("give {}" + condition, arguments))


def likely_names(there: Collection[str], absent: Collection[str]) -> dict[str, str]:
    """The columns that are likely to be the absent ones, by the schema's names in its order."""
    free = [name for name in there if name not in COLUMNS and not DURATIONS.search(name)]
    found: dict[str, str] = {}
    for ours, words in LIKELY.items():
        if ours not in absent:
            continue
        places = {name: _place(name, words) for name in free if name not in found.values()}
        best = min(places, key=places.__getitem__, default=None)
        if best is not None and places[best] < len(words):
            found[ours] = best
    return {name: found[name] for name in COLUMNS if name in found}


def _place(name: str, words: tuple[str, ...]) -> int:
    """The index of the first word that occurs in the name; the number of words if none does."""
    parts = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    parts += ["".join(parts)]
    return next((n for n, word in enumerate(words) if word in parts), len(words))


def there_are(columns: Collection[str]) -> str:
    """A phrase that lists the columns of a file."""
    return f"there are {', '.join(map(repr, columns))}"


def samples_in(table: FileTable, form: FileForm, anonymous: bool) -> tuple[pd.DataFrame, dict[str, str]]:
    """User and session of each row, and their columns: those that were named, or the likeliest.

    With `anonymous`, a file without such columns is one sample of an unknown user.
    """
    names = likely_names(table.columns, SAMPLE) | {name: name for name in SAMPLE if name in table.columns}
    names |= {name: form.columns[name] for name in SAMPLE if name in form.columns}
    given: dict[str, Any] = {"user": form.user, "session": form.session}
    default: dict[str, Any] = {"user": UNKNOWN, "session": ONLY} if anonymous else {}
    frame = pd.DataFrame(index=range(len(table)))
    for name in SAMPLE:
        value = default.get(name) if given[name] is None else given[name]
        if name not in names and value is None:
            absent = {"user": "NAME", "session": 0}[name]
            raise ReadingError(
                f"no column {name!r}; {there_are(table.columns)}", Remedy("give {}", {name: absent})
            )
        frame[name] = labels(table, names[name]) if name in names else value
    return frame, names


def labels(table: FileTable, name: str) -> Any:
    """Users or sessions: in CSV, whole numbers if all values are, otherwise text; Parquet has types."""
    column = table.columns[name]
    if not table.is_text(name):
        return _typed_labels(column, name)
    _refuse_empty(table, name)
    untyped = table.records is not None
    return _as_integers(column) if untyped and _all_match(column, INTEGER) else column.to_pandas()


def _typed_labels(column: Any, name: str) -> Any:
    """Numbers of a Parquet file. Whole numbers stored as floats, as in a column with gaps, become whole."""
    if pa.types.is_integer(column.type):
        return column.to_pandas()
    if pa.types.is_floating(column.type):
        values = column.to_pandas()
        return (
            values.astype(np.int64)
            if (values == values.round()).all() and np.isfinite(values).all()
            else values
        )
    raise ReadingError(f"{name} holds {column.type}, not text or numbers")


def key_names(table: FileTable, name: str = "keyname") -> Any:
    """The names of keys as text."""
    column = table.columns[name]
    if table.is_text(name):
        _refuse_empty(table, name)
        return column.to_pandas()
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).to_pandas()
    raise ReadingError(f"{name} holds {column.type}, not text")


def press_and_release(table: FileTable, unit: str | None, decimal: str) -> tuple[Floats, Floats, str]:
    """Press and release times in milliseconds, NaN where missing, and the unit of the file.

    Times are numbers, or dates, which are counted from the first press. By default, the unit follows from the
    size of numbers that count from 1970, and is milliseconds for others.
    """
    try:
        press, release = (table.numbers(name, decimal) for name in ("timepress", "timerelease"))
    except ReadingError as error:
        dates = [dates_of(table, name) for name in ("timepress", "timerelease")]
        if dates[0] is None or dates[1] is None:
            raise error from None
        since = ((each - dates[0].min()) / pd.Timedelta(1, "ms") for each in dates)
        press, release = (times.to_numpy(dtype=np.float64) for times in since)
        return press, release, unit or "ms"
    unit = unit or unit_of_stamps(np.concatenate([press, release])) or "ms"
    return milliseconds(press, unit), milliseconds(release, unit), unit


def dates_of(table: FileTable, name: str) -> pd.Series[Any] | None:
    """A column of dates with times of day; None if it holds anything else."""
    column = table.columns[name]
    if not (table.is_text(name) or pa.types.is_timestamp(column.type)):
        return None
    if table.is_text(name):
        # Python's logging writes 12:30:01,250.
        text = pc.replace_substring(column.cast(pa.string()), ",", ".")
        text = pc.if_else(pc.equal(text, ""), None, text)
        try:
            column = text.cast(pa.timestamp("ns"))
        except pa.ArrowException:
            # It has a time zone, or a format that only pandas can read.
            column = text
    try:
        dates: pd.Series[Any] = pd.to_datetime(column.to_pandas(), format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError):
        return None
    return dates


def _refuse_empty(table: FileTable, name: str) -> None:
    empty = pc.equal(table.columns[name].cast(pa.string()), "").fill_null(True).to_numpy()
    if empty.any():
        raise ReadingError(f"{name} is empty", place=table.place(int(np.argmax(empty))))


def further(table: FileTable, name: str, decimal: str, lenient: bool = False) -> Any:
    """A column of numbers, or of text without any number; a mixture is an error, or text if `lenient`."""
    column = table.columns[name]
    if not table.is_text(name) or table.records is None:
        return column.to_pandas()
    if _all_match(column, INTEGER):
        return _as_integers(column)
    dotted = column if decimal == "." else pc.replace_substring(column, decimal, ".")
    only_text = not pc.any(pc.match_substring_regex(dotted, NUMBER)).as_py()
    if only_text and not pc.all(pc.is_in(column, value_set=NO_VALUE)).as_py():
        return column.to_pandas()
    try:
        return table.numbers(name, decimal)
    except ReadingError as error:
        if lenient:
            return column.to_pandas()
        problem = f"{error.finding.problem}; other lines have numbers"
        leave_out = Remedy("without this column in {} it is left out", {"others": ...})
        raise error.changed(problem=problem, remedies=(*error.finding.remedies, leave_out)) from None


def whole_numbers(table: FileTable, name: str, decimal: str) -> Any:
    """A column of numbers, exact if all are whole: nanoseconds since 1970 exceed a float's precision."""
    column = table.columns[name]
    whole = _all_match(column, WHOLE) if table.is_text(name) else pa.types.is_integer(column.type)
    exact = whole and column.null_count == 0
    return column.cast(pa.int64()).to_numpy() if exact else table.numbers(name, decimal)


def _as_integers(column: Any) -> Any:
    return column.cast(pa.int64()).to_numpy()


def _all_match(column: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column.cast(pa.string()), pattern)).as_py())


def numbers_of(table: FileTable, names: list[str], decimal: str = ".") -> Floats:
    """Columns of numbers, none of them missing, as an array (n, d)."""
    values: Floats = np.column_stack([table.numbers(name, decimal) for name in names])
    missing = np.argwhere(np.isnan(values))
    if len(missing):
        row, column = missing[0]
        raise ReadingError(f"{names[column]} is missing", place=table.place(int(row)))
    return values


def integers_of(table: FileTable, name: str) -> Integers:
    """A column of whole numbers."""
    values: Integers = numbers_of(table, [name])[:, 0].astype(np.int64)
    return values
