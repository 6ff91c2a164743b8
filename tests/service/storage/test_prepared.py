"""Prepared statements return the rows and errors that SQLAlchemy does, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import jobs, tenants, users
from tests.service.storage.rows import add_tenant, add_user

ONE = select(users).where(users.c.tenant_id == bindparam("tenant")).order_by(users.c.id)
RAISED = (
    update(users).where(users.c.tenant_id == bindparam("tenant")).values(remembered=users.c.remembered + 2)
)


@pytest.fixture
def people(database):
    """Two people of one tenant, and one of another."""

    def change(connection):
        for tenant, user in (("t", "a"), ("t", "b"), ("other", "c")):
            if user != "b":
                add_tenant(connection, tenant)
            add_user(connection, user, tenant)

    database.write(change)
    return database


def test_rows_are_those_of_sqlalchemy(people):
    with people.reading() as connection:
        for tenant in ("t", "nobody"):
            expected = connection.execute(ONE, {"tenant": tenant}).all()
            found = Prepared(ONE).all(connection, tenant=tenant)
            assert [one._asdict() for one in found] == [dict(row._mapping) for row in expected]
            first = Prepared(ONE).first(connection, tenant=tenant)
            assert (first and first.wrapped_key) == (expected[0].wrapped_key if expected else None)
            assert Prepared(ONE).value(connection, tenant=tenant) == (expected[0][0] if expected else None)


def test_changes_are_counted_and_bytes_come_back(people):
    sealed = bytes(range(256))
    count = Prepared(update(users).where(users.c.id == bindparam("user")), "failures", "wrapped_key")
    added = Prepared(
        insert(jobs).returning(jobs.c.number),
        *("tenant_id", "kind", "payload", "attempts", "due_at", "leased_until"),
    )
    job = {"kind": "k", "payload": b"", "attempts": 0, "due_at": 1, "leased_until": 0}

    def change(connection):
        assert Prepared(RAISED).run(connection, tenant="t") == 2
        assert Prepared(RAISED).run(connection, tenant="nobody") == 0
        assert count.run(connection, user="a", failures=3, wrapped_key=sealed) == 1
        numbers = [added.value(connection, tenant_id="t", **job) for _ in range(2)]
        assert numbers[1] > numbers[0]

    people.write(change)
    with people.reading() as connection:
        rows = connection.execute(ONE, {"tenant": "t"}).all()
        assert [row.remembered for row in rows] == [2, 2]
        assert (rows[0].failures, rows[0].wrapped_key) == (3, sealed)


def test_errors_are_those_of_sqlalchemy_and_name_no_values(people):
    again = Prepared(update(users).where(users.c.id == bindparam("user")), "tenant_id")
    missing = Prepared(select(tenants.c.id).where(tenants.c.id == bindparam("tenant")))

    def change(connection):
        again.run(connection, user="a", tenant_id="a-secret")

    with pytest.raises(IntegrityError) as caught:
        people.write(change)
    assert "a-secret" not in str(caught.value).partition("DETAIL")[0]
    with people.reading() as connection:
        with pytest.raises(TypeError, match="takes"):
            missing.first(connection, user="t")
        assert missing.value(connection, tenant="t") == "t"


def test_a_lost_connection_is_noticed(postgres_url):
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.upgrading import upgrade

    database = Database(postgres_url)
    upgrade(database)
    one = Prepared(select(tenants.c.id).where(tenants.c.id == bindparam("tenant")))
    with database.engine.connect() as connection:
        one.value(connection, tenant="t")
        connection.connection.dbapi_connection.close()
        with pytest.raises(DBAPIError) as caught:
            one.value(connection, tenant="t")
    assert caught.value.connection_invalidated
    database.close()
