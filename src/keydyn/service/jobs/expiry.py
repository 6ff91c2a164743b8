"""Deleting what has expired: samples, links and sessions of pages, stored answers, watched sessions.

Every process looks for it now and then, and writes only if it finds something.
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, select, tuple_

from keydyn.service.clock import DAY, Clock
from keydyn.service.jobs.periodic import Periodic
from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import api_keys, idempotency, samples, watch_sessions

# Columns with a moment, and how long after it a row is kept.
KEPT = {
    samples.c.expires_at: 0,
    # Links and sessions of pages; keys do not expire.
    api_keys.c.expires_at: 0,
    idempotency.c.created_at: DAY,
    watch_sessions.c.seen_at: 30 * DAY,
}
# How often a process looks, seconds, and how many rows are deleted in one change.
EVERY_S, BATCH = 600.0, 500


class Expiry(Periodic):
    """Deletes what has expired, every ten minutes or so."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__("expiry", lambda: expire(database, clock()), EVERY_S)


def expire(database: Database, now: int) -> dict[str, int]:
    """Delete what has expired; the number of rows deleted from each table."""
    deleted = {column.table.name: 0 for column in KEPT}
    for column, kept in KEPT.items():
        condition = column < now - kept
        # In parts, so that others can write in between.
        while _any(database, condition):
            found = database.write(partial(_delete, column=column, condition=condition))
            deleted[column.table.name] += found
            if found < BATCH:
                break
    return deleted


def _any(database: Database, condition: ColumnElement[bool]) -> bool:
    with database.reading() as connection:
        return bool(connection.execute(select(exists().where(condition))).scalar())


def _delete(connection: Connection, column: Column[int], condition: ColumnElement[bool]) -> int:
    key = column.table.primary_key.columns
    oldest = select(*key).where(condition).order_by(column).limit(BATCH).with_for_update(skip_locked=True)
    return connection.execute(delete(column.table).where(tuple_(*key).in_(oldest))).rowcount
