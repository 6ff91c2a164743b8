"""Errors of a database: which are its own, and which are those of a change."""

from __future__ import annotations

import sqlite3

import psycopg
from sqlalchemy.exc import DBAPIError

# Seconds to wait for the database, or for another process that uses it.
PATIENCE = 15
# Whatever SQLAlchemy or a driver raises when a statement fails.
DriverError = (DBAPIError, sqlite3.Error, psycopg.Error)
# Two transactions waited for each other, or for one another's locks too long.
CONFLICTS = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.LockNotAvailable,
)


class DatabaseUnavailableError(OSError):
    """The database cannot be reached, is full or is too busy.

    Nothing of the change was kept, unless the message says that this is not known.
    """


def must_run_again(error: BaseException) -> bool:
    """Whether a change failed because of other changes, or because the connection was lost."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    cause = _cause(error)
    return isinstance(cause, (*CONFLICTS, psycopg.errors.AdminShutdown, psycopg.errors.CrashShutdown))


def certainly_undone(error: BaseException) -> bool:
    """Whether a transaction that could not be committed is known to have left nothing."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_FULL
    # The server has answered, and not by closing the connection.
    return isinstance(cause, psycopg.Error) and cause.sqlstate is not None and cause.sqlstate[:2] != "57"


def translated(error: BaseException) -> BaseException:
    """An error of the database itself as a `DatabaseUnavailableError`; any other one as it is."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.OperationalError):
        # A mistake in a statement has this class too.
        if (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_ERROR:
            return error
    elif not (
        isinstance(cause, (sqlite3.InterfaceError, psycopg.OperationalError, psycopg.InterfaceError))
        or type(cause) is sqlite3.DatabaseError
    ):
        return error
    return DatabaseUnavailableError(str(cause).strip())


def _cause(error: BaseException) -> BaseException:
    return error.orig or error if isinstance(error, DBAPIError) else error
