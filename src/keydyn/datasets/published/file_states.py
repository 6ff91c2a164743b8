"""Where the datasets' files are, and whether they are the published ones."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from keydyn.datasets.published.catalogue import NAMES, File, entry_of
from keydyn.regular_files import UnusableFileError, blocks, opened

VARIABLE = "KEYDYN_DATA"
# Bytes; the largest published file has a fiftieth of them.
LARGEST = 1 << 28
Status = Literal["right", "changed", "absent"]


@dataclass(frozen=True)
class FileState:
    """One published file, where it was found, and whether it is the right one."""

    dataset: str
    file: File
    status: Status
    path: Path | None = None
    sha256: str | None = None  # None where the file is absent or cannot be unpacked


def cache_folder() -> Path:
    """Where `fetch_dataset` keeps what it downloads.

    Examples
    --------
    >>> from keydyn.datasets import cache_folder
    >>> "keydyn" in cache_folder().parts
    True
    """
    import pooch

    return Path(pooch.os_cache("keydyn"))


def data_folders(data: str | PathLike[str] | None = None) -> list[Path]:
    """The folders to search for files, in order; a folder that was named must exist."""
    folders = []
    for folder, named_by in ((data, "data"), (os.environ.get(VARIABLE), VARIABLE)):
        if not folder:
            continue
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{named_by} names {folder}, which is not a folder")
        folders.append(Path(folder))
    return [*folders, cache_folder()]


def find_file(file: File, folders: list[Path]) -> Path | None:
    """The file under any of its names, in the first folder that has it."""
    places = (folder / name for folder in folders for name in file.names)
    return next((place for place in places if place.is_file()), None)


def checksum(path: Path) -> str:
    """SHA-256 of the contents, unpacked if they are gzipped; a `ValueError` if they cannot be unpacked."""
    digest = hashlib.sha256()
    try:
        with opened(path, LARGEST) as file:
            for block in blocks(file, LARGEST):
                digest.update(block)
    except UnusableFileError as error:
        raise ValueError(f"{path}: {error}") from None
    return digest.hexdigest()


def state_of(dataset: str, file: File, folders: list[Path]) -> FileState:
    """Whether the file is absent, right or changed."""
    path = find_file(file, folders)
    if path is None:
        return FileState(dataset, file, "absent")
    try:
        sha256 = checksum(path)
    except ValueError:
        return FileState(dataset, file, "changed", path)
    return FileState(dataset, file, "right" if sha256 == file.sha256 else "changed", path, sha256)


def check_files(
    names: tuple[str, ...] | list[str] = NAMES, data: str | PathLike[str] | None = None
) -> list[FileState]:
    """The state of these datasets' files: in `data` alone if it is given, else wherever they are found.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn.datasets import check_files
    >>> Path("recordings").mkdir()
    >>> states = check_files(["keypad"], data="recordings")
    >>> [(one.dataset, one.status) for one in states]
    [('keypad', 'absent')]
    """
    folders = data_folders(data)
    if data:
        folders = folders[:1]
    return [state_of(name, file, folders) for name in names for file in entry_of(name).files]
