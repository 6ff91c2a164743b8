"""What is done to a database that was restored from a backup, before it is used again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from keydyn.service.accounts import revoke_rows
from keydyn.service.people.attempts import FREE_FAILURES
from keydyn.service.storage import audit
from keydyn.service.storage.tables import audit as entries
from keydyn.service.storage.tables import tenants, users


@dataclass(frozen=True)
class Restored:
    """The moment of the last entry of an audit log, and how many keys, links and sessions were revoked."""

    last_entry_at: int | None
    revoked: int


def secure(connection: Connection, now: int, keep_keys: bool = False) -> Restored:
    """Revoke keys, links and sessions, some of which may have been revoked after the backup was made.

    Failed attempts since then are forgotten: in return, nobody has any that cost no delay, until they have
    been accepted once.
    """
    last_entry_at = connection.execute(select(func.max(entries.c.at))).scalar()
    revoked = 0 if keep_keys else revoke_rows(connection, now)
    few = users.c.failures < FREE_FAILURES
    connection.execute(update(users).where(few).values(failures=FREE_FAILURES, failed_at=now))
    for tenant_id in connection.execute(select(tenants.c.id).order_by(tenants.c.id)).scalars().all():
        details = {"keys": "kept" if keep_keys else "revoked"}
        audit.append(connection, tenant_id, audit.Entry(now, "operator", "backup.restored", details=details))
    return Restored(last_entry_at, revoked)
