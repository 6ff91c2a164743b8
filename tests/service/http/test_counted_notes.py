"""Frequent events are in the audit log with their number, not one by one."""

from __future__ import annotations

import random
from functools import partial

import pytest

from keydyn.service.http.counted_notes import MINUTE, CountedNotes
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.database import DatabaseUnavailableError
from tests.service.jobs.conftest import MovableClock
from tests.service.storage.rows import add_tenant


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def notes(sqlite_database, clock):
    for tenant in ("a", "b"):
        sqlite_database.write(partial(add_tenant, tenant_id=tenant))
    return CountedNotes(sqlite_database, clock)


def logged(database, tenant="a"):
    """A tenant's log."""
    database.write(lambda connection: None)  # What was submitted before is written now.
    with database.reading() as connection:
        return audit.entries(connection, tenant)


def counts(database, tenant="a"):
    """The numbers in a tenant's log, in its order."""
    return [entry["details"]["count"] for entry in logged(database, tenant)]


def test_the_first_is_written_at_once_and_others_a_minute_later(notes, sqlite_database, clock):
    for _ in range(3):
        notes.note("a", "key", "request.refused", "forbidden")
    assert counts(sqlite_database) == [1]
    clock.now += MINUTE - 1
    notes.note("a", "key", "request.refused", "forbidden")
    notes.flush()
    assert counts(sqlite_database) == [1]
    clock.now += 1
    notes.note("a", "key", "request.refused", "forbidden")
    assert counts(sqlite_database) == [1, 4]
    clock.now += MINUTE
    notes.flush()
    # Nothing has happened since.
    assert counts(sqlite_database) == [1, 4]


def test_nothing_is_lost_or_counted_twice(notes, sqlite_database, clock):
    chance = random.Random(5)
    happened = {"a": 0, "b": 0}
    for _ in range(200):
        clock.now += chance.choice([0, 1, MINUTE // 3, MINUTE, 2 * MINUTE])
        tenant = chance.choice("ab")
        notes.note(tenant, chance.choice(["one key", "another"]), chance.choice(["x", "y"]))
        happened[tenant] += 1
        if chance.random() < 0.1:
            notes.flush()
    notes.flush(everything=True)
    for tenant, number in happened.items():
        found = counts(sqlite_database, tenant)
        assert sum(found) == number
        assert len(found) < number


def test_a_clock_that_is_set_back_counts_on(notes, sqlite_database, clock):
    notes.note("a", "key", "x")
    clock.now -= 10
    notes.note("a", "key", "x")
    assert counts(sqlite_database) == [1, 1]


def test_there_is_a_limit_to_what_is_counted(sqlite_database, clock):
    sqlite_database.write(partial(add_tenant, tenant_id="a"))
    notes = CountedNotes(sqlite_database, clock, most=3)
    for n in range(5):
        notes.note("a", f"key {n}", "x")
    assert counts(sqlite_database) == [1, 1, 1]
    # Those that are counted already go on.
    notes.note("a", "key 0", "x")
    notes.flush(everything=True)
    assert counts(sqlite_database) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("status", "kind", "is_noted"),
    [
        (401, "not-authenticated", True),
        (403, "forbidden", True),
        (413, "too-large", True),
        (429, "too-many-requests", True),
        (422, "not-typing", True),
        (422, "invalid-request", False),
        (404, "no-such-user", False),
    ],
)
def test_refusals_are_noted_and_other_problems_are_not(notes, sqlite_database, status, kind, is_noted):
    notes.refused("a", "key:k", Problem(status, kind, "Refused"))
    entries = [(one["actor"], one["action"], one["details"]) for one in logged(sqlite_database)]
    expected = ("key:k", "request.refused", {"count": 1, "kind": kind})
    assert entries == ([expected] if is_noted else [])


def test_an_event_without_a_kind_is_noted_with_its_time(notes, sqlite_database, clock):
    notes.note("a", "session:s", "people.listed")
    (entry,) = logged(sqlite_database)
    assert (entry["at"], entry["actor"], entry["action"]) == (clock(), "session:s", "people.listed")
    assert (entry["subject"], entry["details"]) == ("", {"count": 1})


def test_counts_are_written_when_their_minute_is_over_and_not_before(notes, sqlite_database, clock):
    for _ in range(3):
        notes.note("a", "key", "x")
    clock.now += MINUTE - 1
    notes.flush()
    assert counts(sqlite_database) == [1]
    clock.now += 1
    notes.flush()
    assert [(one["at"], one["details"]["count"]) for one in logged(sqlite_database)][1:] == [(clock(), 2)]
    # The next one is the first of another minute.
    notes.note("a", "key", "x")
    assert counts(sqlite_database) == [1, 2, 1]


def test_a_refusal_is_answered_without_a_database_too(clock):
    class Gone:
        def submit(self, change):
            raise DatabaseUnavailableError("gone")

    CountedNotes(Gone(), clock).note("a", "key", "x")
