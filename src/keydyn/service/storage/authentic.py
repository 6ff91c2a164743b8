"""Authentication codes, made with the master key, of rows that grant access: forged rows are refused.

A revoked row grants nothing and needs no code, so that keys can be revoked without the master key. A person
who can write to the database can still restore a row, or all of them, to an earlier state.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Table, bindparam, select, true, update

from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import api_keys, tenants

logger = logging.getLogger(__name__)
# The columns that the code covers. A wrapped key needs no code, as its encryption binds it to its row.
COVERED = {
    tenants: ("id", "name", "created_at", "settings", "key_since", "previous_key", "lasting_key"),
    api_keys: (
        *("id", "tenant_id", "name", "scopes", "hash", "created_at"),
        *("kind", "expires_at", "made_with"),
    ),
}
_COVERED = {table: attrgetter(*names) for table, names in COVERED.items()}
# Rows that grant something, in each table.
GRANTING = {tenants: true(), api_keys: api_keys.c.revoked_at.is_(None)}


def with_mac(keys: MasterKeys, table: Table, values: Mapping[Any, Any]) -> dict[str, Any]:
    """The values of a row, with the code added; columns that are not named count as empty."""
    covered = [values.get(name) for name in COVERED[table]]
    return {**values, "mac": keys.mac(_contents(table, covered))}


def is_authentic(keys: MasterKeys, table: Table, row: Row[Any]) -> bool:
    """Whether a row was written with the master key; logs an error when a row is first found forged."""
    if keys.is_authentic(_contents(table, _COVERED[table](row)), row.mac):
        return True
    place = table.name, str(row.id)
    if place not in keys.altered:
        keys.altered[place] = str(row.id if table is tenants else row.tenant_id)
        logger.error(
            "the row %s of %s was not written with the master key: it is refused", row.id, table.name
        )
    return False


def altered(connection: Connection, keys: MasterKeys) -> list[str]:
    """Descriptions of all rows that grant access and were not written with the master key."""
    return [
        f"{table.name}, row {row.id}: not written with the master key"
        for table, granting in GRANTING.items()
        for row in connection.execute(select(table).where(granting).order_by(table.c.id))
        if not is_authentic(keys, table, row)
    ]


def authenticate_all(connection: Connection, keys: MasterKeys, only_authentic: bool = False) -> None:
    """Give rows that grant access a code of the newest key: all of them, or only those with a valid code."""
    for table, granting in GRANTING.items():
        rows = connection.execute(select(table).where(granting).with_for_update()).all()
        found = [
            {"row": row.id, "code": with_mac(keys, table, row._mapping)["mac"]}
            for row in rows
            if not only_authentic or is_authentic(keys, table, row)
        ]
        if found:
            one = update(table).where(table.c.id == bindparam("row")).values(mac=bindparam("code"))
            connection.execute(one, found)


def _contents(table: Table, covered: Iterable[Any]) -> bytes:
    return msgspec.json.encode([str(table.name), *covered])
