"""Rows for tests of storage."""

from __future__ import annotations

from sqlalchemy import Connection

from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.storage.tables import tenants, users


def add_tenant(connection: Connection, tenant_id: str, keys: MasterKeys | None = None) -> DataKey:
    """A tenant, with its key."""
    key = DataKey.new()
    connection.execute(
        tenants.insert().values(
            id=tenant_id,
            name=tenant_id,
            created_at=0,
            settings="{}",
            wrapped_key=keys.wrap(key, f"tenants/{tenant_id}") if keys else b"",
            audit_number=0,
            audit_hash=b"",
        )
    )
    return key


def add_user(connection: Connection, user_id: str, tenant_id: str, keys: MasterKeys | None = None) -> DataKey:
    """A person, with their key."""
    key = DataKey.new()
    wrapped = keys.wrap(key, f"users/{user_id}") if keys else b""
    connection.execute(
        users.insert().values(
            id=user_id, tenant_id=tenant_id, name=user_id, created_at=0, wrapped_key=wrapped
        )
    )
    return key
