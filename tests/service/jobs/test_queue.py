"""Leases of jobs, on both databases."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Connection, delete, select

from keydyn.service.jobs.queue import (
    FARTHEST,
    LEASE,
    Lease,
    due_kinds,
    enqueue,
    finish,
    postpone,
    prolong,
    take,
)
from keydyn.service.jobs.queue import waiting as waiting_jobs
from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import jobs, users
from tests.service.jobs.conftest import START, Tenant, new_tenant


@pytest.fixture
def tenant(database: Database) -> Tenant:
    return new_tenant(database)


def add(database: Database, tenant: Tenant, number: int = 0, **how: object) -> None:
    how = {"now": START, **how}
    database.write(lambda connection: enqueue(connection, tenant, "fit", {"number": number}, **how))


def taken(database: Database, now: int, kind: str = "fit") -> Lease | None:
    return database.write(lambda connection: take(connection, kind, now))


def due(database: Database, now: int) -> bool:
    with database.reading() as connection:
        return "fit" in due_kinds(connection, now)


def test_a_job_is_taken_once_and_removed_when_it_is_finished(database: Database, tenant: Tenant) -> None:
    assert not due(database, START)
    add(database, tenant, 7, user_id=tenant.user_id)
    assert due(database, START)
    assert taken(database, START, kind="webhook") is None
    lease = taken(database, START)
    assert lease
    job = lease.opened(tenant.keys)
    assert (job.payload, job.tenant_id, job.attempt) == ({"number": 7}, tenant.id, 1)
    assert not due(database, START)
    assert taken(database, START) is None
    assert database.write(lambda connection: finish(connection, lease))
    with database.reading() as connection:
        assert waiting_jobs(connection) == {}


def test_a_job_is_kept_only_if_the_change_that_causes_it_is(database: Database, tenant: Tenant) -> None:
    def change(connection: Connection) -> None:
        enqueue(connection, tenant, "fit", {}, now=START)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        database.write(change)
    assert not due(database, START)


def test_the_job_that_was_due_first_is_taken_first(database: Database, tenant: Tenant) -> None:
    for number, later in enumerate((3, 1, 2)):
        add(database, tenant, number, now=START + later)
    assert taken(database, START) is None
    leases = [taken(database, START + 3) for _ in range(3)]
    assert [lease.opened(tenant.keys).payload["number"] for lease in leases if lease] == [1, 2, 0]


def test_a_lease_that_has_ended_is_lost(database: Database, tenant: Tenant) -> None:
    add(database, tenant)
    dead = taken(database, START)
    assert dead
    assert taken(database, START + LEASE - 1) is None
    heir = taken(database, START + LEASE)
    assert heir
    assert heir.attempt == 2
    # The first worker was only slow: it can neither end the job nor take it back.
    later = START + LEASE
    database.write(lambda connection: prolong(connection, [dead], later + LEASE))
    assert not database.write(lambda connection: finish(connection, dead))
    assert not database.write(lambda connection: postpone(connection, dead, later))
    assert taken(database, later + LEASE - 1) is None
    assert database.write(lambda connection: finish(connection, heir))


def test_a_lease_that_is_prolonged_is_kept(database: Database, tenant: Tenant) -> None:
    add(database, tenant)
    lease = taken(database, START)
    assert lease
    database.write(lambda connection: prolong(connection, [lease], START + LEASE - 1))
    assert taken(database, START + LEASE) is None
    assert taken(database, START + 2 * LEASE) is not None


def test_a_job_that_is_postponed_is_taken_again_then(database: Database, tenant: Tenant) -> None:
    add(database, tenant)
    lease = taken(database, START)
    assert lease
    assert database.write(lambda connection: postpone(connection, lease, START + 5000))
    assert not due(database, START + 4999)
    assert taken(database, START + 5000) is not None


def test_jobs_are_not_lost_when_the_clock_is_moved_back(database: Database, tenant: Tenant) -> None:
    add(database, tenant)
    before = START - FARTHEST - 1
    lease = taken(database, before)
    assert lease, "due farther ahead than a job can be"
    assert taken(database, before) is None, "and taken once"
    # A lease from before the clock was moved does not last longer than any other.
    assert taken(database, before - FARTHEST) is not None


def test_erasing_a_person_takes_their_jobs_away(database: Database, tenant: Tenant) -> None:
    add(database, tenant, user_id=tenant.user_id)
    add(database, tenant)
    database.write(lambda connection: connection.execute(delete(users)))
    with database.reading() as connection:
        assert waiting_jobs(connection) == {"fit": 1}


def test_payloads_are_sealed(database: Database, tenant: Tenant) -> None:
    database.write(lambda connection: enqueue(connection, tenant, "fit", {"user": "yvonne"}, now=START))
    with database.reading() as connection:
        (stored,) = connection.execute(select(jobs.c.payload)).scalars()
    assert b"yvonne" not in stored
    lease = taken(database, START)
    assert "yvonne" not in repr(lease and lease.opened(tenant.keys))


def test_several_processes_never_take_the_same_job(database_url: str, database: Database) -> None:
    tenant = new_tenant(database)
    for number in range(60):
        add(database, tenant, number)
    found: list[int] = []

    def work() -> None:
        # A connection pool and a writer of its own, as in another process.
        own = Database(database_url)
        while lease := taken(own, START):
            found.append(lease.number)
        own.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60
    assert len(set(found)) == 60
