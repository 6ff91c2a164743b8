"""Migrations: they make the tables that the code expects, only once, and refuse newer databases."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import audit, metadata
from keydyn.service.storage.upgrading import NewerDatabaseError, check, differences, upgrade
from tests.service.storage.rows import add_tenant


def test_an_empty_database_becomes_the_one_that_the_code_expects(database_url):
    database = Database(database_url)
    before = check(database)
    assert before.revision is None
    assert before.upgrade_needed
    assert upgrade(database) == before.newest
    after = check(database)
    assert not after.upgrade_needed
    assert after.problems == ()
    with database.reading() as connection:
        assert {*inspect(connection).get_table_names()} == {*metadata.tables, "alembic_version"}
    database.close()


def test_a_table_that_is_not_as_expected_is_reported(database):
    with database.reading() as connection:
        assert differences(connection) == []
    database.write(
        lambda connection: connection.execute(text("ALTER TABLE webhooks ADD COLUMN more INTEGER"))
    )
    (problem,) = check(database).problems
    assert "webhooks" in problem


def test_upgrading_again_changes_nothing(database):
    assert upgrade(database) == upgrade(database)


def test_a_database_of_a_newer_version_is_refused(database):
    database.write(
        lambda connection: connection.execute(text("UPDATE alembic_version SET version_num='9999'"))
    )
    for refused in (upgrade, check):
        with pytest.raises(NewerDatabaseError, match=r"9999.*newer version"):
            refused(database)


def test_several_processes_upgrade_at_once(database_url):
    code = (
        "import sys; from keydyn.service.storage.database import Database;"
        "from keydyn.service.storage.upgrading import upgrade;"
        "print('ready', flush=True); sys.stdin.readline();"
        "print(upgrade(Database(sys.argv[1])))"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, database_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 3
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    ended = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], ended
    assert len({printed for printed, _ in ended}) == 1
    database = Database(database_url)
    assert check(database).problems == ()
    database.close()


@pytest.mark.parametrize("statement", ["UPDATE audit SET actor='x'", "DELETE FROM audit"])
def test_the_audit_log_is_append_only(database, statement):
    row = {
        "tenant_id": "a", "number": 1, "at": 0, "actor": "operator", "action": "test", "subject": "",
        "details": "{}", "hash": b"",
    }  # fmt: skip
    database.write(lambda connection: add_tenant(connection, "a"))
    database.write(lambda connection: connection.execute(audit.insert(), row))
    with pytest.raises(DBAPIError, match="append-only"):
        database.write(lambda connection: connection.execute(text(statement)))
    with database.reading() as connection:
        assert connection.execute(audit.select()).one().actor == "operator"


def test_a_row_without_its_owner_is_reported(sqlite_database):
    with sqlite_database.engine.connect() as connection:
        connection.connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(
            text(
                "INSERT INTO api_keys (id, tenant_id, name, scopes, hash, created_at) "
                "VALUES ('a', 'nobody', '', '', x'00', 0)"
            )
        )
        connection.commit()
        connection.invalidate()
    (problem,) = check(sqlite_database).problems
    assert "api_keys" in problem
    assert "tenants" in problem
