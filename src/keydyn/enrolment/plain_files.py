"""Reading files that may come from anywhere: plain ones of a sane size, and nothing behind a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MEGABYTE = 2**20


def read_plain(path: Path, limit: int) -> bytes:
    """The contents of a regular file of at most `limit` bytes; a `ValueError` says why it is not one.

    A link is not followed, and a pipe or a device is not waited for.
    """
    if path.is_symlink():
        raise ValueError(f"{path} is a link, not a file")
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, os.O_RDONLY | careful), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise ValueError(f"{path} is not a regular file")
        contents = file.read(limit + 1)
    if len(contents) > limit:
        raise ValueError(f"{path} is larger than {limit // MEGABYTE:,} MiB")
    return contents
