"""Columns of text files, quickly; what is wrong with a file is said with its line.

Files are parsed as a whole. Only if that fails, or a score is no finite number, are they read line by line to
find the place.
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
# What a line is split at: commas, or any white space.
COMMA, SPACE = ",", " "


def first_line(path: Path) -> str:
    """The first line that is not empty; a `ValueError` for an empty or a binary file."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for line in lines:
                if line.strip():
                    return line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text file in UTF-8") from None
    raise ValueError(f"{path} is empty")


def read_columns(path: Path, names: Sequence[str], separator: str, header: bool = False) -> pd.DataFrame:
    """The columns of a file as text, `score` as finite numbers; the first line may be a header."""
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
        # Columns may be aligned with several spaces or tabs, which the quick reader does not know.
        frame = _line_by_line(path, names, separator, header)
    if not np.isfinite(frame[SCORE].to_numpy(dtype=np.float64)).all():
        frame = _line_by_line(path, names, separator, header)
    if len(frame) == 0:
        raise ValueError(f"{path} has no scores")
    return frame


def read_numbers(path: Path) -> Floats:
    """One score per line, in the last of any number of columns."""
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
    """A finite number, or a `ValueError` with its place."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{path}, line {line}: the score {text!r} is no number") from None
    if not math.isfinite(number):
        raise ValueError(f"{path}, line {line}: the score is {text}, which is no finite number")
    return number


def _line_by_line(path: Path, names: Sequence[str], separator: str, header: bool) -> pd.DataFrame:
    """As `read_columns`, slowly; a `ValueError` says which line cannot be used."""
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
    """Lines that are not empty, with their numbers."""
    text = path.read_text(encoding="utf-8-sig")
    return [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]


def line_of(path: Path, row: int, header: bool) -> int:
    """The line of the file that a row of scores stands in."""
    return _lines(path)[row + int(header)][0]
