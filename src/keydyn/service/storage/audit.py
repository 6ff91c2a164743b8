"""The audit log of each tenant: append-only, with hashes that cover an entry and the hash before it.

The end of the log, a number and a hash, is kept in the tenant's row, so that entries missing at the end are
noticed too. With write access to the database, a whole log and its end can still be forged. To rule that out,
compare the end with a copy that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, select, tuple_, update
from sqlalchemy.exc import NoResultFound

from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import audit, tenants

PLAIN = ("number", "at", "actor", "action", "subject")
# The hash that stands for the one before the first entry.
START = b""
# The number of entries that are read at a time.
CHUNK = 1000

_END = select(tenants.c.audit_number, tenants.c.audit_hash).where(tenants.c.id == bindparam("tenant"))
# FOR NO KEY UPDATE on PostgreSQL: rows added earlier in this change that refer to the tenant have locked the
# tenant's key, for which two processes would otherwise wait for each other.
_END_LOCKED = Prepared(_END.with_for_update(key_share=True))
_MOVE_END = Prepared(update(tenants).where(tenants.c.id == bindparam("tenant")), "audit_number", "audit_hash")
_INSERT = Prepared(audit.insert(), *(column.name for column in audit.c))


@dataclass(frozen=True)
class AuditReport:
    """The result of checking a tenant's log: its end, and any problem; `partial` if more entries follow."""

    tenant_id: str
    entries: int
    end: str
    problem: str = ""
    partial: bool = False


class Entry(NamedTuple):
    """The contents of an entry: the time, the actor, the action, the person concerned, and details."""

    at: int
    actor: str
    action: str
    subject: str = ""
    details: Mapping[str, Any] = {}


def append(connection: Connection, tenant_id: str, entry: Entry) -> None:
    """Add an entry, within the change that it documents."""
    end = _END_LOCKED.first(connection, tenant=tenant_id)
    if end is None:
        raise NoResultFound("there is no such tenant")
    details = _details(entry)
    number = end.audit_number + 1
    row = {**entry._asdict(), "tenant_id": tenant_id, "number": number, "details": details}
    hashed = _hash(end.audit_hash, row)
    _INSERT.run(connection, **row, hash=hashed)
    _MOVE_END.run(connection, tenant=tenant_id, audit_number=number, audit_hash=hashed)


def append_once(connection: Connection, tenant_id: str, entry: Entry) -> None:
    """Add an entry, unless the tenant is gone or has an entry of the same action with the same details."""
    there = connection.execute(_END, {"tenant": tenant_id}).first()
    details = audit.c.details == _details(entry)
    same = audit.c.tenant_id == tenant_id, audit.c.action == entry.action, details
    if there is not None and connection.execute(select(audit.c.number).where(*same)).first() is None:
        append(connection, tenant_id, entry)


def _details(entry: Entry) -> str:
    return json.dumps(entry.details, sort_keys=True, separators=(",", ":"), allow_nan=False)


def pseudonym(key: DataKey) -> str:
    """A person's name in the log, which cannot be traced back to them without their key."""
    return key.derived("audit pseudonym").hex()[:32]


def entries(
    connection: Connection, tenant_id: str, subject: str | None = None, after: int = 0
) -> list[dict[str, Any]]:
    """The entries of a tenant, or those about one person, with numbers above `after`."""
    query = select(audit).where(audit.c.tenant_id == tenant_id, audit.c.number > after)
    if subject is not None:
        query = query.where(audit.c.subject == subject)
    return [_entry(row) for row in connection.execute(query.order_by(audit.c.number))]


def newest(
    connection: Connection,
    tenant_id: str,
    limit: int,
    action: str | None = None,
    before: tuple[int, int] | None = None,
    subject: str | None = None,
) -> list[dict[str, Any]]:
    """Up to `limit` entries before the time and number in `before`, the newest first.

    If given, only those of one action, or about one person, named by their pseudonym.
    """
    query = select(audit).where(audit.c.tenant_id == tenant_id)
    if subject is not None:
        query = query.where(audit.c.subject == subject)
    if action is None:
        query = query.order_by(audit.c.number.desc())
        if before is not None:
            query = query.where(audit.c.number < before[1])
    else:
        # In the order of the index, which differs from that of the numbers if the clock was set back.
        query = query.where(audit.c.action == action).order_by(audit.c.at.desc(), audit.c.number.desc())
        if before is not None:
            query = query.where(tuple_(audit.c.at, audit.c.number) < before)
    return [_entry(row) for row in connection.execute(query.limit(limit))]


def verify(
    connection: Connection,
    tenant_id: str,
    number: int = 0,
    hashed: bytes = START,
    most: int | None = None,
    chunk: int = CHUNK,
) -> AuditReport:
    """Check a tenant's log by recomputing its hashes; the report names the first entry that does not fit.

    The check starts after entry `number`, whose hash is known to be `hashed`, and covers at most `most`
    entries.
    """
    expected = connection.execute(_END, {"tenant": tenant_id}).one()
    last = None if most is None else number + most
    for row in _rows(connection, tenant_id, number or None, chunk):
        if number == last:
            return AuditReport(tenant_id, number, hashed.hex(), partial=True)
        if row["number"] != number + 1:
            return AuditReport(tenant_id, number, hashed.hex(), f"entry {number + 1} is missing")
        if row["hash"] != _hash(hashed, row):
            problem = f"entry {row['number']} was changed, or the one before it"
            return AuditReport(tenant_id, number, hashed.hex(), problem)
        number, hashed = row["number"], row["hash"]
    if (number, hashed) != (expected.audit_number, expected.audit_hash):
        problem = f"the log ends after entry {number}; entry {expected.audit_number} should be the last"
        if number == expected.audit_number:
            problem = f"entry {number} is not the one that was written last"
        return AuditReport(tenant_id, number, hashed.hex(), problem)
    return AuditReport(tenant_id, number, hashed.hex())


def verify_all(connection: Connection) -> list[AuditReport]:
    """Check the logs of all tenants, and report logs without a tenant."""
    known = connection.execute(select(tenants.c.id).order_by(tenants.c.id)).scalars().all()
    logged = connection.execute(select(audit.c.tenant_id).distinct().order_by(audit.c.tenant_id)).scalars()
    lost = [
        AuditReport(tenant_id, 0, "", "there is a log, but no such tenant")
        for tenant_id in logged
        if tenant_id not in known
    ]
    return [verify(connection, tenant_id) for tenant_id in known] + lost


def _entry(row: Row[Any]) -> dict[str, Any]:
    plain = {name: getattr(row, name) for name in PLAIN}
    return {**plain, "details": json.loads(row.details), "hash": row.hash.hex()}


def _rows(
    connection: Connection, tenant_id: str, after: int | None, chunk: int
) -> Iterator[Mapping[str, Any]]:
    while True:
        query = select(audit).where(audit.c.tenant_id == tenant_id)
        if after is not None:
            query = query.where(audit.c.number > after)
        rows = connection.execute(query.order_by(audit.c.number).limit(chunk)).mappings().all()
        yield from map(dict, rows)
        if len(rows) < chunk:
            return
        after = rows[-1]["number"]


def _hash(before: bytes, entry: Mapping[str, Any]) -> bytes:
    text = json.dumps([entry[name] for name in ("tenant_id", *PLAIN, "details")], separators=(",", ":"))
    return hashlib.sha256(before + text.encode()).digest()
