"""Downloading the published files: checked by SHA-256, kept in full or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keydyn.datasets.catalogue import File, entry_of
from keydyn.datasets.published_files import VARIABLE, cache_folder, data_folders, state_of

if TYPE_CHECKING:
    from rich.progress import Progress

CHUNK = 1 << 15
# How many seconds to wait for an answer or the next byte.
PATIENCE = 30.0


class FetchError(OSError):
    """A file could not be downloaded; the message says why and what to do."""


def fetch_dataset(
    name: str,
    data: str | PathLike[str] | None = None,
    *,
    mirror: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Download the files of a dataset that are not there yet; returns the paths of all its files.

    Files go to the folder `data` if it is given, otherwise to the cache. A file that `load_dataset` would
    already find is not fetched again. `mirror` is the address of a folder that has the files under the names
    they have at their source. A `FetchError` says what went wrong.
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


def _download(file: File, address: str, folder: Path, progress: bool) -> Path:
    from requests import exceptions

    instead = (
        f"If you cannot reach {address}, have someone fetch the file, put it in a folder under the name "
        f"{file.source} and name the folder with --data or {VARIABLE}."
    )
    try:
        return _retrieve(file, address, folder, progress)
    except exceptions.HTTPError as error:
        answer = error.response
        if answer is not None and answer.status_code in (404, 410):
            raise FetchError(f"{address} is not there (HTTP {answer.status_code}). {instead}") from None
        raise FetchError(f"the server refused {address}: {error}. Try again later. {instead}") from None
    except (exceptions.ChunkedEncodingError, exceptions.ContentDecodingError):
        raise FetchError(
            f"the connection was lost while {address} was being downloaded; nothing was kept. Try again."
        ) from None
    except exceptions.Timeout:
        raise FetchError(f"no answer for {PATIENCE:.0f} seconds from {address}. {instead}") from None
    except exceptions.ConnectionError:
        raise FetchError(
            f"cannot connect to {address}: there is no network, or the server is down. {instead}"
        ) from None
    except exceptions.RequestException as error:
        raise FetchError(f"cannot fetch {address}: {error}") from None
    except OSError as error:
        raise FetchError(f"cannot write to {folder}: {error.strerror or error}") from None
    except ValueError:
        raise FetchError(
            f"what came from {address} is not the published file: its SHA-256 is different. "
            "Nothing was kept. Try again; if this happens again, the file was changed at its source."
        ) from None


def _retrieve(file: File, address: str, folder: Path, progress: bool) -> Path:
    import pooch

    with ExitStack() as afterwards:
        # pooch leaves the connection open when something goes wrong.
        def close_later(answer: Any, *_: Any, **__: Any) -> None:
            afterwards.callback(answer.close)

        bar = afterwards.enter_context(_bar(file, progress))
        afterwards.enter_context(_quiet(pooch.get_logger()))
        return Path(
            pooch.retrieve(
                address,
                known_hash=f"sha256:{file.sha256}",
                fname=f"{file.stem}.csv",
                path=os.fspath(folder),
                downloader=pooch.HTTPDownloader(
                    progressbar=bar, chunk_size=CHUNK, timeout=PATIENCE, hooks={"response": close_later}
                ),
            )
        )


class _Bar:
    """The progress bar that pooch updates as bytes arrive, shown by rich."""

    def __init__(self, shown: Progress, file: File) -> None:
        self.shown = shown
        self.task = shown.add_task(file.source, total=file.size)
        # pooch sets this to the transferred size, which is smaller where the server compresses.
        self.total = file.size

    def update(self, n: int) -> None:
        """Advance by n bytes."""
        self.shown.advance(self.task, n)

    def reset(self) -> None:
        """Start again from zero; pooch does this just before it fills the bar."""
        self.shown.reset(self.task)

    def close(self) -> None:
        """Mark the download as complete."""
        self.shown.update(self.task, completed=self.shown.tasks[self.task].total)


@contextmanager
def _bar(file: File, progress: bool) -> Iterator[Any]:
    if not progress:
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        yield _Bar(shown, file)


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch's log on standard error: the bar and the messages here already say it."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)
