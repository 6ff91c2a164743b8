"""Your own recordings: CSV or Parquet in, the schema out, and back again without loss."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from keydyn.atomic import replacing
from keydyn.datasets.table_files import NO_VALUE, NUMBER, Table, read_table
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, check_keystrokes
from keydyn.keystrokes.units import milliseconds

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
LIKELY = {
    "user": ("user", "subject", "participant"),
    "session": ("session", "sample"),
    "keyname": ("key",),
    "timepress": ("press", "down"),
    "timerelease": ("release", "up"),
}
HINTS = {
    "are not contiguous": "`sort=True` puts them together",
    "is before the press above it": "`sort=True` sorts every sample by press",
}
FORMATS = (".csv", ".csv.gz", ".parquet")


def load_recordings(
    path: str | PathLike[str],
    columns: Mapping[str, str] | None = None,
    unit: str = "ms",
    *,
    user: str | int | None = None,
    session: str | int | None = None,
    others: Collection[str] | None = None,
    sort: bool = False,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
) -> pd.DataFrame:
    """Keystrokes from a CSV file, plain or gzipped, or from a Parquet file, in the schema.

    `columns` gives the names in the file, {"keyname": "key", ...}; `unit` is the unit of its times: "s",
    "ms", "us" or "ns". `user` and `session` replace columns that are not there. Further columns are kept,
    either all or those in `others`; a column that has numbers must have nothing else. Key names are text:
    "1" and "NA" are keys. An empty release time is a release that was not seen.

    A `ValueError` names the file, the column and the line; line 1 is the header.
    """
    path = Path(path)
    try:
        table = _renamed(read_table(path, separator, encoding), columns or {}, others)
        return _keystrokes(table, unit, {"user": user, "session": session}, sort, decimal)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_recordings(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write keystrokes to .csv, .csv.gz or .parquet, so that `load_recordings` returns the same frame.

    The file is read back before it is moved into place; missing folders are created. CSV has no types: users
    that are text but look like numbers would not come back as they were, and are refused; Parquet takes them.
    """
    path = Path(path)
    ending = next((ending for ending in FORMATS if path.name.endswith(ending)), None)
    if ending is None:
        raise ValueError(f"{path}: the name must end in {', '.join(FORMATS)}")
    checked = check_keystrokes(frame)
    with replacing(path) as temporary:
        if ending == ".parquet":
            checked.to_parquet(temporary, index=False)
        else:
            compression = {"method": "gzip", "compresslevel": 6, "mtime": 0} if ending == ".csv.gz" else None
            checked.to_csv(
                temporary,
                index=False,
                lineterminator="\n",
                compression=compression,
                quoting=_quoting(checked),
            )
        _compare(checked, temporary, path)


def _renamed(table: Table, columns: Mapping[str, str], others: Collection[str] | None) -> Table:
    """The columns under the schema's names, and the other columns that are wanted."""
    there = table.columns
    for ours, theirs in columns.items():
        if theirs not in there:
            raise ValueError(f"no column {theirs!r} for {ours}; {_there_are(there)}")
    renamed = {ours: there[theirs] for ours, theirs in columns.items()}
    rest = [name for name in there if name not in columns.values()]
    for name in others or ():
        if name not in rest and name not in renamed:
            raise ValueError(f"no column {name!r}, which is in `others`; {_there_are(there)}")
    for name in rest:
        if others is not None and name not in others and (name not in COLUMNS or name in renamed):
            continue
        if name in renamed:
            raise ValueError(
                f"the file has a column {name!r} as well as {columns[name]!r}, which is to become {name}; "
                "name the columns to keep with `others=`"
            )
        renamed[name] = there[name]
    return Table(renamed, table.records)


def _keystrokes(
    table: Table, unit: str, constants: dict[str, str | int | None], sort: bool, decimal: str
) -> pd.DataFrame:
    for name, constant in constants.items():
        if constant is not None and name in table.columns:
            raise ValueError(f"there is a column {name}; `{name}=` is for files without one")
    _refuse_absent(table, constants)
    frame = pd.DataFrame(index=range(len(table)))
    for name in SAMPLE:
        frame[name] = _labels(table, name) if name in table.columns else constants[name]
    frame["keyname"] = _key_names(table)
    for name in ("timepress", "timerelease"):
        frame[name] = milliseconds(table.numbers(name, decimal), unit)
    for name in table.columns:
        if name not in COLUMNS:
            frame[name] = _further(table, name, decimal)
    order = np.arange(len(frame))
    if sort:
        sample = frame.groupby(SAMPLE, sort=False).ngroup().to_numpy()
        order = np.lexsort((frame["timepress"].to_numpy(), sample))
        frame = frame.iloc[order]
    try:
        return table.checked(frame, order)
    except ValueError as error:
        hint = next((f"; {hint}" for problem, hint in HINTS.items() if problem in str(error)), "")
        raise ValueError(f"{error}{hint}") from None


def _refuse_absent(table: Table, constants: dict[str, str | int | None]) -> None:
    absent = [name for name in COLUMNS if name not in table.columns and constants.get(name) is None]
    if not absent:
        return
    likely = {
        name: other
        for name in absent
        for other in reversed(table.columns)
        if other not in COLUMNS and any(word in other.lower() for word in LIKELY[name])
    }
    hints = [f"give `columns={likely}` if that is what they are called"] if likely else []
    hints += [f"`{name}=` gives one {name} to all rows" for name in SAMPLE if name in absent]
    hints += ["`columns=` maps other names"] if not likely else []
    raise ValueError(
        f"no column {', '.join(map(repr, absent))}; {_there_are(table.columns)}: {'; '.join(hints)}"
    )


def _there_are(columns: Collection[str]) -> str:
    return f"there are {', '.join(map(repr, columns))}"


def _labels(table: Table, name: str) -> Any:
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


def _key_names(table: Table) -> Any:
    column = table.columns["keyname"]
    if table.is_text("keyname"):
        _refuse_empty(table, "keyname")
        return column.to_pandas()
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).to_pandas()
    raise ValueError(f"keyname holds {column.type}, not text")


def _refuse_empty(table: Table, name: str) -> None:
    empty = pc.equal(table.columns[name].cast(pa.string()), "").fill_null(True).to_numpy()
    if empty.any():
        raise ValueError(f"{table.place(int(np.argmax(empty)))}: {name} is empty")


def _further(table: Table, name: str, decimal: str) -> Any:
    """A column of numbers, or of text without any number; a mixture is an error in the file."""
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
        raise ValueError(f"{error}; other lines have numbers. `others=` leaves a column out") from None


def _as_integers(column: Any) -> Any:
    return column.cast(pa.int64()).to_numpy()


def _all_match(column: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column.cast(pa.string()), pattern)).as_py())


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """To CSV readers a lone carriage return ends a line, but pandas does not quote it by default."""
    texts = (frame[column].astype(str) for column in frame.columns if frame[column].dtype.kind not in "iuf")
    returns = any(text.str.contains("\r", regex=False).any() for text in texts)
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def _compare(checked: pd.DataFrame, written: Path, path: Path) -> None:
    """`ValueError` if what was written does not come back as it was."""
    instead = "" if path.suffix == ".parquet" else "; save it as .parquet"
    try:
        back = load_recordings(written)
    except ValueError as error:
        problem = str(error).removeprefix(f"{written}: ")
        raise ValueError(f"{path}: could not be read back: {problem}{instead}") from None
    for column in checked.columns:
        was, is_now = checked[column], back[column]
        if was.equals(is_now):
            continue
        same = (was.astype(object) == is_now.astype(object)) | (was.isna() & is_now.isna())
        if not same.all():
            row = int(np.argmin(same.to_numpy()))
            raise ValueError(
                f"{path}: {column} {was.iloc[row]!r} would be read back as {is_now.iloc[row]!r}{instead}"
            )
