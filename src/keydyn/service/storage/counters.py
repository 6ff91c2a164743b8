"""Numbers that rise until they expire, counted durably and by all processes together."""

from __future__ import annotations

from sqlalchemy import Connection, Insert, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from keydyn.service.storage.tables import counters

_ONE = select(counters.c.amount).where(
    counters.c.tenant_id == bindparam("tenant"), counters.c.name == bindparam("called")
)


def amount(connection: Connection, tenant_id: str, name: str) -> int:
    """What was counted under this name; 0 if nothing was."""
    return connection.execute(_ONE, {"tenant": tenant_id, "called": name}).scalar() or 0


def add(
    connection: Connection,
    tenant_id: str,
    name: str,
    more: int,
    expires_at: int,
    user_id: str | None = None,
) -> int:
    """Count more under this name, and return what was counted altogether.

    The row is locked until the change is committed: of several at the same time, each sees those before it.
    """
    row = {
        "tenant_id": tenant_id,
        "name": name,
        "user_id": user_id,
        "expires_at": expires_at,
        "amount": more,
    }
    found: int = connection.execute(_ADD[connection.dialect.name], row).scalar_one()
    return found


def _adding(insert: sqlite.Insert | postgresql.Insert) -> Insert:
    raised = {"amount": counters.c.amount + insert.excluded.amount}
    there = [counters.c.tenant_id, counters.c.name]
    return insert.on_conflict_do_update(index_elements=there, set_=raised)


_ADD = {
    "sqlite": _adding(sqlite.insert(counters)).returning(counters.c.amount),
    "postgresql": _adding(postgresql.insert(counters)).returning(counters.c.amount),
}
