"""PostgreSQL: connections, and transactions with as few messages to the server as possible."""

from __future__ import annotations

import select
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from keydyn.service.storage.errors import PATIENCE

# The exceptions that SQLAlchemy or the driver raises when a statement fails.
ERRORS = (DBAPIError, psycopg.Error)
# A worker that hangs within a transaction must not block the others for ever.
OPTIONS = {
    "lock_timeout": PATIENCE,
    "statement_timeout": 4 * PATIENCE,
    "idle_in_transaction_session_timeout": 4 * PATIENCE,
}


def engine(url: URL) -> Engine:
    """An engine that makes a new connection each time."""
    return create_engine(
        url,
        poolclass=NullPool,
        # The message of an error must not reveal what was stored.
        hide_parameters=True,
        connect_args={
            "connect_timeout": PATIENCE,
            "keepalives_idle": PATIENCE,
            "keepalives_interval": PATIENCE,
            "keepalives_count": 2,
            "tcp_user_timeout": 4 * PATIENCE * 1000,
            "application_name": "keydyn",
            "options": " ".join(f"-c {name}={seconds}s" for name, seconds in OPTIONS.items()),
        },
    )


def reader(made: Engine) -> Connection:
    """A connection that cannot change anything, and sees one state of the database in each transaction."""
    return made.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's own connection, which costs less for statements without results."""
    found: Any = connection.connection.dbapi_connection
    wrapped: psycopg.Connection[Any] = getattr(found, "driver_connection", found)
    return wrapped


def is_usable(connection: Connection) -> bool:
    """Whether the connection is still open; a server that has gone away has closed it."""
    if connection.invalidated:
        return False
    inner = driver(connection)
    if inner.closed:
        return False
    poll = select.poll()
    poll.register(inner.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    # Between transactions, the server sends nothing unless it closes the connection.
    return not poll.poll(0)


def begin_reading(connection: Connection) -> None:
    """Do nothing, because the driver begins transactions by itself."""


def begin_writing(connection: Connection) -> None:
    """Set a savepoint; the driver begins the transaction by itself."""
    driver(connection).execute("SAVEPOINT one")


def next_savepoint(connection: Connection) -> None:
    """Keep the changes made since the savepoint, and set another."""
    driver(connection).execute("RELEASE one; SAVEPOINT one")


def roll_back_to_savepoint(connection: Connection) -> None:
    """Undo the changes made since the savepoint, which stays."""
    driver(connection).execute("ROLLBACK TO one")
