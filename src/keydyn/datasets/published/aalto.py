"""Reads the Aalto desktop set: one tab-separated file per person, in an archive or in a folder.

People are read one file at a time, and nothing is unpacked to disk, so that the 168,000 people of the
authors' archive need no more memory than the part of them that is requested.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from keydyn.arrays import Floats
from keydyn.datasets.files.sentences import sentences
from keydyn.datasets.published.catalogue import CATALOGUE
from keydyn.datasets.published.fetching import data_folders, find_data, not_found
from keydyn.keystrokes.schema import beyond
from keydyn.regular_files import UnusableFileError, read_regular

PERSON = re.compile(r"(\d{1,12})_keystrokes\.txt")
WANTED = ("PARTICIPANT_ID", "TEST_SECTION_ID", "PRESS_TIME", "RELEASE_TIME", "KEYCODE")
# Limits in bytes and keystrokes; the largest values among 1,274 people are 190,443 and 1,311.
LARGEST_PERSON, LONGEST_PERSON = 1 << 22, 50_000
# The most that `load_dataset` reads, which takes 1.5 GB of memory.
MOST_KEYSTROKES = 30_000_000
MOST_FILES = 1_000_000
# The number of people for whom figures are reported; the others are for development.
N_REPORTED = 300


class Source(Protocol):
    """An open source of people's files."""

    def numbers(self) -> list[int]:
        """The numbers of the people, in order."""

    def read(self, person: int) -> bytes:
        """The contents of a person's file."""


class PersonFile(NamedTuple):
    """The contents of one file, (n,) each; NaN where a field is empty."""

    number: int
    section: Floats
    press: Floats
    release: Floats
    code: Floats


def reported_people(users: Iterable[int]) -> set[int]:
    """The people for whom figures are reported: the 300 with the smallest SHA-256 of their number.

    The number is hashed as decimal text. The rule does not depend on anything that was typed. All other
    people are for development.

    Examples
    --------
    >>> from keydyn.datasets import reported_people
    >>> len(reported_people(range(3265, 7002)))
    300
    """
    ordered = sorted({int(user) for user in users}, key=lambda user: sha256(str(user).encode()).digest())
    return set(ordered[:N_REPORTED])


def stream_aalto(data: str | PathLike[str] | None = None, chunk_users: int = 1000) -> Iterator[pd.DataFrame]:
    """Iterate over the keystrokes of the Aalto desktop set, `chunk_users` people at a time, by number.

    The memory needed is that of one part, whatever the number of people. `data` is as in `load_dataset`. A
    person's file that cannot be read is left out, and a warning names it.

    Examples
    --------
    The recordings must be present; `keydyn data list` shows whether they are.

    >>> from keydyn.datasets import stream_aalto
    >>> next(stream_aalto(chunk_users=10))["user"].nunique()
    10
    """
    if chunk_users < 1:
        raise ValueError(f"chunk_users must be 1 or above, not {chunk_users!r}")
    path = find_data(CATALOGUE["aalto"].keystrokes, folders := data_folders(data))
    if path is None:
        raise not_found("aalto", folders)
    return parts_of(path, chunk_users)


def load_people(path: Path, most: int = MOST_KEYSTROKES) -> pd.DataFrame:
    """Load all keystrokes of an archive or a folder; more than `most` are a `ValueError`."""
    parts, total = [], 0
    for part in parts_of(path, 1000):
        parts.append(part)
        total += len(part)
        if total > most:
            raise ValueError(
                f"{path}: it holds more than {most:,} keystrokes, the most that are read at once; "
                "keydyn.datasets.stream_aalto reads it in parts"
            )
    return pd.concat(parts, ignore_index=True)


def parts_of(path: Path, chunk_users: int) -> Iterator[pd.DataFrame]:
    """Parts of an archive or a folder in the schema, with `started`, the begin of a sample in ms since 1970.

    A `ValueError` names an archive that cannot be read or that holds no people.
    """
    left_out: list[str] = []
    found = False
    with _source(path) as source:
        numbers = source.numbers()
        for first in range(0, len(numbers), chunk_users):
            people = []
            for number in numbers[first : first + chunk_users]:
                try:
                    people.append(_person(number, source.read(number)))
                except (UnusableFileError, pa.ArrowException) as error:
                    left_out.append(f"{number}_keystrokes.txt ({str(error)[:200]})")
            if people:
                found = True
                yield _in_schema(people)
    if left_out:
        shown = ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else "")
        if not found:
            raise ValueError(f"{path}: no person's file can be read: {shown}")
        warnings.warn(
            f"{path}: files that cannot be read were left out, {len(left_out)}: {shown}", stacklevel=3
        )


@contextmanager
def _source(path: Path) -> Iterator[Source]:
    """Open an archive or a folder."""
    if path.is_dir():
        yield _Folder(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            yield _Archive(path, archive)
    except (zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise ValueError(f"{path}: it is not a complete zip archive: {error}") from None


class _Folder:
    """A folder with the files of an unpacked archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        names = [match for one in path.iterdir() if (match := PERSON.fullmatch(one.name))]
        self._names = {int(match[1]): match[0] for match in names}
        _check_number(path, len(self._names))

    def numbers(self) -> list[int]:
        return sorted(self._names)

    def read(self, person: int) -> bytes:
        try:
            return read_regular(self._path / self._names[person], LARGEST_PERSON)
        except OSError as error:
            raise UnusableFileError(error.strerror or str(error)) from None


class _Archive:
    """A zip archive, of which only people's files are read, each up to a sensible size."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members: dict[int, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            place = PurePosixPath(member.filename.replace("\\", "/"))
            if place.is_absolute() or ".." in place.parts:
                raise ValueError(f"{path}: it has a file outside its own folder, {member.filename[:80]!r}")
            if match := PERSON.fullmatch(place.name):
                self._members[int(match[1])] = member
        _check_number(path, len(self._members))

    def numbers(self) -> list[int]:
        return sorted(self._members)

    def read(self, person: int) -> bytes:
        try:
            with self._archive.open(self._members[person]) as file:
                # The sizes stated in the archive may be wrong.
                contents = file.read(LARGEST_PERSON + 1)
        # Encrypted files and unknown compression methods cause runtime errors.
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise UnusableFileError(f"it cannot be unpacked: {error}") from None
        if len(contents) > LARGEST_PERSON:
            raise UnusableFileError(f"it holds more than {LARGEST_PERSON:,} bytes")
        return contents


def _check_number(path: Path, n: int) -> None:
    if n == 0:
        raise ValueError(f"{path}: it has no file of a person, such as 3269_keystrokes.txt")
    if n > MOST_FILES:
        raise ValueError(f"{path}: it has {n:,} files of people; at most {MOST_FILES:,} are read")


def _person(number: int, contents: bytes) -> PersonFile:
    """The columns that are needed. They are numbers, so the encoding of the sentences does not matter."""
    table = csv.read_csv(
        io.BytesIO(contents),
        csv.ReadOptions(use_threads=False, block_size=LARGEST_PERSON + 1),
        # Quotation marks in sentences are text.
        csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False),
        csv.ConvertOptions(
            include_columns=WANTED,
            column_types=dict.fromkeys(WANTED, pa.float64()),
            check_utf8=False,
        ),
    )
    if not 0 < table.num_rows <= LONGEST_PERSON:
        raise UnusableFileError(f"it has {table.num_rows:,} keystrokes; 1 to {LONGEST_PERSON:,} are read")
    person, section, press, release, code = (table[name].to_numpy() for name in WANTED)
    if not (person == number).all():
        raise UnusableFileError("it has rows of another person")
    # A keystroke without a press time has no place in its sentence.
    known = np.isfinite(section) & np.isfinite(press) & ~beyond(press)
    if not known.any():
        raise UnusableFileError("it has no keystroke with the time of its press")
    return PersonFile(number, section[known], press[known], release[known], code[known])


def _in_schema(people: list[PersonFile]) -> pd.DataFrame:
    """Several people as one frame in the schema."""
    n_rows = [len(person.press) for person in people]
    user = np.repeat(np.array([person.number for person in people], dtype=np.int64), n_rows)
    section, press, release, code = (
        np.concatenate([person[field] for person in people]) for field in range(1, 5)
    )
    return sentences(user, section, press, release, code)
