"""One writer at a time: a lock that the operating system holds, and lets go of when its process dies."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"
# What systems say of a lock that another process holds.
HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class InUseError(OSError):
    """Another process is writing."""


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold the folder's lock, or another one in it; `InUseError` at once if another process holds it.

    The file of the lock stays: if it were removed, two processes could each hold a lock of that name.
    """
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        try:
            _take(handle)
        except OSError as error:
            if error.errno not in HELD:
                raise
            raise InUseError(
                f"another process is writing to {folder}; try again when it has finished"
            ) from None
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
