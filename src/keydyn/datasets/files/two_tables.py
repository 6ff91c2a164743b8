"""Reads the Aalto mobile set's two tables: keystrokes by sentence, and the typist of each sentence.

`keystrokes.csv` and `test_sections.csv` lie in one folder, without headers, as a database exported them;
`keystrokes_header.csv` and `test_sections_header.csv` list the names of their columns in a column `Field`.
Files with their own headers are read too. Verified with programs that read the set, but not with its files.

The set has limits. On-screen keyboards often do not report which key was touched (the code is then 0 or 229),
a word that was swiped or suggested is a single event, and some browsers report no releases. A release that is
empty, 0 or before its press is treated as missing, so that there is no hold time to learn from.
"""

from __future__ import annotations

import csv
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from keydyn.arrays import Integers, Truths
from keydyn.datasets.files.file_form import AsRead
from keydyn.datasets.files.file_tables import FileTable
from keydyn.datasets.files.sentences import sentences
from keydyn.keystrokes.quality import NOBODY, count_by_user
from keydyn.keystrokes.reading_error import FilePosition, ReadingError
from keydyn.keystrokes.schema import beyond

KEYSTROKES, SECTIONS, HEADER = "keystrokes.csv", "test_sections.csv", "_header.csv"
SECTION, PERSON, PRESS, RELEASE, CODE = (
    "TEST_SECTION_ID",
    "PARTICIPANT_ID",
    "PRESS_TIME",
    "RELEASE_TIME",
    "KEYCODE",
)
NUMBER = "KEYSTROKE_ID"
# The database's ways to write "no value"; "N" is what is left of \N, whose backslash is read as an escape.
NULLS = ["", "N", "NULL", "NA", "nan"]


def sections_beside(source: Any) -> Path | None:
    """The table of sentences in the same folder as one of keystrokes, or None."""
    if not isinstance(source, (str, Path)) or not Path(source).name.endswith(KEYSTROKES):
        return None
    beside = Path(source).with_name(Path(source).name.removesuffix(KEYSTROKES) + SECTIONS)
    return beside if beside.is_file() and Path(source).is_file() else None


def read_two_tables(path: Path, sections_path: Path) -> AsRead:
    """Read the keystrokes of all people, with counts of impossible values."""
    sections, bad_sections = _columns(sections_path, (SECTION, PERSON))
    events, bad = _columns(path, (SECTION, PRESS, RELEASE, CODE), (NUMBER,))
    named = pd.DataFrame(sections).dropna().drop_duplicates(SECTION).set_index(SECTION)[PERSON]
    person = named.reindex(events[SECTION]).to_numpy(dtype=np.float64)
    press, release = events[PRESS], events[RELEASE]
    again = (
        pd.Series(events[NUMBER]).duplicated().to_numpy() if NUMBER in events else np.zeros(len(press), bool)
    )
    strange = np.isnan(person)
    unknown = ~(np.isfinite(press) & (press > 0) & ~beyond(press))
    kept: Truths = ~(again | strange | unknown)
    if not kept.any():
        raise ReadingError("it has no keystroke with the time of its press and a sentence of a known person")
    found = {
        "negative_holds": kept & (release < press) & (release > 0),
        "missing_presses": unknown & ~strange,
        "repeated_rows": again & ~strange,
    }
    numbers: Integers = np.where(strange, -1, person).astype(np.int64)
    counts = count_by_user(pd.Series(numbers), found)
    nobody = int(strange.sum()) + bad + bad_sections
    if nobody:
        row = {"user": NOBODY, "reason": "strange_rows", "count": nobody}
        counts = pd.DataFrame([*counts.to_dict("records"), row])
    columns = (events[name][kept] for name in (SECTION, PRESS, RELEASE, CODE))
    frame = sentences(numbers[kept], *columns)
    table = FileTable({"row": frame["timepress"]}, None)
    return AsRead(frame, np.arange(len(frame)), table, "ms", impossible=counts)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, which need not fit into memory."""
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _columns(
    path: Path, wanted: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[dict[str, NDArray[np.float64]], int]:
    """Columns of numbers, NaN where empty, and the number of rows with too few or too many values."""
    names, has_header = _names(path, wanted)
    absent = [name for name in wanted if name not in names]
    if absent:
        raise ReadingError(f"{path.name}: no column {', '.join(map(repr, absent))}")
    read = [name for name in (*wanted, *optional) if name in names]
    wrong = []

    def skip(row: Any) -> str:
        wrong.append(row)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(use_threads=False, column_names=names, skip_rows=int(has_header)),
            pyarrow.csv.ParseOptions(escape_char="\\", newlines_in_values=True, invalid_row_handler=skip),
            pyarrow.csv.ConvertOptions(
                include_columns=read,
                column_types=dict.fromkeys(read, pa.float64()),
                null_values=NULLS,
                check_utf8=False,
            ),
        )
    except pa.ArrowException as error:
        raise ReadingError(f"{path.name}: it cannot be read: {error}") from None
    if table.num_rows == 0:
        raise ReadingError(f"{path.name}: it has no rows")
    return {name: table[name].to_numpy() for name in read}, len(wrong)


def _names(path: Path, wanted: tuple[str, ...]) -> tuple[list[str], bool]:
    """The names of the columns, and whether they come from the first line or from a file of their own."""
    with path.open(encoding="latin-1", newline="") as file:
        first = next(csv.reader(file), [])
    if set(wanted) & set(first):
        return first, True
    header = path.with_name(path.name.removesuffix(".csv") + HEADER)
    if not header.is_file():
        raise ReadingError(
            f"{path.name}: its first line has no names of columns, and there is no {header.name} beside it",
            place=FilePosition("line", 1),
        )
    with header.open(encoding="latin-1", newline="") as file:
        return [row[0] for row in csv.reader(file) if row][1:], False
