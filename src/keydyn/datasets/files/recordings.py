"""Your own recordings: CSV or Parquet in, the schema out, and back again without loss."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd

from keydyn.atomic import replacing
from keydyn.datasets.files.column_names import likely_names, refuse_absent, renamed
from keydyn.datasets.files.event_files import is_event_table
from keydyn.datasets.files.recording_columns import further, key_names, labels, press_and_release
from keydyn.datasets.files.row_order import in_order
from keydyn.datasets.files.table_files import LARGEST, PARQUET_MAGIC, Table, parse_table
from keydyn.datasets.published import password_layout
from keydyn.keystrokes.cleaning import CleaningReport, CleaningRules, clean
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, check_keystrokes
from keydyn.keystrokes.units import check_unit
from keydyn.regular_files import read_open, read_unpacked

HINTS = {
    "are not contiguous": "`sort=True` puts them together",
    "is before the press above it": "`sort=True` sorts every sample by press",
}
FORMATS = (".csv", ".csv.gz", ".parquet")
# The user of samples that nobody is said to have typed, and the session of a single sample.
UNKNOWN, ONLY = "unknown", 0
# Of fewer rows nothing can be said.
FEW_ROWS = 5
# From this share on, releases before their press are no accident.
MOST_SWAPPED = 0.9
STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class FileForm:
    """How a file is to be read; the attributes are the arguments of `load_recordings`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    user: str | int | None = None
    session: str | int | None = None
    others: Collection[str] | None = None
    sort: bool = False
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    # Whether a further column of numbers and other things is text; otherwise it is an error.
    lenient: bool = False


@dataclass(frozen=True, eq=False)
class Recording:
    """A file that was read.

    Attributes
    ----------
    keystrokes : in the schema; name : what the file is called
    sha256 : of its contents, unpacked; unit : of its times
    names_users : whether it says who typed; otherwise `user` is "unknown" everywhere
    cleaning : what was left out, if rules were given
    """

    keystrokes: pd.DataFrame
    name: str
    sha256: str
    unit: str
    names_users: bool
    cleaning: CleaningReport | None


def load_recordings(
    path: str | PathLike[str] | BinaryIO,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    *,
    user: str | int | None = None,
    session: str | int | None = None,
    others: Collection[str] | None = None,
    sort: bool = False,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""Keystrokes in the schema from CSV, JSON lines or Parquet, plain or gzipped, or from an open file.

    `columns` gives the names in the file, {"keyname": "key", ...}; `unit` is the unit of its times: "s",
    "ms", "us" or "ns", by default "ms". `user` and `session` replace columns that are not there, and `header`
    is a list of all columns' names for a file without a first line of them. Further columns are kept, either
    all or those in `others`; a column that has numbers must have nothing else. Key names are text: "1" and
    "NA" are keys. An empty release time is a release that was not seen. `sort` puts rows in order of user,
    session and press, so that the order in the file does not matter.

    The layout of the CMU password data, a row per sample with columns H.KEY, DD.KEY.KEY and UD.KEY.KEY, is
    recognised; its times are in seconds unless `unit` says otherwise.

    A `ValueError` names the file, the column and the line; line 1 is the header.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn.datasets import load_recordings
    >>> _ = Path("mine.csv").write_text("who,key,down,up\nann,t,0.0,0.081\nann,h,0.142,\n")
    >>> names = {"user": "who", "keyname": "key", "timepress": "down", "timerelease": "up"}
    >>> keystrokes = load_recordings("mine.csv", names, unit="s", session=0)
    >>> keystrokes[["user", "session", "keyname", "timepress", "timerelease"]].values.tolist()
    [['ann', 0, 't', 0.0, 81.0], ['ann', 0, 'h', 142.0, nan]]
    """
    form = FileForm(columns or {}, unit, user, session, others, sort, separator, decimal, encoding, header)
    return read_recording(path, form).keystrokes


def read_recording(
    source: str | PathLike[str] | BinaryIO,
    form: FileForm,
    rules: CleaningRules | None = None,
    anonymous: bool = False,
) -> Recording:
    """The same with all that is known of the file; `rules` clean it.

    With `anonymous` the file need not say who typed, and without a column `session` it is a single sample.
    """
    with contents_of(source) as (contents, name):
        return _read(contents, name, form, rules, anonymous)


@contextmanager
def contents_of(source: str | PathLike[str] | BinaryIO) -> Iterator[tuple[bytes, str]]:
    """The contents of a file, unpacked, and its name; a `ValueError` in the block names the file."""
    name = str(source) if isinstance(source, (str, PathLike)) else STANDARD_INPUT
    try:
        if isinstance(source, (str, PathLike)):
            contents = read_unpacked(Path(source), LARGEST)
        else:
            contents = read_open(source, LARGEST)
        if name.endswith(".parquet") and not contents.startswith(PARQUET_MAGIC):
            raise ValueError("it is not a Parquet file, or it is truncated")
        yield contents, name
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {name}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read(
    contents: bytes, name: str, form: FileForm, rules: CleaningRules | None, anonymous: bool
) -> Recording:
    check_unit(form.unit or "ms")
    table = parse_table(contents, form.separator, form.encoding, form.header)
    constants: dict[str, Any] = {"user": form.user, "session": form.session}
    if password_layout.is_layout(table):
        unit = form.unit or "s"
        frame, rows = password_layout.keystrokes_of(
            table, unit, form.decimal, form.columns.get("user"), form.user
        )
        names_users = True
    else:
        unit = form.unit or "ms"
        table = renamed(table, form.columns, form.others)
        names_users = "user" in table.columns or form.user is not None or not anonymous
        if anonymous:
            # A column that is likely to be the user or the session must be named: samples would run together.
            likely = likely_names(table.columns, SAMPLE)
            constants |= {
                column: value
                for column, value in {"user": UNKNOWN, "session": ONLY}.items()
                if column not in table.columns and constants[column] is None and column not in likely
            }
        frame, rows = _frame(table, unit, constants, form), np.arange(len(table))
    if form.sort and not (rules is not None and rules.equal_presses):
        _refuse_repeated(frame, table)
    if form.sort:
        order = in_order(frame)
        frame, rows = frame.iloc[order], rows[order]
    try:
        keystrokes = table.checked(frame, rows, negative_holds=rules is not None and rules.negative_holds)
    except ValueError as error:
        hint = next((f"; {hint}" for problem, hint in HINTS.items() if problem in str(error)), "")
        if "timerelease is before the press" in str(error):
            hint = _swapped(frame)
        if not names_users and "are not contiguous" in str(error):
            hint = "; there is no column of users: do sessions of several people have the same number?"
        elif hint and "session" not in table.columns and constants["session"] is not None:
            hint += "; a file without a column session is a single sample"
        raise ValueError(f"{error}{hint}") from None
    cleaned, report = (keystrokes, None) if rules is None else clean(keystrokes, rules)
    return Recording(cleaned, name, sha256(contents).hexdigest(), unit, names_users, report)


def _refuse_repeated(frame: pd.DataFrame, table: Table) -> None:
    """Rows that occur twice, as in a file that was appended to itself, would be put side by side."""
    again = frame.duplicated(list(COLUMNS)).to_numpy()
    if again.any():
        raise ValueError(
            f"{table.place(int(np.argmax(again)))}: this row is the same as one above it; so are "
            f"{int(again.sum()) - 1} others, which were copied"
        )


def _swapped(frame: pd.DataFrame) -> str:
    """What to do where most releases are before their press: the columns have each other's names."""
    before = frame["timerelease"] < frame["timepress"]
    if len(frame) < FEW_ROWS or before.mean() < MOST_SWAPPED:
        return ""
    return (
        "; this is so in nearly all rows: if the names of the two columns are swapped, give "
        "`columns={'timepress': 'timerelease', 'timerelease': 'timepress'}`"
    )


def _frame(table: Table, unit: str, constants: Mapping[str, Any], form: FileForm) -> pd.DataFrame:
    """The schema's columns and the others, in the order of the file; not checked yet."""
    for name, constant in constants.items():
        if constant is not None and name in table.columns:
            raise ValueError(f"there is a column {name}; `{name}` is for files without one")
    if is_event_table(table):
        raise ValueError(
            "it holds presses and releases in rows of their own; `keydyn pair` and "
            "keydyn.keystrokes.pair_events make keystrokes of them"
        )
    refuse_absent(table, constants, form.columns)
    frame = pd.DataFrame(index=range(len(table)))
    for name in SAMPLE:
        frame[name] = labels(table, name) if name in table.columns else constants[name]
    frame["keyname"] = key_names(table)
    frame["timepress"], frame["timerelease"] = press_and_release(table, unit, form.decimal)
    for name in table.columns:
        if name not in COLUMNS:
            frame[name] = further(table, name, form.decimal, form.lenient)
    return frame


def save_recordings(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write keystrokes to .csv, .csv.gz or .parquet, so that `load_recordings` returns the same frame.

    The file is read back before it is moved into place; missing folders are created. CSV has no types: users
    that are text but look like numbers would not come back as they were, and are refused; Parquet takes them.

    Examples
    --------
    >>> from keydyn.datasets import load_recordings, make_typists, save_recordings
    >>> keystrokes = make_typists(2, 3)
    >>> save_recordings(keystrokes, "typing.parquet")
    >>> load_recordings("typing.parquet").equals(keystrokes)
    True
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
