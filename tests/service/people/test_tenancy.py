"""Changes by the operator are in the audit log, and a restored database reports its age."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from keydyn.service.accounts import DEPLOYMENT
from keydyn.service.jobs import queue
from keydyn.service.people import registry, tenancy
from keydyn.service.people.context import Write
from keydyn.service.people.recognition.attempts import FREE_FAILURES
from keydyn.service.storage import audit
from keydyn.service.storage.tables import users
from tests.service.people.conftest import tenant_of
from tests.service.running import KEYS


def last_entry(context, tenant):
    with context.database.reading() as connection:
        return audit.entries(connection, tenant.id)[-1]


def test_a_key_that_is_replaced_is_in_the_audit_log(context):
    tenant = tenant_of(context, "shop")
    tenancy.replace_key(context, Write(tenant, "operator"))
    entry = last_entry(context, tenant)
    assert (entry["at"], entry["actor"]) == (context.clock(), "operator")
    assert entry["action"] == "tenant.key-replaced"


@pytest.mark.parametrize("keep_keys", [False, True])
def test_a_restored_database_says_when_it_was_last_written_to(context, keep_keys):
    shop, another = (tenant_of(context, name) for name in ("shop", "another"))
    for tenant, at in ((shop, 2000), (another, 3000), (shop, 1000)):
        entry = audit.Entry(at, "service", "test")
        context.database.write(lambda c, tenant=tenant, entry=entry: audit.append(c, tenant.id, entry))
    done = context.database.write(lambda connection: tenancy.secure(connection, 4000, keep_keys))
    assert done == tenancy.Restored(3000, 0)
    for tenant in (shop, another):
        entry = last_entry(context, tenant)
        assert (entry["at"], entry["action"]) == (4000, "backup.restored")
        assert entry["details"] == {"keys": "kept" if keep_keys else "revoked"}


def test_failures_since_a_backup_are_unknown_so_everybody_is_delayed_at_the_next_one(context, write):
    registry.create(context, write, "bob")
    many = update(users).where(users.c.name == "bob").values(failures=FREE_FAILURES + 3, failed_at=1)

    def restored(connection):
        connection.execute(many)
        tenancy.secure(connection, 4000, keep_keys=True)
        rows = connection.execute(select(users.c.name, users.c.failures, users.c.failed_at)).all()
        return {row.name: tuple(row[1:]) for row in rows}

    found = context.database.write(restored)
    assert found == {"ada": (FREE_FAILURES, 4000), "bob": (FREE_FAILURES + 3, 1)}


def test_a_replaced_key_opens_what_it_sealed_for_two_days_and_no_longer(context):
    tenancy.replace_key(context, Write(tenant_of(context, "shop"), "operator"))
    kept = []
    for later in (0, tenancy.OVERLAP, 1):
        context.clock.now += later
        tenancy.finish_replacing(context)
        kept.append(tenant_of(context, "shop").key.previous is not None)
    assert kept == [True, True, False]


def test_the_end_of_a_deleted_log_is_noted(context):
    shop, another = (tenant_of(context, name) for name in ("shop", "another"))
    for name in ("ada", "bob"):
        registry.create(context, Write(shop, "service"), name)
    registry.create(context, Write(another, "service"), "eve")
    with context.database.reading() as connection:
        before = audit.verify(connection, shop.id)
    tenancy.delete_tenant(context, shop)
    with context.database.reading() as connection:
        (entry,) = audit.entries(connection, DEPLOYMENT)
    assert (entry["at"], entry["actor"]) == (context.clock(), "operator")
    told = {"tenant": shop.id, "name": "shop", "users": 2, "entries": before.entries, "end": before.end}
    assert entry["details"] == told
    # If the database's log could not be truncated, a job does it.
    lease = context.database.write(lambda c: queue.take(c, "truncate-log", context.clock()))
    assert (lease.tenant_id, lease.opened(KEYS).payload) == (DEPLOYMENT, {})
