"""Changes by the operator are in the audit log, and a restored database reports its age."""

from __future__ import annotations

import pytest

from keydyn.service.people import tenancy
from keydyn.service.people.context import Write
from keydyn.service.storage import audit
from tests.service.people.conftest import tenant_of


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
