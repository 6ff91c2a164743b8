"""Fixtures for people without a server: a database, a clock that is moved, and one tenant."""

from __future__ import annotations

from typing import Any

import pytest

from keydyn.service.accounts import Tenant, find_tenant, tenant_named
from keydyn.service.people import registry
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedKeys, TypedSample
from keydyn.service.people.rows import PersonRow, person_named
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from keydyn.service.wire.both_ways import Text
from tests.service.running import KEYS, MovedClock
from tests.service.typists import frame_of

COLUMNS = ("keyname", "timepress", "timerelease")


def tenant_of(context: Context, name: str) -> Tenant:
    """The tenant of this name in its present state, created if necessary."""
    tenant_id = context.database.write(lambda connection: tenant_named(connection, KEYS, name, 0))
    with context.database.reading() as connection:
        found = find_tenant(connection, KEYS, tenant_id)
    assert found is not None
    return found


def person_of(context: Context, write: Write, name: str = "ada") -> PersonRow:
    """A person of the tenant as stored now."""
    with context.database.reading() as connection:
        return person_named(connection, context, write.tenant, name)


def logged(context: Context, write: Write) -> list[dict[str, Any]]:
    """The entries of the tenant's audit log."""
    with context.database.reading() as connection:
        return audit.entries(connection, write.tenant.id)


def typed_by(user: int, session: int) -> TypedSample:
    """A sample of free text."""
    columns = (tuple(frame_of(user, session)[name].tolist()) for name in COLUMNS)
    return TypedSample(TypedKeys(*columns), Text(), "keyboard")


@pytest.fixture
def context(sqlite_database: Database) -> Context:
    """The context of one process."""
    return Context(sqlite_database, KEYS, MovedClock())


@pytest.fixture
def write(context: Context) -> Write:
    """Work for a tenant with one person, ada, without samples."""
    own = Write(tenant_of(context, "shop"), "service")
    registry.create(context, own, "ada")
    return own
