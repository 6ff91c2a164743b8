"""Access to an SQLite or PostgreSQL database: snapshots to read, and changes that are durable on return.

Changes of one process are committed in groups: a thread takes all that are waiting, runs each in a savepoint
of its own and commits them together, so that a hundred requests need one write to the disk.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from keydyn.service.storage import sqlite
from keydyn.service.storage.errors import (
    PATIENCE,
    DatabaseUnavailableError,
    certainly_undone,
    must_run_again,
    translated,
)
from keydyn.service.storage.sqlite import WriteQueue

__all__ = ["Change", "Database", "DatabaseUnavailableError", "checked_url"]

Result = TypeVar("Result")
Change = Callable[[Connection], Result]
# The largest number of changes that are committed together, and that may wait; more are refused.
GROUP, WAITING = 256, 10_000
# The number of threads that may read at once; others wait.
READERS = 16
# How often a change is run if the database undoes it because of other changes.
ATTEMPTS = 5


@dataclass(frozen=True)
class _Waiting:
    change: Change[Any]
    done: Future[Any]


class Database:
    """A connection to a database, opened once per process; threads may share it.

    A change is a function that takes a connection. It may be run more than once, after a deadlock for
    instance, and so must only read and write through that connection. If it raises an exception, nothing of
    it is stored, and the caller who waits for it gets the exception.
    """

    def __init__(
        self, url: str, most_waiting: int = WAITING, truncating_ms: int = sqlite.TRUNCATING_MS
    ) -> None:
        self.url, self._most_waiting = checked_url(url), most_waiting
        # How many milliseconds `truncate_log` waits for readers.
        self.truncating_ms = truncating_ms
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._kind: Any = sqlite
        if not self.is_sqlite:
            # Imported only here, because its driver takes 10 MB.
            from keydyn.service.storage import postgresql

            self._kind = postgresql
        # The exceptions that are raised when a statement fails.
        self.errors: tuple[type[Exception], ...] = self._kind.ERRORS
        # On SQLite, its connections begin no transactions by themselves.
        self.engine: Engine = self._kind.engine(self.url)
        self._turns = WriteQueue(f"{self.url.database}-turns", PATIENCE) if self.is_sqlite else None
        self._idle: list[Connection] = []
        self._may_read = threading.Semaphore(READERS)
        self._writing: Connection | None = None
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._submitting = threading.Lock()
        self._closed = False

    @property
    def queued(self) -> int:
        """The number of changes that wait."""
        return self._waiting.qsize()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one snapshot of the database, and cannot change it."""
        if not self._may_read.acquire(timeout=PATIENCE):
            raise DatabaseUnavailableError("too many threads wait to read from the database")
        try:
            connection = self._reader()
            try:
                self._kind.begin_reading(connection)
                try:
                    yield connection
                finally:
                    # SQLAlchemy does not know of transactions that prepared statements have begun.
                    if connection.in_transaction():
                        connection.rollback()
                    elif not connection.invalidated:
                        self._kind.driver(connection).rollback()
            except self.errors:
                connection.invalidate()
                raise
            finally:
                self._give_back(connection)
        except self.errors as error:
            raise translated(error) from error
        finally:
            self._may_read.release()

    def write(self, change: Change[Result]) -> Result:
        """Run a change, and return its result once it is durable."""
        return self.submit(change).result()

    def submit(self, change: Change[Result]) -> Future[Result]:
        """Run a change without waiting for it."""
        done: Future[Result] = Future()
        with self._submitting:
            if self._closed:
                raise DatabaseUnavailableError("the database is closed")
            if self._writer is None:
                self._writer = threading.Thread(target=self._work, name="keydyn-writer", daemon=True)
                self._writer.start()
            if self._waiting.qsize() < self._most_waiting:
                self._waiting.put(_Waiting(change, done))
            else:
                done.set_exception(DatabaseUnavailableError("too many changes wait for the database"))
        return done

    def truncate_log(self) -> bool:
        """Remove deleted data from SQLite's log of changes; return False if a reader still needs the log."""
        try:
            return not self.is_sqlite or sqlite.truncate_log(self.engine, self.truncating_ms)
        except self.errors as error:
            raise translated(error) from error

    def close(self) -> None:
        """Finish the changes that are waiting, and close all connections."""
        with self._submitting:
            self._closed = True
            writer = self._writer
            self._waiting.put(None)
        if writer is not None:
            writer.join()
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()
        if self._turns is not None:
            self._turns.close()

    def _reader(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if self._kind.is_usable(connection):
                return connection
            connection.close()
        made: Connection = self._kind.reader(self.engine)
        return made

    def _give_back(self, connection: Connection) -> None:
        if self._closed or connection.invalidated:
            connection.close()
        else:
            self._idle.append(connection)

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group = [first]
            while len(group) < GROUP and not self._waiting.empty():
                one = self._waiting.get()
                if one is None:
                    self._waiting.put(None)
                    break
                group.append(one)
            # Changes that were cancelled are left out; from here on, none can be cancelled.
            group = [one for one in group if one.done.set_running_or_notify_cancel()]
            try:
                self._commit(group)
            except BaseException as error:
                # A change may have ended the transaction, for instance; no caller must wait for ever.
                self._drop_writer()
                for one in group:
                    if not one.done.done():
                        one.done.set_exception(error)
        self._drop_writer()

    def _commit(self, group: list[_Waiting]) -> None:
        """Run and settle all changes of a group, in one transaction if possible."""
        attempts = 0
        while group:
            try:
                with self._turns.turn() if self._turns is not None else nullcontext():
                    settled = self._transaction(group)
            except self.errors as error:
                self._drop_writer()
                attempts += 1
                # The server may have closed the connection long ago: try once more with a new one.
                if must_run_again(error) and attempts == 1:
                    continue
                settled = [lambda done, error=error: done.set_exception(translated(error))] * len(group)  # type: ignore[misc]
            except DatabaseUnavailableError as error:
                self._drop_writer()
                settled = [lambda done, error=error: done.set_exception(error)] * len(group)  # type: ignore[misc]
            for one, settle in zip(group, settled, strict=False):
                settle(one.done)
            attempts = 0 if settled else attempts + 1
            if attempts == ATTEMPTS:
                group.pop(0).done.set_exception(DatabaseUnavailableError("the database is too busy"))
                attempts = 0
            group = group[len(settled) :]

    def _transaction(self, group: list[_Waiting]) -> list[Callable[[Future[Any]], None]]:
        """Run changes and commit them; return functions that settle each, up to one that must be run again.

        Raises one of `errors` if the transaction is lost, and all changes with it.
        """
        if self._writing is None or not self._kind.is_usable(self._writing):
            self._drop_writer()
            self._writing = self.engine.connect()
        connection = self._writing
        settled: list[Callable[[Future[Any]], None]] = []
        transaction = connection.begin()
        self._kind.begin_writing(connection)
        for one in group:
            try:
                found = one.change(connection)
                self._kind.next_savepoint(connection)
            except BaseException as error:
                if connection.invalidated:
                    if isinstance(error, self.errors):
                        raise
                    raise DatabaseUnavailableError("the connection to the database was lost") from error
                try:
                    self._kind.roll_back_to_savepoint(connection)
                except self.errors as lost:
                    # The transaction has ended, because of a full disk for instance.
                    raise (error if isinstance(error, self.errors) else lost) from None
                if isinstance(error, self.errors):
                    if must_run_again(error):
                        break
                    error = translated(error)
                settled.append(lambda done, error=error: done.set_exception(error))  # type: ignore[misc]
            else:
                settled.append(lambda done, found=found: done.set_result(found))  # type: ignore[misc]
        try:
            transaction.commit()
        except self.errors as error:
            if certainly_undone(error):
                raise
            raise DatabaseUnavailableError(
                f"the database failed while storing changes; it is not known whether they are stored: {error}"
            ) from error
        return settled

    def _drop_writer(self) -> None:
        connection, self._writing = self._writing, None
        if connection is not None and not connection.closed:
            connection.invalidate()
            connection.close()


def checked_url(text: str) -> URL:
    """Parse the address of a database; raise a `ValueError` if keydyn cannot use it."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise ValueError(
            "the database must be an address such as sqlite:////var/lib/keydyn/service.db or "
            "postgresql://user@host/name"
        ) from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise ValueError(f"the database must be SQLite or PostgreSQL, not {backend}")
    if not url.database or url.database == ":memory:":
        raise ValueError("SQLite needs a file, as in sqlite:////var/lib/keydyn/service.db")
    return url.set(drivername="sqlite+pysqlite")
