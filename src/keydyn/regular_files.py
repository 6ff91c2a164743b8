"""Safe reading of unknown files: regular files of a sane size are read, all else is refused at once.

A pipe or a device would keep its reader waiting for ever, and a sparse file can claim more bytes than there
is memory. A file is checked after it has been opened, so that it cannot be exchanged in between.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 20


class UnusableFileError(ValueError):
    """A file that is not a regular one, is too large, or cannot be unpacked."""


@contextmanager
def opened(path: str | Path, largest: int, links: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file of at most `largest` bytes for reading; an `UnusableFileError` says why not.

    Without `links`, links are refused, whatever they lead to.
    """
    if not links and Path(path).is_symlink():
        raise UnusableFileError("it is a link, not a file")
    # Without this flag, opening a pipe waits for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= 0 if links else getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except ValueError as error:
        raise UnusableFileError(f"it cannot be opened: {error}") from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise UnusableFileError("it is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFileError("it is a pipe, a socket or a device, not a regular file")
        if status.st_size > largest:
            raise UnusableFileError(f"it has {status.st_size:,} bytes; at most {largest:,} are read")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_regular(path: str | Path, largest: int, links: bool = True) -> bytes:
    """Read a regular file of at most `largest` bytes."""
    with opened(path, largest, links) as file:
        contents = file.read(largest + 1)
    if len(contents) > largest:
        raise UnusableFileError(f"it grew while it was read; at most {largest:,} bytes are read")
    return contents


def read_unpacked(path: str | Path, largest: int) -> bytes:
    """Read a regular file, unpacked if it is gzipped; packed and unpacked, at most `largest` bytes."""
    with opened(path, largest) as file:
        return b"".join(blocks(file, largest))


def read_open(file: BinaryIO, largest: int) -> bytes:
    """Read the rest of an open file or pipe, unpacked if it is gzipped; at most `largest` bytes."""
    contents = file.read(largest + 1)
    if len(contents) > largest:
        raise UnusableFileError(f"it holds more than {largest:,} bytes; no more are read")
    return b"".join(blocks(io.BytesIO(contents), largest))


def blocks(file: BinaryIO, largest: int) -> Iterator[bytes]:
    """Yield the contents of an open file in blocks, unpacked if gzipped; at most `largest` bytes in total."""
    packed = file.read(2) == GZIP_MAGIC
    file.seek(0)
    left = largest
    try:
        source = gzip.GzipFile(fileobj=file) if packed else file
        while block := source.read(min(CHUNK, left + 1)):
            left -= len(block)
            if left < 0:
                raise UnusableFileError(f"it holds more than {largest:,} bytes; no more are read")
            yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnusableFileError(f"it cannot be unpacked: {error}") from None
