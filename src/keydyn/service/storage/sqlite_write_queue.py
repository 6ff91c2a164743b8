"""Turns at writing to a SQLite file: processes that write wait in a queue.

By itself SQLite lets whoever happens to ask at the right moment write, and waits longer and longer before it
asks again: of two busy processes one can be kept waiting for a second although each writes for milliseconds.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds after which a process asks again.
ASKING = 0.0005
# Bytes of the file that are locked: whoever holds the first writes, whoever holds the second is next.
TURN, NEXT = 0, 1


class Turns:
    """A file that is locked by whoever writes, and by whoever is next; never written to.

    It makes waiting fair and is no safeguard: whoever has waited too long goes on without, and waits for
    SQLite's own lock. The locks of a process end with it.
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
            # While somebody is next, whoever has just written cannot have the turn again.
            self._take(NEXT, until)
            self._take(TURN, until)
            self._let_go(NEXT)
            yield
        finally:
            self._let_go(NEXT)
            self._let_go(TURN)

    def close(self) -> None:
        """Let go of the file."""
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
