"""Finds the datasets' files, checks whether they are the published ones, and downloads them.

A download is checked by size and SHA-256, and kept in full or not at all.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from keydyn.atomic import write_bytes
from keydyn.datasets.published.catalogue import NAMES, File, entry_of
from keydyn.regular_files import UnusableFileError, blocks, opened
from keydyn.short_repr import short_repr

VARIABLE = "KEYDYN_DATA"
# A limit in bytes, 50 times the size of the largest published file.
LARGEST = 1 << 28
Status = Literal["right", "changed", "absent"]
CHUNK = 1 << 10
# Seconds to wait for an answer or for the next byte.
PATIENCE = 30.0
# Bytes per second; a download with a lower average rate is aborted.
SLOWEST = 10_000.0


@dataclass(frozen=True)
class FileState:
    """The state of a published file: where it was found, and whether it is the right one."""

    dataset: str
    file: File
    status: Status
    path: Path | None = None
    sha256: str | None = None  # None if the file is absent or cannot be unpacked

    __repr__ = short_repr


def cache_folder() -> Path:
    """The folder in which `fetch_dataset` keeps downloads."""
    import pooch

    return Path(pooch.os_cache("keydyn"))


def data_folders(data: str | PathLike[str] | None = None) -> list[Path]:
    """The folders to search for files, in order; a folder given explicitly must exist."""
    folders = []
    for folder, named_by in ((data, "data"), (os.environ.get(VARIABLE), VARIABLE)):
        if not folder:
            continue
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{named_by} names {folder}, which is not a folder")
        folders.append(Path(folder))
    return [*folders, cache_folder()]


def find_file(file: File, folders: list[Path]) -> Path | None:
    """The file under any of its names in the first folder that has it, or None."""
    places = (folder / name for folder in folders for name in file.names)
    return next((place for place in places if place.is_file()), None)


def find_data(file: File, folders: list[Path]) -> Path | None:
    """The file, or else the first archive or folder that holds recordings of its kind, or None."""
    others = (folder / name for folder in folders for name in file.others)
    return find_file(file, folders) or next((place for place in others if place.exists()), None)


def not_found(name: str, folders: list[Path]) -> FileNotFoundError:
    """The error to raise if the keystrokes of a dataset are in none of the folders."""
    entry = entry_of(name)
    looked = ", ".join(map(str, folders))
    names = " or ".join((*entry.keystrokes.names, *entry.keystrokes.others))
    remedy = entry.elsewhere or f"`keydyn data fetch {name}` downloads it"
    return FileNotFoundError(
        f"{name} was not found: looked for {names} in {looked}. {remedy}; "
        f" data=, --data or {VARIABLE} names a folder that has it"
    )


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
    """The state of a file in these folders: absent, right or changed."""
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
    """The states of these datasets' files: in `data` alone if it is given, else wherever they are found."""
    folders = data_folders(data)
    if data:
        folders = folders[:1]
    return [state_of(name, file, folders) for name in names for file in entry_of(name).files]


class FetchError(OSError):
    """A file could not be downloaded; the message says why and what to do.

    Examples
    --------
    >>> from keydyn.datasets import FetchError, fetch_dataset
    >>> try:
    ...     fetch_dataset("keypad", mirror="http://127.0.0.1:9/nothing-here")
    ... except FetchError as error:
    ...     print("keypad" in str(error))
    True
    """


class TooSlowError(Exception):
    """A download did not complete within the time allowed."""


class NotPublishedError(Exception):
    """The downloaded data are not the published file; the message says how they differ."""


def fetch_dataset(
    name: str, data: str | PathLike[str] | None = None, *, mirror: str | None = None, progress: bool = False
) -> list[Path]:
    """Download the missing files of a dataset, and return the paths of all its files.

    Files are stored in the folder `data` if it is given, otherwise in the cache. A file that `load_dataset`
    would already find is not fetched again. `mirror` is the address of a folder with the files under their
    original names. A `FetchError` says what went wrong.

    Examples
    --------
    >>> from keydyn.datasets import fetch_dataset
    >>> [path.name for path in fetch_dataset("keypad")]
    ['keypad.csv']
    """
    entry = entry_of(name)
    target = Path(data) if data else cache_folder()
    if data:
        _make_folder(target)
    paths = []
    for file in entry.files:
        state = state_of(name, file, data_folders(data))
        if state.status == "right" and state.path is not None:
            paths.append(state.path)
            continue
        changed = state.path
        if changed is not None and changed.parent != cache_folder():
            raise FetchError(
                f"{changed} is not the published file, yet would be found first: move it away and fetch again"
            )
        address = file.address if mirror is None else f"{mirror.rstrip('/')}/{file.source}"
        if not address:
            raise FetchError(f"{file.source} cannot be downloaded. {entry.elsewhere}.")
        path = _download(file, address, target, progress)
        if changed is not None and changed != path:
            changed.unlink()
        paths.append(path)
    return paths


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"cannot write to {folder}: {error.strerror}") from None


def _download(
    file: File, address: str, folder: Path, progress: bool = False, given: float | None = None
) -> Path:
    from requests import exceptions
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    instead = (
        f"If you cannot reach {address}, have someone fetch the file, put it in a folder under the name "
        f"{file.source} and name the folder with --data or {VARIABLE}."
    )
    try:
        contents = _retrieve(file, address, progress, given or PATIENCE + file.size / SLOWEST)
    except exceptions.HTTPError as error:
        answer = error.response
        if answer is not None and answer.status_code in (404, 410):
            raise FetchError(f"{address} is not there (HTTP {answer.status_code}). {instead}") from None
        raise FetchError(f"the server refused {address}: {error}. Try again later. {instead}") from None
    except TooSlowError as error:
        raise FetchError(f"{address} is too slow: {error}; nothing was kept. {instead}") from None
    except (exceptions.Timeout, ReadTimeoutError):
        raise FetchError(f"no answer for {PATIENCE:.0f} seconds from {address}. {instead}") from None
    except exceptions.ConnectionError:
        raise FetchError(
            f"cannot connect to {address}: there is no network, or the server is down. {instead}"
        ) from None
    except (HTTPError, exceptions.ChunkedEncodingError):
        raise FetchError(
            f"the connection was lost while {address} was being downloaded; nothing was kept. Try again."
        ) from None
    except exceptions.RequestException as error:
        raise FetchError(f"cannot fetch {address}: {error}") from None
    except NotPublishedError as error:
        raise FetchError(
            f"what came from {address} is not the published file: {error}. "
            "Nothing was kept. Try again; if this happens again, the file was changed at its source."
        ) from None
    path = folder / file.names[0]
    try:
        write_bytes(path, contents)
    except OSError as error:
        raise FetchError(f"cannot write to {folder}: {error.strerror or error}") from None
    return path


def _retrieve(file: File, address: str, progress: bool, given: float) -> bytes:
    """Download a file in another thread, so that this returns within the given time in any case."""
    with _bar(file, progress) as advance:
        transfer = _Transfer(file, address, advance)
        transfer.start()
        try:
            transfer.join(given)
            if transfer.is_alive():
                raise TooSlowError(f"it was not complete after {given:.0f} seconds")
        finally:
            transfer.unwanted.set()
    if transfer.error is not None:
        raise transfer.error
    if hashlib.sha256(transfer.contents).hexdigest() != file.sha256:
        raise NotPublishedError("its SHA-256 is different")
    return bytes(transfer.contents)


class _Transfer(threading.Thread):
    """Reads what a server sends, at most the size of the file, until it is complete or no longer wanted."""

    def __init__(self, file: File, address: str, advance: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self._file, self._address, self._advance = file, address, advance
        self.unwanted = threading.Event()
        self.contents = bytearray()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self.error = error

    def _read(self) -> None:
        import requests
        from urllib3.exceptions import ProtocolError

        # Compressed contents could unpack to any size.
        plain = {"Accept-Encoding": "identity"}
        with requests.get(self._address, stream=True, timeout=PATIENCE, headers=plain) as answer:
            answer.raise_for_status()
            while not self.unwanted.is_set() and (block := answer.raw.read(CHUNK, decode_content=False)):
                self.contents += block
                self._advance(len(block))
                if len(self.contents) > self._file.size:
                    raise NotPublishedError(f"it has more than {self._file.size:,} bytes")
        if len(self.contents) < self._file.size and not answer.headers.get("Content-Encoding"):
            raise ProtocolError("cut short")


@contextmanager
def _bar(file: File, progress: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of bytes received, shown as a progress bar if `progress`."""
    if not progress:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(file.source, total=file.size)
        yield lambda n: shown.advance(task, n)
