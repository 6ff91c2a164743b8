"""A queue of the processes that write to an SQLite file.

SQLite itself has none: a process that finds the file locked asks again after longer and longer pauses. Of two
busy processes, one can wait for a second although each writes for milliseconds.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds after which a process asks again.
ASKING = 0.0005
# Bytes of the file that are locked: the holder of the first writes, the holder of the second is next.
TURN, NEXT = 0, 1


class WriteQueue:
    """A file that is locked by the process that writes and by the one that is next; never written to.

    It makes waiting fair and is no safeguard: a process that has waited too long goes on without a turn, and
    waits for SQLite's own lock. The locks of a process end with it.
    """

    def __init__(self, file: str, patience: float) -> None:
        self._file, self._patience = file, patience
        self._handle: int | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until it is this process's turn, which lasts until the end of the block."""
        if self._handle is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            try:
                self._handle = os.open(self._file, flags, 0o600)
            except OSError:
                # A full disk, for instance, which SQLite reports better.
                yield
                return
        until = time.monotonic() + self._patience
        try:
            # While another process is next, this one cannot have two turns in a row.
            self._take(NEXT, until)
            self._take(TURN, until)
            self._let_go(NEXT)
            yield
        finally:
            self._let_go(NEXT)
            self._let_go(TURN)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _take(self, place: int, until: float) -> None:
        assert self._handle is not None
        while True:
            try:
                fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                return
            except (BlockingIOError, PermissionError):
                if time.monotonic() > until:
                    return
            time.sleep(ASKING)

    def _let_go(self, place: int) -> None:
        assert self._handle is not None
        fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, place)
