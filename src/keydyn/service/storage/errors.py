"""Classifying errors: those of the database itself, and those of a change that was run."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

# The seconds to wait for the database, or for another process that uses it.
PATIENCE = 15
# PostgreSQL's codes for a deadlock, a serialization failure, a lock that was waited for too long, and a
# server that was stopped by an administrator or a crash.
RUN_AGAIN = ("40P01", "40001", "55P03", "57P01", "57P02")
# The names of the exception classes for a database's own errors, common to all drivers (PEP 249).
CLASSES = {"OperationalError", "InterfaceError"}


class DatabaseUnavailableError(OSError):
    """Raised if the database cannot be reached, is full or is too busy.

    Nothing of the change was stored, unless the message says that this is not known.
    """


def must_run_again(error: BaseException) -> bool:
    """Whether a change failed because of other changes, or because the connection was lost."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return getattr(_cause(error), "sqlstate", None) in RUN_AGAIN


def certainly_undone(error: BaseException) -> bool:
    """Whether a transaction whose commit failed is known to have stored nothing."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_FULL
    # The server has answered, instead of closing the connection (class 57).
    state = getattr(cause, "sqlstate", None)
    return state is not None and state[:2] != "57"


def translated(error: BaseException) -> BaseException:
    """Convert an error of the database itself to a `DatabaseUnavailableError`; return others unchanged."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.OperationalError):
        # Errors in a statement have this class too.
        if (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_ERROR:
            return error
    elif type(cause) is not sqlite3.DatabaseError and not CLASSES & {
        one.__name__ for one in type(cause).mro()
    }:
        return error
    return DatabaseUnavailableError(str(cause).strip())


def _cause(error: BaseException) -> BaseException:
    return error.orig or error if isinstance(error, DBAPIError) else error
