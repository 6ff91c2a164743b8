"""Where the datasets' files are, and whether they are the published ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from keydyn.datasets.catalogue import NAMES, File, entry_of

VARIABLE = "KEYDYN_DATA"
GZIP_MAGIC = b"\x1f\x8b"
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
    """Where `fetch_dataset` keeps what it downloads."""
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
    for block in _unpacked_blocks(path):
        digest.update(block)
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
    """The state of these datasets' files: in `data` alone if it is given, else wherever they are found."""
    folders = data_folders(data)
    if data:
        folders = folders[:1]
    return [state_of(name, file, folders) for name in names for file in entry_of(name).files]


def _unpacked_blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            while block := file.read(1 << 20):
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from None
