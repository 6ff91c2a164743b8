"""Reads tables from files without conversions: text stays text, and every row knows its line.

The caller, who knows the columns, decides on types.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from keydyn.arrays import Floats, Integers
from keydyn.datasets.files.published_logs import log_without_header
from keydyn.keystrokes.raw_events import PRESS, RELEASE, kind_of
from keydyn.keystrokes.reading_error import FilePosition, ReadingError, Remedy
from keydyn.keystrokes.schema import COLUMNS, check_keystrokes
from keydyn.regular_files import read_unpacked

# The size in bytes of the largest table that is read, packed or unpacked.
LARGEST_TABLE = 1 << 32
PARQUET_MAGIC = b"PAR1"
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# Seconds since 1970, or parts of them.
STAMP = r"^\s*[0-9]{10,19}(\.[0-9]+)?\s*$"
INFINITE = r"^\s*[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?\s*$"
# Columns of holds and latencies, which are named after their keys.
LATENCY = r"(H|DU|DD|UD|UU)\.."
# Ways in which programs write "no value" into a column of numbers.
NO_VALUE = pa.array(["", "NA", "NaN", "nan", "null", "None"])


@dataclass(frozen=True)
class FileTable:
    """The columns of a file: text if it is CSV, with the file's types if it is Parquet."""

    columns: dict[str, Any]
    records: Integers | None  # number of each CSV row, the header being 1; None for Parquet

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def place(self, row: int) -> FilePosition:
        """The place of a row in the file: its line, or its number if the file has no lines."""
        if self.records is None:
            return FilePosition("row", row + 1)
        breaks = sum(_breaks(column.slice(0, row)) for column in self.columns.values())
        return FilePosition("line", int(self.records[row]) + breaks)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text, as all columns of a CSV file do."""
        return _is_text(self.columns[name].type)

    def checked(self, keystrokes: pd.DataFrame, rows: Integers, negative_holds: bool = False) -> pd.DataFrame:
        """Check keystrokes made from the table; `rows` holds the row that each one comes from."""
        try:
            return check_keystrokes(keystrokes, negative_holds=negative_holds)
        except ReadingError as error:
            row = error.finding.place
            raise error.changed(place=row and self.place(int(rows[row.number]))) from None

    def numbers(self, name: str, decimal: str = ".") -> Floats:
        """A column as numbers, NaN where there is no value; a `ReadingError` names the first non-number."""
        column = self.columns[name]
        if self.is_text(name):
            return self._parsed(name, column, decimal)
        kind = column.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        # A column without any values has no type of its own.
        if not (numeric or pa.types.is_null(kind)):
            raise ReadingError(f"{name} holds {column.type}, not numbers")
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)

    def _parsed(self, name: str, column: Any, decimal: str) -> Floats:
        text = column.cast(pa.string())
        if decimal != ".":
            text = pc.replace_substring(text, decimal, ".")
        text = pc.if_else(pc.is_in(text, value_set=NO_VALUE), None, text)
        try:
            # What Arrow reads is a number; it also reads infinities, but no sign or space before a number.
            numbers = text.cast(pa.float64())
            if pc.all(pc.is_finite(numbers)).as_py() is not False:
                return np.asarray(numbers.to_numpy(), np.float64)
        except pa.ArrowException:
            pass
        bad = np.flatnonzero(pc.invert(pc.match_substring_regex(text, NUMBER)).fill_null(False).to_numpy())
        if len(bad):
            self._refuse_number(int(bad[0]), name, text[int(bad[0])].as_py(), decimal)
        plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"^\+", "")
        return np.asarray(plain.cast(pa.float64()).to_numpy(), np.float64)

    def _refuse_number(self, row: int, name: str, value: str, decimal: str) -> None:
        remedies = []
        if value.strip() == name:
            remedies.append(Remedy("the header is repeated there"))
        elif "," in value and decimal == ".":
            remedies.append(Remedy("{} reads decimal commas", {"decimal": ","}))
        problem = "is infinite" if re.match(INFINITE, value) else "is not a number"
        raise ReadingError(f"{name} {value!r} {problem}", *remedies, place=self.place(row))


def read_table(path: Path) -> FileTable:
    """The columns of a file: CSV, JSON lines or Parquet, plain or gzipped."""
    return parse_table(read_unpacked(path, LARGEST_TABLE))


def parse_table(
    contents: bytes,
    separator: str = ",",
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
    largest: int = LARGEST_TABLE,
) -> FileTable:
    """The columns in the unpacked contents of a file; `header` names them if the file does not.

    A Parquet file that would take more than `largest` bytes of memory is a `ReadingError`.
    """
    if contents.startswith(PARQUET_MAGIC):
        return _read_parquet(contents, largest)
    if contents.startswith(b"PK\x03\x04"):
        raise ReadingError("it is a spreadsheet or a zip archive: save it as CSV, or unpack it")
    text = _decoded(contents, encoding)
    if re.match(r"\s*[{[]", text):
        return _read_json(text)
    if header is None and (log := log_without_header(text)) is not None:
        separator, header = log.separator, log.columns
    return _read_csv(text, separator, header)


def _read_parquet(contents: bytes, largest: int) -> FileTable:
    try:
        file = pyarrow.parquet.ParquetFile(pa.BufferReader(contents))
        _refuse_large(file.metadata, largest)
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise ReadingError(f"it is not a Parquet file, or it is truncated: {error}") from None
    return _typed(table)


def _typed(table: Any) -> FileTable:
    """A table whose columns have types already."""
    _refuse_twice(table.column_names)
    if table.num_rows == 0:
        raise ReadingError("there are no rows in it")
    return FileTable(dict(zip(table.column_names, table.columns, strict=True)), None)


def _read_json(text: str) -> FileTable:
    """Read JSON lines, one object per line, or a list of objects."""
    try:
        if text.lstrip().startswith("["):
            rows = json.loads(text)
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("not every element of the list is an object")
            names = dict.fromkeys(name for row in rows for name in row)
            return _typed(pa.table({name: [row.get(name) for row in rows] for name in names}))
        return _typed(pyarrow.json.read_json(pa.BufferReader(text.encode())))
    except (ValueError, RecursionError, pa.ArrowException) as error:
        raise ReadingError(f"it begins like JSON, but cannot be read as JSON lines: {error}") from None


def _refuse_large(described: Any, largest: int) -> None:
    """Refuse files that would not fit into memory: a repeated value packs to almost nothing."""
    packed = sum(described.row_group(g).total_byte_size for g in range(described.num_row_groups))
    size = max(packed, 8 * described.num_rows * described.num_columns)
    if size > largest:
        raise ReadingError(f"it would take {size:,} bytes of memory; at most {largest:,} are read")


def _decoded(contents: bytes, encoding: str) -> str:
    try:
        return contents.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise ReadingError(f"there is no encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        if contents.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ReadingError("it is in UTF-16", Remedy("give {}", {"encoding": "utf-16"})) from None
        line = contents.count(b"\n", 0, error.start) + 1
        raise ReadingError(
            f"byte 0x{contents[error.start]:02x} is not {encoding}",
            Remedy("if it holds Western European letters, give {}", {"encoding": "latin-1"}),
            place=FilePosition("line", line),
        ) from None


def _read_csv(text: str, separator: str, names: Sequence[str] | None) -> FileTable:
    if len(separator) != 1:
        raise ReadingError(f"the separator must be one character, not {separator!r}")
    header = _first_line(text)
    _refuse_header(text, header)
    _refuse_other_separator(text, header, separator)
    if names is not None:
        header = separator.join(_quoted(name, separator) for name in names)
        text = f"{header}\n{text}"
    read = _parsed_csv(text, separator, header.count(separator) + 1, first_line=0 if names else 1)
    columns = [_unpadded(column) if column[0].as_py().startswith(" ") else column for column in read.columns]
    first = [column[0].as_py().strip() for column in read.columns]
    if names is None:
        _refuse_values(first)
    first = _numbered(first)
    _refuse_twice(first)
    kept = _filled(columns)
    if len(kept) == 0:
        raise ReadingError("it has a header but no rows")
    all_kept = len(kept) == read.num_rows - 1
    rows = [column.slice(1) if all_kept else column.take(kept) for column in columns]
    return FileTable(dict(zip(first, rows, strict=True)), kept + (1 if names is None else 0))


def _filled(columns: list[Any]) -> Integers:
    """The rows below the header that are not empty."""
    filled = np.zeros(len(columns[0]), dtype=bool)
    filled[0] = True
    for column in columns:
        if filled.all():
            break
        filled |= pc.not_equal(column, "").to_numpy()
    return np.flatnonzero(filled)[1:]


def _parsed_csv(text: str, separator: str, n_columns: int, first_line: int) -> Any:
    """All values as text, including the header."""
    wrong_rows = []

    def keep_wrong(row: Any) -> str:
        wrong_rows.append(row)
        return "skip"

    try:
        read = pyarrow.csv.read_csv(
            pa.BufferReader(text.encode()),
            pyarrow.csv.ReadOptions(use_threads=False, autogenerate_column_names=True),
            pyarrow.csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=keep_wrong,
            ),
            pyarrow.csv.ConvertOptions(column_types={f"f{i}": pa.string() for i in range(n_columns)}),
        )
    except pa.ArrowException as error:
        problem = str(error)
        if "straddl" in problem:
            problem = "a quotation mark opens a value that is never closed; as a key, write it as " + '""""'
        raise ReadingError(f"it cannot be read as CSV: {problem}") from None
    if wrong_rows:
        # The separator's own key in Python's quotation marks, as many loggers write it.
        sign = re.escape(separator)
        quoted = re.sub(rf"(?<![^{sign}\n])('{sign}')(?=[{sign}\r\n])", r'"\1"', text)
        if quoted != text:
            return _parsed_csv(quoted, separator, n_columns, first_line)
        _refuse_row(wrong_rows[0], read, first_line)
    return read


def _first_line(text: str) -> str:
    return re.match(r"[^\r\n]*", text)[0]  # type: ignore[index]


def _refuse_header(text: str, header: str) -> None:
    """Raise a `ReadingError` if the first line cannot be a CSV header."""
    line = FilePosition("line", 1)
    if not text or text.isspace():
        raise ReadingError("it is empty")
    if not header.strip():
        raise ReadingError("it is empty, but must be the header", place=line)
    if "\0" in header:
        # If UTF-16 is read as single bytes, about every second character is a zero.
        if header[:200].count("\0") <= 0.3 * len(header[:200]):
            raise ReadingError("it is not text: CSV, JSON lines and Parquet are read")
        # The zero comes first in big-endian text.
        likely = "utf-16-be" if header.startswith("\0") else "utf-16-le"
        remedy = Remedy("give {}", {"encoding": likely})
        raise ReadingError("it holds NUL characters, as UTF-16 does", remedy, place=line)
    if header.startswith(("#", "<")):
        what = "a comment" if header.startswith("#") else "a web page or XML"
        raise ReadingError(f"it is {what}, not the names of columns: {header[:60]!r}", place=line)


def _unpadded(column: Any) -> Any:
    """Remove the leading space of a column in which all values have one: it belongs to the separator."""
    if not pc.all(pc.or_(pc.starts_with(column, " "), pc.equal(column, ""))).as_py():
        return column
    return pc.utf8_slice_codeunits(column, 1)


def _quoted(name: str, separator: str) -> str:
    return '"' + name.replace('"', '""') + '"' if separator in name or '"' in name else name


def _refuse_values(first: list[str]) -> None:
    """Refuse a first line that holds two numbers or a time stamp instead of a header."""
    numbers = [re.match(NUMBER, value) is not None for value in first]
    if sum(numbers) >= min(2, len(first)) or any(re.match(STAMP, value) for value in first):
        names = _likely_header(first, numbers)
        raise ReadingError(
            f"it holds values where the names of the columns should be ({', '.join(map(repr, first))})",
            Remedy(f"name all {len(first)} columns, for instance {{}}", {"header": names}),
            place=FilePosition("line", 1),
        )


def _likely_header(first: list[str], numbers: list[bool]) -> list[str]:
    """Likely names for the columns of this first row: keystrokes, events, or numbers."""
    if len(first) == len(COLUMNS) and numbers[3:] == [True, True] and float(first[3]) <= float(first[4]):
        return list(COLUMNS)
    # 'd' in quotation marks is a key, not the type "down".
    types = [kind_of(value) in (PRESS, RELEASE) and not value.startswith("'") for value in first]
    if len(first) == 3 and types.count(True) == 1 and numbers.count(True) >= 1:
        time = max((n for n in range(3) if numbers[n] and not types[n]), default=None)
        if time is not None:
            return ["type" if types[n] else "time" if n == time else "key" for n in range(3)]
    return [f"c{n + 1}" for n in range(len(first))]


def _refuse_other_separator(text: str, header: str, separator: str) -> None:
    """Refuse a file whose first two lines hold another separator equally often."""
    second = re.compile(r"[\r\n]*([^\r\n]*)").match(text, len(header))[1]  # type: ignore[index]
    likely = max(SEPARATORS, key=lambda sign: header.count(sign) * (header.count(sign) == second.count(sign)))
    if separator not in header and 0 < header.count(likely) == second.count(likely):
        remedy = Remedy("give {}", {"separator": likely})
        raise ReadingError(f"its columns are separated by {SEPARATORS[likely]}", remedy)


def _numbered(names: list[str]) -> list[str]:
    """Number repeated columns of latencies of the same key or pair: H.l, H.l.1."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        again = seen[name] and re.match(LATENCY, name)
        found.append(f"{name}.{seen[name]}" if again else name)
        seen[name] += 1
    return found


def _refuse_twice(names: list[str]) -> None:
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ReadingError(f"more than one column is called {', '.join(twice)}")


def _refuse_row(row: Any, read: Any, first_line: int) -> None:
    """Report the first row with too few or too many values; all rows before it were read."""
    breaks = sum(_breaks(column.slice(0, row.number - 1)) for column in read.columns)
    raise ReadingError(
        f"there are {row.actual_columns} values for {row.expected_columns} columns; a value that holds a "
        'separator, a quotation mark or a line break must be in quotation marks ("," and """")',
        place=FilePosition("line", row.number - 1 + first_line + breaks),
    )


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _breaks(column: Any) -> int:
    """The number of line breaks inside quoted values."""
    return int(pc.sum(pc.count_substring(column, "\n")).as_py() or 0)
