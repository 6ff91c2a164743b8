"""SQLite: connections, and transactions begun where we say rather than where the driver guesses."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine import URL

from keydyn.service.storage.errors import PATIENCE

SETTINGS = (
    "synchronous=FULL",
    "foreign_keys=ON",
    # What is deleted is overwritten.
    "secure_delete=ON",
    # Bytes that the log of changes keeps when it starts again.
    f"journal_size_limit={64 << 20}",
)


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
        connect_args={"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False},
    )
    event.listen(made, "connect", _set_up)
    return made


def reader(made: Engine) -> Connection:
    """A connection that cannot change anything."""
    connection = made.connect()
    driver(connection).execute("PRAGMA query_only=ON")
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
    """Begin a transaction that writes, with a savepoint; waits for writers of other processes."""
    driver(connection).execute("BEGIN IMMEDIATE")
    driver(connection).execute("SAVEPOINT one")


def next_savepoint(connection: Connection) -> None:
    """Keep what was done since the savepoint, and set another."""
    execute = driver(connection).execute
    execute("RELEASE one")
    execute("SAVEPOINT one")


def roll_back_to_savepoint(connection: Connection) -> None:
    """Undo what was done since the savepoint, which stays."""
    driver(connection).execute("ROLLBACK TO one")


def _set_up(connection: Any, _: Any) -> None:
    for setting in SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    # While another process does the same, SQLite refuses it at once rather than wait.
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
