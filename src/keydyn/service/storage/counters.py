"""Durable counters, shared by all processes, that rise until they expire."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import counters

_ONE = Prepared(
    select(counters.c.amount).where(
        counters.c.tenant_id == bindparam("tenant"), counters.c.name == bindparam("called")
    )
)


def amount(connection: Connection, tenant_id: str, name: str) -> int:
    """The value of the counter of this name; 0 if there is none."""
    return _ONE.value(connection, tenant=tenant_id, called=name) or 0


def add(
    connection: Connection,
    tenant_id: str,
    name: str,
    more: int,
    expires_at: int,
    user_id: str | None = None,
) -> int:
    """Add `more` to the counter of this name, and return its new value.

    The row is locked until the change is committed, so that concurrent changes see each other's counts.
    """
    row = {
        "tenant_id": tenant_id,
        "name": name,
        "user_id": user_id,
        "expires_at": expires_at,
        "amount": more,
    }
    found: int = _ADD[connection.dialect.name].value(connection, **row)
    return found


def _adding(insert: sqlite.Insert | postgresql.Insert) -> Prepared:
    raised = {"amount": counters.c.amount + insert.excluded.amount}
    there = [counters.c.tenant_id, counters.c.name]
    adding = insert.on_conflict_do_update(index_elements=there, set_=raised)
    return Prepared(adding.returning(counters.c.amount), *(column.name for column in counters.c))


_ADD = {
    "sqlite": _adding(sqlite.insert(counters)),
    "postgresql": _adding(postgresql.insert(counters)),
}
