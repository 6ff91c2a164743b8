"""The audit log: all later changes to it are noticed."""

from __future__ import annotations

import hashlib
import json
from functools import partial

import pytest
from sqlalchemy import text

from keydyn.service.storage import audit
from keydyn.service.storage.sealing import DataKey
from tests.service.storage.rows import add_tenant

ENTRIES = 7


@pytest.fixture
def log(database):
    """A database with two tenants' logs."""

    def fill(connection):
        for tenant in ("a", "b"):
            add_tenant(connection, tenant)
        for number in range(ENTRIES):
            audit.append(
                connection, "a", audit.Entry(number, "operator", "test", "somebody", {"é": [number, "x"]})
            )
        audit.append(connection, "b", audit.Entry(0, "service", "test"))

    database.write(fill)
    return database


def verified(database, tenant="a", **how):
    with database.reading() as connection:
        return audit.verify(connection, tenant, **how)


def tamper(database, *statements):
    """Change the log as a person who can write to the database and remove the triggers."""
    off = (
        ["DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete"]
        if database.is_sqlite
        else ["DROP TRIGGER audit_append_only ON audit", "DROP TRIGGER audit_no_delete ON audit"]
    )
    for statement in (*off, *statements):
        database.write(lambda connection, statement=statement: connection.execute(text(statement)))


def test_a_log_that_nobody_touched_is_whole(log):
    report = verified(log)
    assert (report.entries, report.problem) == (ENTRIES, "")
    assert verified(log, "b").entries == 1


def test_the_hashes_are_sha256_over_the_entry_and_the_hash_before(log):
    with log.reading() as connection:
        entries = audit.entries(connection, "a")
    before = b""
    for number, entry in enumerate(entries):
        details = json.dumps({"é": [number, "x"]}, separators=(",", ":"))
        row = ["a", number + 1, number, "operator", "test", "somebody", details]
        before = hashlib.sha256(before + json.dumps(row, separators=(",", ":")).encode()).digest()
        assert entry["hash"] == before.hex()


@pytest.mark.parametrize("number", [1, 4, ENTRIES])
@pytest.mark.parametrize(
    "change",
    [
        "at = at + 1",
        "actor = 'x'",
        "action = 'x'",
        "subject = ''",
        "details = '{}'",
        "hash = (SELECT hash FROM audit WHERE tenant_id = 'b')",
    ],
)
def test_a_changed_entry_is_named(log, number, change):
    tamper(log, f"UPDATE audit SET {change} WHERE tenant_id = 'a' AND number = {number}")
    report = verified(log)
    assert f"entry {number} was changed" in report.problem
    assert report.entries == number - 1
    assert verified(log, "b").problem == ""


@pytest.mark.parametrize("number", [1, 4])
def test_a_removed_entry_is_named(log, number):
    tamper(log, f"DELETE FROM audit WHERE tenant_id = 'a' AND number = {number}")
    assert verified(log).problem == f"entry {number} is missing"


def test_a_removed_end_is_noticed(log):
    tamper(log, "DELETE FROM audit WHERE tenant_id = 'a' AND number > 5")
    assert verified(log).problem == "the log ends after entry 5; entry 7 should be the last"
    tamper_all = "UPDATE tenants SET audit_number = 5 WHERE id = 'a'"
    log.write(lambda connection: connection.execute(text(tamper_all)))
    assert "entry 5 is not the one" in verified(log).problem


def test_exchanged_entries_are_noticed(log):
    moves = [(3, 100), (4, 3), (100, 4)]
    tamper(
        log, *(f"UPDATE audit SET number = {to} WHERE tenant_id = 'a' AND number = {of}" for of, to in moves)
    )
    assert "entry 3 was changed" in verified(log).problem


def test_a_log_without_its_tenant_is_noticed(log):
    log.write(lambda connection: connection.execute(text("DELETE FROM tenants WHERE id = 'b'")))
    with log.reading() as connection:
        reports = {report.tenant_id: report.problem for report in audit.verify_all(connection)}
    assert reports == {"a": "", "b": "there is a log, but no such tenant"}


def test_long_logs_are_read_in_parts(log):
    found = verified(log, chunk=2)
    assert (found.entries, found.problem) == (ENTRIES, "")


def test_entries_about_one_person(log):
    name = audit.pseudonym(DataKey(b"k" * 32))
    log.write(lambda connection: audit.append(connection, "a", audit.Entry(9, "service", "more", name)))
    with log.reading() as connection:
        assert [entry["action"] for entry in audit.entries(connection, "a", name)] == ["more"]
        assert [entry["number"] for entry in audit.entries(connection, "a", after=6)] == [7, 8]
    assert len(name) == 32
    assert name != audit.pseudonym(DataKey(b"l" * 32))


def test_entries_of_many_threads_make_one_chain(log):
    waiting = [
        log.submit(partial(audit.append, tenant_id="a", entry=audit.Entry(at, "service", "x")))
        for at in range(300)
    ]
    for one in waiting:
        one.result()
    assert (verified(log).entries, verified(log).problem) == (ENTRIES + 300, "")
