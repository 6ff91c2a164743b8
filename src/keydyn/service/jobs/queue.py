"""A queue of jobs in the database: added by the change that causes them, leased by the process that runs one.

A job is done at least once. Taking a job counts as an attempt, and the number of the attempt tells leases
apart: a worker that has lost its lease can neither prolong it nor end the job.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from keydyn.service.accounts import Tenant, tenant_key
from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.storage.tables import jobs, tenants
from keydyn.service.wall_clock import SECOND

LEASE = 60 * SECOND
# How far ahead a job may be due. A later time was written before the clock was set back.
FARTHEST = 3600 * SECOND
# The key in `Connection.info` under which the runner finds new jobs when a transaction is committed.
ENQUEUED = "keydyn jobs enqueued"


@dataclass(frozen=True)
class Lease:
    """A job that was taken, with its payload still sealed; attempts count from 1."""

    number: int
    tenant_id: str
    kind: str
    payload: bytes
    tenant: Any = field(repr=False)
    attempt: int

    def opened(self, keys: MasterKeys) -> Job:
        """Decrypt the job; raise a `SealError` if these keys do not open it."""
        data_key = tenant_key(keys, self.tenant)
        payload = json.loads(data_key.open(self.payload, _place(self.kind)))
        return Job(self.tenant_id, payload, data_key, self.attempt)


@dataclass(frozen=True)
class Job:
    """A job in the form that its handler gets, with the tenant's key."""

    tenant_id: str
    payload: dict[str, Any] = field(repr=False)
    data_key: DataKey = field(repr=False)
    attempt: int


def enqueue(
    connection: Connection,
    tenant: Tenant,
    kind: str,
    payload: dict[str, Any],
    *,
    now: int,
    user_id: str | None = None,
) -> None:
    """Add a job within the change that causes it: both are kept, or neither.

    The payload is sealed with the tenant's key. Jobs about a person are deleted when the person is erased.
    """
    sealed = tenant.key.seal(json.dumps(payload).encode(), _place(kind))
    connection.execute(
        insert(jobs).values(tenant_id=tenant.id, user_id=user_id, kind=kind, payload=sealed, due_at=now)
    )
    connection.info.setdefault(ENQUEUED, set()).add(kind)


def due_kinds(connection: Connection, now: int) -> frozenset[str]:
    """The kinds of jobs that are due and not leased."""
    return frozenset(connection.execute(select(jobs.c.kind).where(*_free(now)).distinct()).scalars())


def take(connection: Connection, kind: str, now: int, without: Collection[str] = ()) -> Lease | None:
    """Lease the job of this kind that has been due longest, leaving out the tenants in `without`."""
    row = connection.execute(
        select(jobs, tenants.c.id, tenants.c.wrapped_key, tenants.c.previous_key)
        .join(tenants, tenants.c.id == jobs.c.tenant_id)
        .where(jobs.c.kind == kind, jobs.c.tenant_id.not_in(without), *_free(now))
        .order_by(jobs.c.due_at, jobs.c.number)
        .limit(1)
        # On PostgreSQL, skip jobs that another worker is taking. SQLite has only one writer at a time.
        .with_for_update(of=jobs, skip_locked=True)
    ).first()
    if row is None:
        return None
    attempt = row.attempts + 1
    connection.execute(
        update(jobs).where(jobs.c.number == row.number).values(attempts=attempt, leased_until=now + LEASE)
    )
    return Lease(row.number, row.tenant_id, kind, row.payload, row, attempt)


def prolong(connection: Connection, leases: Collection[Lease], now: int) -> None:
    """Prolong those of the leases that are still held."""
    for lease in leases:
        connection.execute(update(jobs).where(*_held(lease)).values(leased_until=now + LEASE))


def finish(connection: Connection, lease: Lease) -> bool:
    """Remove a job that is done or given up; return True if the lease was still held."""
    return connection.execute(delete(jobs).where(*_held(lease))).rowcount == 1


def postpone(connection: Connection, lease: Lease, due_at: int) -> bool:
    """Postpone a job until `due_at`; return True if the lease was still held."""
    values = {"due_at": due_at, "leased_until": 0}
    return connection.execute(update(jobs).where(*_held(lease)).values(values)).rowcount == 1


def waiting(connection: Connection) -> dict[str, int]:
    """The number of jobs in the queue, by kind."""
    return {row.kind: row.number for row in connection.execute(_WAITING)}


_WAITING = select(jobs.c.kind, func.count().label("number")).group_by(jobs.c.kind)


def _free(now: int) -> tuple[ColumnElement[bool], ...]:
    """Jobs that are due and not leased. Times too far ahead were written before the clock was set back."""
    due = or_(jobs.c.due_at <= now, jobs.c.due_at > now + FARTHEST)
    return due, or_(jobs.c.leased_until <= now, jobs.c.leased_until > now + LEASE)


def _held(lease: Lease) -> tuple[ColumnElement[bool], ...]:
    return jobs.c.number == lease.number, jobs.c.attempts == lease.attempt


def _place(kind: str) -> str:
    return f"jobs/{kind}/payload"
