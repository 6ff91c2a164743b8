"""Periodic work in threads of its own; above all, deleting rows that have expired."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from random import SystemRandom

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, select, tuple_

from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.storage.tables import api_keys, counters, decisions, idempotency, samples, watch_sessions
from keydyn.service.wall_clock import DAY

logger = logging.getLogger(__name__)
# Columns that hold a time, and how many milliseconds after it a row is kept.
KEPT = {
    samples.c.expires_at: 0,
    # Links and sessions of pages; keys do not expire.
    api_keys.c.expires_at: 0,
    idempotency.c.created_at: DAY,
    watch_sessions.c.seen_at: 30 * DAY,
    counters.c.expires_at: 0,
    decisions.c.created_at: 30 * DAY,
}
# The interval in seconds at which expired rows are deleted, and the number of rows deleted in one change.
EXPIRY_S, BATCH = 600.0, 500


class Periodic:
    """Calls a function about every `every_s` seconds, by the monotonic clock, until it is stopped."""

    def __init__(self, name: str, work: Callable[[], object], every_s: float) -> None:
        self._work, self._every_s = work, every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"keydyn-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread; each call comes after a random part of the interval, so that processes spread."""
        self._thread.start()

    def stop(self, timeout_s: float = 10) -> None:
        """Stop the thread, and wait for a call that is in progress."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s * SystemRandom().uniform(0.5, 1)):
            try:
                self._work()
            except DatabaseUnavailableError:
                logger.warning("%s: the database is unavailable; tried again later", self._thread.name)
            except Exception as error:
                # The message of an error may name people; its type does not.
                logger.error("%s: %s; tried again later", self._thread.name, type(error).__name__)


def expire(database: Database, now: int, batch: int = BATCH) -> dict[str, int]:
    """Delete rows that have expired, `batch` in one change; return the number deleted from each table."""
    deleted = {column.table.name: 0 for column in KEPT}
    for column, kept in KEPT.items():
        condition = column < now - kept
        # In batches, so that other changes can be made in between.
        while _any(database, condition):
            found = database.write(partial(_delete, column=column, condition=condition, batch=batch))
            deleted[column.table.name] += found
            if found < batch:
                break
    return deleted


def _any(database: Database, condition: ColumnElement[bool]) -> bool:
    with database.reading() as connection:
        return bool(connection.execute(select(exists().where(condition))).scalar())


def _delete(connection: Connection, column: Column[int], condition: ColumnElement[bool], batch: int) -> int:
    key = column.table.primary_key.columns
    oldest = select(*key).where(condition).order_by(column).limit(batch).with_for_update(skip_locked=True)
    return connection.execute(delete(column.table).where(tuple_(*key).in_(oldest))).rowcount
