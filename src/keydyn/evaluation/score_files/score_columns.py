"""Fast reading of columns of text files; errors name the line.

Files are parsed as a whole. Only if that fails, or a score is not a finite number, they are read line by line
to find the error.
"""

from __future__ import annotations

import csv as plain
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from keydyn.arrays import Floats

SCORE = "score"
# Separators of columns: commas, or any white space.
COMMA, SPACE = ",", " "


def first_line(path: Path) -> str:
    """The first line that is not blank; an empty or binary file is a `ValueError`."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for line in lines:
                if line.strip():
                    return line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8") from None
    raise ValueError(f"{path} is empty")


def read_columns(path: Path, names: Sequence[str], separator: str, header: bool = False) -> pd.DataFrame:
    """Read the columns of a file as text, and `score` as finite numbers; `header` skips the first line."""
    types = {name: pa.dictionary(pa.int32(), pa.string()) for name in names} | {SCORE: pa.float64()}
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=list(names), skip_rows=int(header)),
            csv.ParseOptions(delimiter=separator, quote_char='"' if separator == COMMA else False),
            csv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=False, include_columns=list(names)
            ),
        )
        frame: pd.DataFrame = table.unify_dictionaries().to_pandas()
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        # Columns may be separated by tabs or several spaces, which the fast reader does not support.
        frame = _line_by_line(path, names, separator, header)
    if not np.isfinite(frame[SCORE].to_numpy(dtype=np.float64)).all():
        frame = _line_by_line(path, names, separator, header)
    if len(frame) == 0:
        raise ValueError(f"{path} has no scores")
    return frame


def read_numbers(path: Path) -> Floats:
    """Read one score per line, which is in the last column."""
    first_line(path)
    try:
        scores = pd.read_csv(path, header=None, names=[SCORE], dtype=np.float64, skip_blank_lines=True)[SCORE]
        numbers = scores.to_numpy(dtype=np.float64)
        if np.isfinite(numbers).all():
            return numbers
    except (ValueError, pd.errors.ParserError):
        pass
    read = [number_of(text.replace(COMMA, SPACE).split()[-1], path, line) for line, text in _lines(path)]
    return np.array(read, dtype=np.float64)


def number_of(text: str, path: Path, line: int) -> float:
    """Convert a text to a finite number; a `ValueError` names the file and the line."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{path}, line {line}: the score {text!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{path}, line {line}: the score is {text}, which is not finite")
    return number


def _line_by_line(path: Path, names: Sequence[str], separator: str, header: bool) -> pd.DataFrame:
    """Like `read_columns`, but slower; a `ValueError` names the line that cannot be used."""
    rows: list[list[str]] = []
    for line, text in _lines(path)[int(header) :]:
        cells = next(plain.reader([text])) if separator == COMMA else text.split()
        if len(cells) != len(names):
            raise ValueError(
                f"{path}, line {line}: there are {len(cells)} columns, not {len(names)} ({', '.join(names)})"
            )
        number_of(cells[list(names).index(SCORE)], path, line)
        rows.append(cells)
    return pd.DataFrame(rows, columns=list(names)).astype({SCORE: np.float64})


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    text = path.read_text(encoding="utf-8-sig")
    return [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]


def line_of(path: Path, row: int, header: bool) -> int:
    """The number of the line that contains a row of scores."""
    return _lines(path)[row + int(header)][0]
