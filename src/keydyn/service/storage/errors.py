"""Errors of a database: which are its own, and which are those of a change."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

# Seconds to wait for the database, or for another process that uses it.
PATIENCE = 15
# PostgreSQL's codes for a deadlock, a conflict of transactions, a lock that was waited for too long, and a
# server that an administrator or a crash has stopped.
RUN_AGAIN = ("40P01", "40001", "55P03", "57P01", "57P02")
# The classes of a database's own errors, as every driver calls them (PEP 249).
CLASSES = {"OperationalError", "InterfaceError"}


class DatabaseUnavailableError(OSError):
    """The database cannot be reached, is full or is too busy.

    Nothing of the change was kept, unless the message says that this is not known.
    """


def must_run_again(error: BaseException) -> bool:
    """Whether a change failed because of other changes, or because the connection was lost."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return getattr(_cause(error), "sqlstate", None) in RUN_AGAIN


def certainly_undone(error: BaseException) -> bool:
    """Whether a transaction that could not be committed is known to have left nothing."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_FULL
    # The server has answered, and not by closing the connection.
    state = getattr(cause, "sqlstate", None)
    return state is not None and state[:2] != "57"


def translated(error: BaseException) -> BaseException:
    """An error of the database itself as a `DatabaseUnavailableError`; any other one as it is."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.OperationalError):
        # A mistake in a statement has this class too.
        if (getattr(cause, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_ERROR:
            return error
    elif type(cause) is not sqlite3.DatabaseError and not CLASSES & {
        one.__name__ for one in type(cause).mro()
    }:
        return error
    return DatabaseUnavailableError(str(cause).strip())


def _cause(error: BaseException) -> BaseException:
    return error.orig or error if isinstance(error, DBAPIError) else error
