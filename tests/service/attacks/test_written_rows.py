"""Rows written or altered by hand, without the master key, grant nothing and are reported."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import select, text

from keydyn.service import accounts
from keydyn.service.storage import audit, master_keys
from keydyn.service.storage.authentic import altered
from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import VARIABLE, open_master_keys, rotate
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import api_keys, tenants
from keydyn.service.storage.upgrading import upgrade
from tests.service.running import KEYS, http_get, http_post, running
from tests.service.storage.test_master_keys import NEW, OLD
from tests.service.storage.test_master_keys import text as in_base64
from tests.waiting import wait_until

SECRET = "A" * 43
WRITTEN = "0123456789abcdef"


@pytest.fixture
def attacked(database_url):
    """A running service whose database the attacker can write to."""
    database = Database(database_url)
    upgrade(database)
    database.close()
    # With keys of its own: they remember what was altered.
    with running(database_url, keys=MasterKeys([b"k" * 32])) as service:
        yield service


def sql(service, statement, **values):
    service.database.write(lambda connection: connection.execute(text(statement), values))


def status(service, presented):
    return http_get(
        f"{service.url}/v1/settings", headers={"authorization": f"Bearer {presented}"}
    ).status_code


def test_rows_written_by_hand_give_no_access(attacked):
    key, weak, revoked, link_key = (
        attacked.key(scopes=s) for s in (["admin"], ["verify"], ["admin"], ["admin"])
    )
    ids = [one.split("_")[1] for one in (key, weak, revoked, link_key)]
    assert [status(attacked, one) for one in (key, weak, revoked)] == [200, 403, 200]
    sql(
        attacked,
        "INSERT INTO api_keys (id, tenant_id, name, scopes, hash, created_at, kind) "
        "SELECT :id, id, '', 'enrol verify watch admin', :hash, 0, 'key' FROM tenants",
        id=WRITTEN,
        hash=hashlib.sha256(SECRET.encode()).digest(),
    )
    assert status(attacked, f"kdk_{WRITTEN}_{SECRET}") == 401
    sql(attacked, "UPDATE api_keys SET scopes = 'admin' WHERE id = :id", id=ids[1])
    assert status(attacked, weak) == 401
    attacked.database.write(lambda connection: accounts.revoke_key(connection, ids[2], 0))
    sql(attacked, "UPDATE api_keys SET revoked_at = NULL WHERE id = :id", id=ids[2])
    assert status(attacked, revoked) == 401
    # A code of another row does not fit, and neither does another kind of row.
    sql(attacked, "UPDATE api_keys SET mac = (SELECT mac FROM api_keys WHERE id = :other) WHERE id = :id",
        id=WRITTEN, other=ids[0])  # fmt: skip
    sql(attacked, "UPDATE api_keys SET kind = 'link' WHERE id = :id", id=ids[3])
    assert status(attacked, f"kdk_{WRITTEN}_{SECRET}") == 401
    opened = http_post(
        f"{attacked.url}/v1/session",
        json={"link": f"kdl{link_key[3:]}"},
        headers={"origin": attacked.url},
    )
    assert opened.status_code == 401
    with attacked.database.reading() as connection:
        found = altered(connection, KEYS)
    assert sorted(one.split()[2].rstrip(":") for one in found) == sorted([WRITTEN, *ids[1:]])
    # What was not touched still works, until the tenant's settings are.
    assert status(attacked, key) == 200
    wait_until(lambda: len(noted(attacked)) >= 4, "altered rows were not entered in the audit log")
    assert sorted(noted(attacked)) == sorted([WRITTEN, *ids[1:]])
    sql(attacked, "UPDATE tenants SET settings = :settings", settings='{"origins":["https://evil.example"]}')
    assert status(attacked, key) == 401
    asked = http_get(f"{attacked.url}/healthz", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in asked.headers
    with pytest.raises(ValueError, match="not written with the master key"):
        attacked.key()


def noted(service):
    """The rows reported as altered in the audit log."""
    with service.database.reading() as connection:
        owner = connection.execute(select(tenants.c.id)).scalar_one()
        entries = audit.entries(connection, owner)
    return [one["details"]["row"] for one in entries if one["action"] == "row.altered"]


def made(database, *keys):
    """The master keys, and a tenant's key."""
    opened = open_master_keys(database, None, {VARIABLE: in_base64(*keys)})
    return opened, accounts.new_key(database, opened, lambda: 0, "shop")[1]


def is_valid(database, keys, presented):
    with database.reading() as connection:
        holder = accounts.key_holder(connection, keys, presented, 0)
        return holder is not None and accounts.find_tenant(connection, keys, holder.tenant_id) is not None


def strip(database):
    """Remove all codes, as if an earlier version of keydyn had written the rows."""

    def change(connection):
        connection.execute(api_keys.update().values(mac=None))
        connection.execute(tenants.update().values(mac=None))

    database.write(change)


def test_rows_of_an_earlier_version_are_authenticated_once(database):
    keys, presented = made(database, OLD)
    (name,) = keys.ids
    earlier = keys.key(name).seal(master_keys.EARLIER_PROOF, f"master_keys/{name}")
    strip(database)
    proof = master_keys.master_keys.update().values(proof=earlier)
    database.write(lambda connection: connection.execute(proof))
    assert not is_valid(database, keys, presented)
    again, _ = made(database, OLD)
    assert is_valid(database, again, presented)
    # From then on a missing code is refused, however often the service is started.
    strip(database)
    again = open_master_keys(database, None, {VARIABLE: in_base64(OLD)})
    assert not is_valid(database, again, presented)
    with database.reading() as connection:
        assert len(altered(connection, again)) == 3


def test_another_master_key_authenticates_only_what_was_authentic(database):
    keys, presented = made(database, OLD)
    _, written = accounts.new_key(database, keys, lambda: 0, "shop")
    change = api_keys.update().where(api_keys.c.id == written.split("_")[1]).values(name="altered")
    database.write(lambda connection: connection.execute(change))
    rotate(database, None, {VARIABLE: in_base64(NEW, OLD)})
    now = open_master_keys(database, None, {VARIABLE: in_base64(NEW)})
    assert is_valid(database, now, presented)
    assert not is_valid(database, now, written)
    # The old key, in the hands of an attacker, authenticates nothing any more.
    forged = api_keys.update().values(mac=keys.mac(b""))
    with pytest.raises(Exception, match=r"retired|too busy"):
        database.write(lambda connection: connection.execute(forged))
