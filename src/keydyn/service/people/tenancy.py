"""Actions of the operator: replace a tenant's key, delete a tenant, secure a restored database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Row, delete, func, select, tuple_, update

from keydyn.service.accounts import (
    DEPLOYMENT,
    Tenant,
    change_tenant,
    deployment_log,
    find_tenant,
    revoke_rows,
)
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.context import Context, Write
from keydyn.service.people.recognition.attempts import FREE_FAILURES
from keydyn.service.storage import audit
from keydyn.service.storage.sealing import DataKey, SealError
from keydyn.service.storage.tables import audit as entries
from keydyn.service.storage.tables import idempotency, jobs, populations, tenants, users, webhooks
from keydyn.service.wall_clock import DAY

# How long a replaced key still opens what it sealed, in milliseconds: longer than jobs and stored answers
# are kept.
OVERLAP = 2 * DAY


class Sealed(NamedTuple):
    """A column that is sealed with tenants' keys, and the function that gives the place of its values."""

    column: Column[bytes]
    place: Callable[[Row[Any]], str]


LASTING = (
    Sealed(populations.c.contents, lambda row: f"populations/{row.id}/contents"),
    Sealed(webhooks.c.secret, lambda row: f"webhooks/{row.id}/secret"),
)
PASSING = (
    Sealed(jobs.c.payload, lambda row: f"jobs/{row.kind}/payload"),
    Sealed(idempotency.c.answer, lambda row: f"idempotency/{row.key}/answer"),
)


def replace_key(context: Context, write: Write) -> None:
    """Replace a tenant's key. Tokens signed with the old key are void at once.

    The service may keep running: whatever a request seals with the old key can be opened for two more days.
    """
    keys, now, tenant_id = context.keys, context.clock(), write.tenant.id

    def change(connection: Connection) -> None:
        # Read the tenant again: another command may have replaced its key meanwhile.
        tenant, new = _found(connection, context, tenant_id), DataKey.new()
        first = tenant.first_key or tenant.key
        _seal_again(connection, tenant, new, LASTING if tenant.key.previous is None else LASTING + PASSING)
        change_tenant(
            connection,
            keys,
            tenant_id,
            wrapped_key=keys.wrap(new, f"tenants/{tenant_id}"),
            previous_key=new.seal(tenant.key.key, f"tenants/{tenant_id}/previous"),
            lasting_key=new.seal(first.key, f"tenants/{tenant_id}/lasting"),
            key_since=now,
        )
        write.note(connection, now, "tenant.key-replaced")

    context.database.write(change)


def finish_replacing(context: Context) -> None:
    """Drop keys that were replaced two days ago, after sealing again whatever is still sealed with them."""
    due = tenants.c.previous_key.is_not(None), tenants.c.key_since < context.clock() - OVERLAP
    with context.database.reading() as connection:
        found = connection.execute(select(tenants.c.id).where(*due)).scalars().all()
    for tenant_id in found:

        def change(connection: Connection, tenant_id: str = tenant_id) -> None:
            tenant = find_tenant(connection, context.keys, tenant_id)
            if tenant is not None and tenant.key.previous is not None:
                _seal_again(connection, tenant, DataKey(tenant.key.key), LASTING + PASSING)
                change_tenant(connection, context.keys, tenant_id, previous_key=None)

        context.database.write(change)


def _seal_again(connection: Connection, tenant: Tenant, key: DataKey, which: Sequence[Sealed]) -> None:
    for column, place in which:
        table = column.table
        primary = table.primary_key.columns
        rows = connection.execute(select(table).where(table.c.tenant_id == tenant.id).with_for_update()).all()
        for row in rows:
            sealed = row._mapping[column]
            try:
                key.open(sealed, place(row))
            except SealError:
                again = key.seal(tenant.key.open(sealed, place(row)), place(row))
                one = tuple_(*primary) == tuple(row._mapping[part] for part in primary)
                connection.execute(update(table).where(one).values({column.name: again}))


def delete_tenant(context: Context, tenant: Tenant) -> bool:
    """Delete a tenant with all its data; return False if SQLite's log still has to be truncated.

    The deployment's audit log notes the deletion, and the end of the tenant's own log, which is deleted too.
    """
    now = context.clock()

    def change(connection: Connection) -> None:
        row = connection.execute(select(tenants).where(tenants.c.id == tenant.id)).one()
        people = select(func.count()).select_from(users).where(users.c.tenant_id == tenant.id)
        details = {
            "tenant": tenant.id,
            "name": tenant.name,
            "users": connection.execute(people).scalar_one(),
            "entries": row.audit_number,
            "end": row.audit_hash.hex(),
        }
        connection.execute(delete(tenants).where(tenants.c.id == tenant.id))
        # Triggers allow this now that the tenant's row is gone.
        connection.execute(delete(entries).where(entries.c.tenant_id == tenant.id))
        deployment_log(connection, context.keys, now)
        entry = audit.Entry(now, "operator", "tenant.deleted", details=details)
        audit.append(connection, DEPLOYMENT, entry)
        if context.database.is_sqlite:
            owner = _found(connection, context, DEPLOYMENT)
            enqueue(connection, owner, "truncate-log", {}, now=now)

    context.database.write(change)
    return context.database.truncate_log()


def _found(connection: Connection, context: Context, tenant_id: str) -> Tenant:
    found = find_tenant(connection, context.keys, tenant_id)
    if found is None:
        raise ValueError("there is no such tenant any more")
    return found


@dataclass(frozen=True)
class Restored:
    """The time of the latest audit log entry, and the number of keys, links and sessions revoked."""

    last_entry_at: int | None
    revoked: int


def secure(connection: Connection, now: int, keep_keys: bool) -> Restored:
    """Revoke the keys, links and sessions of a restored database, unless `keep_keys`.

    Some of them may have been revoked after the backup was made. Failed attempts since then are unknown;
    instead, everyone is given as many as start the delays, until they have been accepted once.
    """
    last_entry_at = connection.execute(select(func.max(entries.c.at))).scalar()
    revoked = 0 if keep_keys else revoke_rows(connection, now)
    few = users.c.failures < FREE_FAILURES
    connection.execute(update(users).where(few).values(failures=FREE_FAILURES, failed_at=now))
    for tenant_id in connection.execute(select(tenants.c.id).order_by(tenants.c.id)).scalars().all():
        details = {"keys": "kept" if keep_keys else "revoked"}
        audit.append(connection, tenant_id, audit.Entry(now, "operator", "backup.restored", details=details))
    return Restored(last_entry_at, revoked)
