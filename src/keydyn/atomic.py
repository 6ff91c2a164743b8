"""Atomic writing of files: a file is written under another name, made durable, and then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, whose file replaces `path` when the block ends.

    After an error the earlier file is still there, and nothing else. Missing folders are created. The
    temporary path keeps the suffix of `path`, by which some writers choose their format. If `path` exists and
    is not a regular file, such as a pipe or /dev/null, it is written to directly and never replaced.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        yield temporary
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the list of files in a folder durable."""
    if os.name == "posix":  # other systems cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: str | Path, contents: bytes) -> None:
    """Write a file, in full or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(contents)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8, in full or not at all, with the same line ends on every system."""
    write_bytes(path, text.encode("utf-8"))
