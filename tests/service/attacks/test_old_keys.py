"""A tenant's old key, from an old backup and an old master key, is useless once it has been replaced."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import func, select
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.service import accounts, tokens
from keydyn.service.jobs import queue
from keydyn.service.jobs.webhooks import create, destination, of_tenant
from keydyn.service.people import tenancy
from keydyn.service.people.context import Context, Write
from keydyn.service.storage.audit import entries, verify_all
from keydyn.service.storage.master_keys import VARIABLE, open_master_keys
from keydyn.service.storage.sealing import DataKey, SealError
from keydyn.service.storage.tables import metadata, tenants
from keydyn.service.storage.upgrading import check
from keydyn.service.tokens import TokenClaims
from tests.service.running import KEYS, MovedClock
from tests.service.storage.rows import add_user
from tests.service.storage.test_master_keys import OLD, text


@pytest.fixture
def context(database):
    """A database with one tenant, which has a webhook and a job."""
    context = Context(database, KEYS, MovedClock())
    accounts.new_key(database, KEYS, context.clock, "shop")
    tenant, now = found(context), context.clock()

    def change(connection):
        create(connection, tenant, "https://example.org/", ["session.locked"], now=now)
        queue.enqueue(connection, tenant, "fit", {"number": 1}, now=now)

    database.write(change)
    return context


def found(context, name="shop"):
    with context.database.reading() as connection:
        tenant_id = connection.execute(select(tenants.c.id).where(tenants.c.name == name)).scalar_one()
        return accounts.find_tenant(connection, context.keys, tenant_id)


def secret(context, tenant):
    with context.database.reading() as connection:
        (webhook,) = of_tenant(connection, tenant.id)
        return destination(connection, tenant.id, webhook.id, tenant.key)


def test_tokens_of_the_old_key_are_void_and_what_it_sealed_still_opens(context):
    before = found(context)
    bound = "free", "keyboard", "standard", 5
    claims = TokenClaims(before.id, "key", "user", "verify", "", context.clock() + 1000, "n", *bound)
    token = claims.signed(before)
    assert tokens.is_valid(token, before, claims, context.clock())
    known = secret(context, before)
    tenancy.replace_key(context, Write(before, "operator"))
    after = found(context)
    assert after.key.key != before.key.key
    assert not tokens.is_valid(token, after, claims, context.clock())
    assert secret(context, after) == known
    # The webhook's secret is sealed again; the job, which does not stay long, opens with the key before.
    with pytest.raises(SealError):
        secret(context, before)
    lease = context.database.write(lambda connection: queue.take(connection, "fit", context.clock()))
    assert lease.opened(KEYS).payload == {"number": 1}
    # Copies of samples are recognised as before.
    assert after.lasting_secret("fingerprints") == before.lasting_secret("fingerprints")


def test_the_old_key_is_gone_after_two_days(context):
    before = found(context)
    tenancy.replace_key(context, Write(before, "operator"))
    tenancy.finish_replacing(context)
    assert found(context).key.previous.key == before.key.key
    context.clock.now += tenancy.OVERLAP + 1
    tenancy.finish_replacing(context)
    after = found(context)
    assert after.key.previous is None
    lease = context.database.write(lambda connection: queue.take(connection, "fit", context.clock()))
    assert lease.opened(KEYS).payload == {"number": 1}
    with pytest.raises(SealError):
        before.key.open(lease.payload, "jobs/fit/payload")
    # Replaced twice in a row, nothing is lost either.
    known = secret(context, after)
    for _ in range(2):
        tenancy.replace_key(context, Write(found(context), "operator"))
    assert secret(context, found(context)) == known
    assert found(context).lasting_secret("fingerprints") == before.lasting_secret("fingerprints")


def test_a_tenant_that_is_deleted_leaves_one_entry(context):
    tenant, database = found(context), context.database
    accounts.new_key(database, KEYS, context.clock, "other")
    database.write(lambda connection: add_user(connection, "ada", tenant.id, KEYS))
    assert tenancy.delete_tenant(context, tenant)
    with database.reading() as connection:
        for table in metadata.sorted_tables:
            if "tenant_id" in table.c:
                number = select(func.count()).select_from(table).where(table.c.tenant_id == tenant.id)
                assert connection.execute(number).scalar_one() == 0, table.name
        assert [one.name for one in accounts.list_tenants(connection)] == ["other"]
        (entry,) = entries(connection, accounts.DEPLOYMENT)
        assert all(not report.problem for report in verify_all(connection))
    assert (entry["action"], entry["details"]["name"], entry["details"]["users"]) == (
        "tenant.deleted",
        "shop",
        1,
    )
    assert check(database).problems == ()
    # The log of what was deleted cannot be chosen by a tenant.
    with pytest.raises(ValueError, match="name must have"):
        accounts.new_key(database, KEYS, context.clock, accounts.DEPLOYMENT_NAME)


def test_the_commands(sqlite_database, monkeypatch):
    monkeypatch.setenv(VARIABLE, text(OLD))
    monkeypatch.setenv("KEYDYN_DATABASE", str(sqlite_database.url))
    keys = open_master_keys(sqlite_database, None, {VARIABLE: text(OLD)})
    accounts.new_key(sqlite_database, keys, lambda: 0, "shop")

    def run(*arguments):
        done = CliRunner().invoke(app, ["service", *arguments])
        return done.exit_code, done.stdout

    assert "shop" in run("tenants", "list")[1]
    assert "a new key" in run("tenants", "rotate-key", "shop")[1]
    assert run("database", "check")[0] == 0
    assert run("tenants", "delete", "shop", "--yes") == (0, "deleted shop\n")
    assert run("tenants", "delete", "shop", "--yes")[0] != 0
    assert "no tenants" in run("tenants", "list")[1]
    assert run("database", "check")[0] == 0


def test_values_of_earlier_versions_still_open():
    """AES-256-GCM with the data key itself and a random nonce, as it was."""
    key, nonce = DataKey.new(), b"n" * 12
    sealed = b"\x01" + nonce + AESGCM(key.key).encrypt(nonce, b"template", b"here")
    assert key.open(sealed, "here") == b"template"
    with pytest.raises(SealError):
        key.open(sealed, "there")
    assert key.seal(b"template", "here")[:1] != sealed[:1]
