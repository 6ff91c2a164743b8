"""SQLite: connections, transactions that begin explicitly (not when the driver guesses), a write queue."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from keydyn.service.storage.errors import PATIENCE

# The exceptions that SQLAlchemy or the driver raises when a statement fails.
ERRORS = (DBAPIError, sqlite3.Error)
SETTINGS = (
    "synchronous=FULL",
    "foreign_keys=ON",
    # Deleted data is overwritten.
    "secure_delete=ON",
    # The size in bytes to which the log of changes is cut when it starts again.
    f"journal_size_limit={64 << 20}",
    # The number of pages of the log that are written into the database together, so that pages that change
    # with every request are written once per some hundred requests.
    "wal_autocheckpoint=4000",
)
# A reader's cached pages are void as soon as another connection writes, and so need not take 2 MB each.
READING = ("query_only=ON", "cache_size=-256")
# How many milliseconds to wait until readers of the log have finished.
TRUNCATING_MS = 2000
# The seconds after which a process tries again to get a lock.
ASKING = 0.0005
# The bytes of the file that are locked: the holder of the first writes, the holder of the second is next.
TURN, NEXT = 0, 1


def engine(url: URL) -> Engine:
    """An engine that makes a new connection each time."""
    file = Path(url.database or "")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        # Typing data is personal: no other user may read it.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    made = create_engine(
        url,
        poolclass=NullPool,
        # The message of an error must not reveal what was stored.
        hide_parameters=True,
        connect_args={"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False},
    )
    event.listen(made, "connect", _set_up)
    return made


def reader(made: Engine) -> Connection:
    """A connection that cannot change anything."""
    connection = made.connect()
    for setting in READING:
        driver(connection).execute(f"PRAGMA {setting}")
    return connection


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, which costs less for statements without results."""
    found = connection.connection.dbapi_connection
    assert isinstance(found, sqlite3.Connection)
    return found


def is_usable(connection: Connection) -> bool:
    """Whether the connection is still open."""
    return not connection.invalidated


def begin_reading(connection: Connection) -> None:
    """Begin a transaction that reads."""
    driver(connection).execute("BEGIN")


def begin_writing(connection: Connection) -> None:
    """Begin a transaction that writes, with a savepoint, after waiting for writers of other processes."""
    driver(connection).execute("BEGIN IMMEDIATE")
    driver(connection).execute("SAVEPOINT one")


def next_savepoint(connection: Connection) -> None:
    """Keep the changes made since the savepoint, and set another."""
    execute = driver(connection).execute
    execute("RELEASE one")
    execute("SAVEPOINT one")


def roll_back_to_savepoint(connection: Connection) -> None:
    """Undo the changes made since the savepoint, which stays."""
    driver(connection).execute("ROLLBACK TO one")


def truncate_log(made: Engine, milliseconds: int) -> bool:
    """Write the log of changes into the database and empty it.

    Readers of the log are waited for this long; False is returned if they still read from it.
    """
    until = time.monotonic() + milliseconds / 1000
    with made.connect() as connection:
        own = driver(connection)
        own.execute(f"PRAGMA busy_timeout={milliseconds}")
        while True:
            busy, pages, _ = own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            # SQLite waits for readers, but not for another process that truncates the log at this moment.
            if not busy or pages >= 0 or time.monotonic() > until:
                return not busy
            time.sleep(0.01)


def _set_up(connection: Any, _: Any) -> None:
    for setting in SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    # While another process does the same, SQLite refuses at once instead of waiting.
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


class WriteQueue:
    """A fair queue of writing processes: a file that the writer and the next in line lock, but do not change.

    SQLite itself has no queue: a process that finds the database locked tries again after longer and longer
    pauses, so that one of two busy processes can wait for a second although each writes for milliseconds.
    This queue makes waiting fair, but is not a safeguard: a process that has waited too long goes on without
    a turn, and waits for SQLite's own lock. The locks of a process end with it.
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
                # The disk may be full, for instance, which SQLite reports better.
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
