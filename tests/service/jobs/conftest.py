"""Fixtures: a tenant whose jobs are run, and a clock that tests move."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, insert

from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.storage.tables import tenants, users

# Some time in 2025.
START = 1_750_000_000_000


class MovableClock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@dataclass(frozen=True)
class Tenant:
    """A tenant with one person."""

    id: str
    key: DataKey
    user_id: str
    keys: MasterKeys


@pytest.fixture
def clock() -> MovableClock:
    """A clock for one test."""
    return MovableClock()


def new_tenant(database: Database, name: str = "a") -> Tenant:
    """Make a tenant with a name of one letter."""
    keys, key = MasterKeys([b"m" * 32]), DataKey.new()
    tenant = Tenant(name * 32, key, name * 31 + "u", keys)
    wrapped = keys.wrap(key, f"tenants/{tenant.id}")
    row = {"id": tenant.id, "name": name, "created_at": 0, "settings": "{}", "wrapped_key": wrapped}
    person = {
        "id": tenant.user_id,
        "tenant_id": tenant.id,
        "name": "yvonne",
        "created_at": 0,
        "wrapped_key": b"",
    }

    def add(connection: Connection) -> None:
        connection.execute(insert(tenants).values(**row, audit_number=0, audit_hash=b""))
        connection.execute(insert(users).values(**person))

    database.write(add)
    return tenant
