"""The columns of a recording with their types: users, sessions, key names, and whatever else there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from keydyn.arrays import Floats
from keydyn.datasets.files.table_files import NO_VALUE, NUMBER, Table
from keydyn.keystrokes.units import milliseconds

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


def labels(table: Table, name: str) -> Any:
    """Users and sessions: in CSV, whole numbers if all of them are, otherwise text; Parquet has types."""
    column = table.columns[name]
    if not table.is_text(name):
        return _typed_labels(column, name)
    _refuse_empty(table, name)
    untyped = table.records is not None
    return _as_integers(column) if untyped and _all_match(column, INTEGER) else column.to_pandas()


def _typed_labels(column: Any, name: str) -> Any:
    """Numbers of a Parquet file. Whole numbers stored as floats, as in a column with gaps, stay whole."""
    if pa.types.is_integer(column.type):
        return column.to_pandas()
    if pa.types.is_floating(column.type):
        values = column.to_pandas()
        return (
            values.astype(np.int64)
            if (values == values.round()).all() and np.isfinite(values).all()
            else values
        )
    raise ValueError(f"{name} holds {column.type}, not text or numbers")


def key_names(table: Table) -> Any:
    column = table.columns["keyname"]
    if table.is_text("keyname"):
        _refuse_empty(table, "keyname")
        return column.to_pandas()
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).to_pandas()
    raise ValueError(f"keyname holds {column.type}, not text")


def press_and_release(table: Table, unit: str, decimal: str) -> tuple[Floats, Floats]:
    """Times in milliseconds, NaN where there is none: numbers in `unit`, or dates, from the first press."""
    try:
        press, release = (table.numbers(name, decimal) for name in ("timepress", "timerelease"))
    except ValueError as error:
        dates = [dates_of(table, name) for name in ("timepress", "timerelease")]
        if dates[0] is None or dates[1] is None:
            raise error from None
        since = ((each - dates[0].min()) / pd.Timedelta(1, "ms") for each in dates)
        press, release = (times.to_numpy(dtype=np.float64) for times in since)
        return press, release
    return milliseconds(press, unit), milliseconds(release, unit)


def dates_of(table: Table, name: str) -> pd.Series[Any] | None:
    """A column of dates with a time of day; None if it holds anything else."""
    column = table.columns[name]
    if not (table.is_text(name) or pa.types.is_timestamp(column.type)):
        return None
    texts = column.to_pandas()
    if table.is_text(name):
        # Python's logging writes 12:30:01,250.
        texts = texts.astype(object).map(lambda text: str(text).replace(",", "."), na_action="ignore")
        texts = texts.replace("", None)
    try:
        dates: pd.Series[Any] = pd.to_datetime(texts, format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError):
        return None
    return dates


def _refuse_empty(table: Table, name: str) -> None:
    empty = pc.equal(table.columns[name].cast(pa.string()), "").fill_null(True).to_numpy()
    if empty.any():
        raise ValueError(f"{table.place(int(np.argmax(empty)))}: {name} is empty")


def further(table: Table, name: str, decimal: str, lenient: bool = False) -> Any:
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
    except ValueError as error:
        if lenient:
            return column.to_pandas()
        raise ValueError(f"{error}; other lines have numbers. `others=` leaves a column out") from None


def _as_integers(column: Any) -> Any:
    return column.cast(pa.int64()).to_numpy()


def _all_match(column: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column.cast(pa.string()), pattern)).as_py())
