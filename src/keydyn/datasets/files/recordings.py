"""Loads your own recordings from CSV, JSON lines or Parquet into the schema, and saves them without loss."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.atomic import replacing
from keydyn.datasets.files.file_form import AsRead, FileForm
from keydyn.datasets.files.file_tables import LARGEST_TABLE, PARQUET_MAGIC, FileTable, parse_table
from keydyn.datasets.files.layouts import layout_of
from keydyn.datasets.files.two_tables import digest_of, read_two_tables, sections_beside
from keydyn.keystrokes.cleaning import CleaningReport, CleaningRules, clean
from keydyn.keystrokes.one_sample import SHORTEST
from keydyn.keystrokes.quality import impossible_in_words, nothing_impossible
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import (
    COLUMNS,
    NEGATIVE_HOLD,
    SCATTERED,
    UNORDERED,
    check_keystrokes,
    check_unit,
    sample_starts,
)
from keydyn.regular_files import UnusableFileError, read_open, read_unpacked

# Files with fewer rows are too short to judge.
FEW_ROWS = 5
# The least share of releases before their presses at which the two columns seem swapped.
MOST_SWAPPED = 0.9
# The least share of presses at the same time as the one before at which a clock is considered stopped.
STOPPED = 0.75
SHOWN = 5
STANDARD_INPUT = "standard input"
FORMATS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, eq=False)
class Recording:
    """A file that was read, with the facts known about it."""

    keystrokes: pd.DataFrame  # in the schema
    name: str  # name of the file
    sha256: str  # checksum of its contents, unpacked
    unit: str  # unit of its times
    names_users: bool  # whether it says who typed; otherwise `user` is "unknown" everywhere
    cleaning: CleaningReport | None  # what cleaning left out, if rules were given
    # impossible times due to the file's clock or order: user, reason, count
    impossible: pd.DataFrame = field(default_factory=nothing_impossible)


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
    r"""Load keystrokes in the schema from CSV, JSON lines or Parquet, plain or gzipped, or an open file.

    `columns` maps the schema's names to those in the file, {"keyname": "key", ...}. `unit` is the unit of the
    file's times: "s", "ms", "us" or "ns"; by default it is inferred for times that count from 1970, and "ms"
    for others. `user` and `session` replace missing columns, and `header` lists the names of all columns if
    the file has no header line. Further columns are kept, either all or those in `others`; a column with
    numbers must hold nothing else. Key names are text: "1" and "NA" are keys. An empty release time means
    that the release was not seen. With `sort`, rows are sorted by user, session and press, so that their
    order in the file does not matter.

    Other layouts are recognised by their columns: tables of holds and latencies with a row per sample (H.KEY,
    DD.KEY.KEY and UD.KEY.KEY, as in the CMU password data, or DU.KEY.KEY, as in KeyRecs), latencies of pairs
    of keys (KeyRecs' free text), and the two tables of the Aalto mobile set. Unless `unit` is given, the unit
    of holds and latencies is the one in which the median hold is plausible.

    A `ReadingError`, which is a `ValueError`, names the file, the column and the line; line 1 is the header.
    Impossible values in a file of another layout, such as releases before their presses, are counted by user
    in a warning.

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
    recording = read_recording(path, form)
    for text in impossible_in_words(recording.impossible):
        warnings.warn(f"{recording.name}: {text}", stacklevel=2)
    return recording.keystrokes


def read_recording(
    source: str | PathLike[str] | BinaryIO,
    form: FileForm,
    rules: CleaningRules | None = None,
    anonymous: bool = False,
) -> Recording:
    """Read a file as `load_recordings` does, with all facts known about it; `rules` clean it.

    With `anonymous`, the file may lack users, and a file without a column `session` is a single sample.
    """
    with naming(source) as name:
        check_unit(form.unit or "ms")
        read, digest = _read(source, form, anonymous)
        keystrokes = _checked(read, form, rules or CleaningRules())
        if form.by_command:
            refuse_stopped_clocks(keystrokes)
        if rules is not None and (rules.keys or rules.pauses):
            keystrokes["recorded_session"] = keystrokes["session"]
        cleaned, report = (keystrokes, None) if rules is None else clean(keystrokes, rules)
        return Recording(cleaned, name, digest, read.unit, read.names_users, report, read.impossible)


def _read(source: str | PathLike[str] | BinaryIO, form: FileForm, anonymous: bool) -> tuple[AsRead, str]:
    """The contents of a file, read by its layout, and their SHA-256, unpacked."""
    if (sections := sections_beside(source)) is not None:
        path = sections.with_name(Path(str(source)).name)
        return read_two_tables(path, sections), digest_of(path)
    contents = _contents(source)
    table = parse_table(contents, form.separator, form.encoding, form.header)
    return layout_of(table, form).read(table, form, anonymous), sha256(contents).hexdigest()


@contextmanager
def naming(source: str | PathLike[str] | BinaryIO) -> Iterator[str]:
    """Yield the name of a file; a `ReadingError` from the block names the file."""
    name = str(source) if isinstance(source, (str, PathLike)) else STANDARD_INPUT
    try:
        yield name
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {name}") from None
    except ReadingError as error:
        # The error already names a file inside a folder.
        raise error.changed(source=error.finding.source or name) from None
    except ValueError as error:
        raise ReadingError(str(error)).changed(source=name) from None


@contextmanager
def contents_of(source: str | PathLike[str] | BinaryIO) -> Iterator[tuple[bytes, str]]:
    """Yield the unpacked contents of a file, and its name; a `ReadingError` from the block names the file."""
    with naming(source) as name:
        yield _contents(source), name


def _contents(source: str | PathLike[str] | BinaryIO) -> bytes:
    if not isinstance(source, (str, PathLike)):
        return read_open(source, LARGEST_TABLE)
    path = Path(source)
    try:
        contents = read_unpacked(path, LARGEST_TABLE)
    except UnusableFileError as error:
        remedies = (Remedy("give {} to read standard input", {"file": "-"}),) if path.is_fifo() else ()
        raise ReadingError(str(error), *remedies) from None
    if path.suffix == ".parquet" and not contents.startswith(PARQUET_MAGIC):
        raise ReadingError("it is not a Parquet file, or it is truncated")
    return contents


def _checked(read: AsRead, form: FileForm, rules: CleaningRules) -> pd.DataFrame:
    """The keystrokes checked, and sorted if requested; a `ReadingError` suggests remedies."""
    frame, rows = read.frame, read.rows
    if form.sort:
        if not rules.equal_presses:
            _refuse_repeated(frame, read.table)
        order = in_order(frame)
        frame, rows = frame.iloc[order], rows[order]
    try:
        return read.table.checked(frame, rows, negative_holds=rules.negative_holds)
    except ReadingError as error:
        raise error.changed(remedies=tuple(_remedies(error.finding.kind, read))) from None


def _refuse_repeated(frame: pd.DataFrame, table: FileTable) -> None:
    """Refuse rows that occur twice, as in a file appended to itself: sorting would interleave them."""
    again = frame.duplicated(list(COLUMNS)).to_numpy()
    if again.any():
        raise ReadingError(
            f"this row is the same as one above it; so are {int(again.sum()) - 1} others, which were copied",
            Remedy("{} leaves the copies out", {"clean": True}),
            place=table.place(int(np.argmax(again))),
        )


def _remedies(kind: str, read: AsRead) -> Iterator[Remedy]:
    """Remedies for rows that are not in order."""
    if kind == NEGATIVE_HOLD and _swapped(read.frame):
        yield Remedy(
            "this is so in nearly all rows: if the names of the two columns are swapped, give {}",
            {"columns": {"timepress": "timerelease", "timerelease": "timepress"}},
        )
    elif kind == NEGATIVE_HOLD:
        yield Remedy("{} leaves such rows out", {"clean": True})
    elif kind == SCATTERED and not read.names_users:
        yield Remedy("there is no column of users: do sessions of several people have the same number?")
    elif kind == UNORDERED and _intervals(read.frame):
        yield Remedy(
            "these look like times between keys, and not like times: such columns are called hold, flight "
            "and interval, {} gives the file's own names",
            {"columns": ...},
        )
    elif kind in (SCATTERED, UNORDERED):
        does = "puts them together" if kind == SCATTERED else "sorts every sample by press"
        yield Remedy(f"{{}} {does}", {"sort": True})
        if not read.has_sessions:
            yield Remedy("a file without a column session is a single sample")


def refuse_stopped_clocks(keystrokes: pd.DataFrame) -> None:
    """Raise a `ReadingError` naming users most of whose presses have the same time as the one before."""
    users = keystrokes["user"].to_numpy()
    intervals = np.diff(keystrokes["timepress"].to_numpy(), prepend=np.nan)
    intervals[sample_starts(keystrokes)] = np.nan
    there = ~np.isnan(intervals)
    by_user = pd.Series(intervals[there] == 0).groupby(users[there], sort=False)
    share, count = by_user.mean(), by_user.size()
    stopped = share.index[(share >= STOPPED) & (count >= FEW_ROWS)].tolist()
    if stopped:
        who = f"users {', '.join(map(str, stopped[:SHOWN]))}" if len(stopped) > 1 else f"user {stopped[0]}"
        more = f" and {len(stopped) - SHOWN} more" if len(stopped) > SHOWN else ""
        raise ReadingError(
            f"the clock of {who}{more} stands still or is too coarse: {share[stopped].mean():.0%} of the "
            "presses have the time of the one before, and nothing can be learnt from that"
        )


def _intervals(frame: pd.DataFrame) -> bool:
    """Whether values read as times are intervals: when sorted, they are closer together than keys can be."""
    press = frame["timepress"].sort_values()
    steps = press.groupby(frame["user"], sort=False).diff()
    return len(frame) >= FEW_ROWS and bool(steps.median() < SHORTEST)


def _swapped(frame: pd.DataFrame) -> bool:
    """Whether most releases precede their presses, which suggests that the two columns are swapped."""
    before = frame["timerelease"] < frame["timepress"]
    return len(frame) >= FEW_ROWS and bool(before.mean() >= MOST_SWAPPED)


def in_order(frame: pd.DataFrame) -> Integers:
    """The order of rows by user, session, press, release and key. Numbers sort by value: 2 is before 10."""
    keys = frame["keyname"].rank(method="dense").to_numpy()
    times = (frame[name].to_numpy() for name in ("timerelease", "timepress"))
    order: Integers = np.lexsort((keys, *times, _places(frame["session"]), _places(frame["user"])))
    return order


def _places(labels: pd.Series[Any]) -> Integers:
    """The rank of each label among all."""
    codes, distinct = pd.factorize(labels)
    place = np.empty(len(distinct), dtype=np.int64)
    place[sorted(range(len(distinct)), key=lambda n: _natural(distinct[n]))] = np.arange(len(distinct))
    return place[codes]


def _natural(label: Any) -> tuple[Any, ...]:
    """A sort key: numbers by value, before any text; text with the numbers in it by value."""
    if not isinstance(label, str):
        return (0, float(label), [], "")
    parts = re.split(r"([0-9]+)", label)
    return (1, 0.0, [(part, 0) if n % 2 == 0 else ("", int(part)) for n, part in enumerate(parts)], label)


def save_recordings(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write keystrokes to .csv, .csv.gz or .parquet, so that `load_recordings` returns the same frame.

    The file is read back before it is moved into place; missing folders are created. CSV has no types, so
    users that are text but look like numbers would not be restored, and are refused; Parquet accepts them.

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
    """Quoting that protects carriage returns, which CSV readers take for line ends, but pandas does not."""
    texts = (frame[column].astype(str) for column in frame.columns if frame[column].dtype.kind not in "iuf")
    returns = any(text.str.contains("\r", regex=False).any() for text in texts)
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def _compare(checked: pd.DataFrame, written: Path, path: Path) -> None:
    """Raise a `ValueError` if the written file does not read back as the same frame."""
    instead = "" if path.suffix == ".parquet" else "; save it as .parquet"
    try:
        back = load_recordings(written)
    except ReadingError as error:
        problem = error.changed(source="")
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
