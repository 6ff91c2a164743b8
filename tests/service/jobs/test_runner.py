"""The runner of jobs: they are run, retried and given up, despite faults of workers, database and clock."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, select, update

from keydyn.service.jobs.queue import FARTHEST, LEASE, Job, enqueue, take
from keydyn.service.jobs.runner import ATTEMPTS, JobRunner, delay
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import jobs
from keydyn.service.wall_clock import DAY, SECOND
from tests.service.conftest import opened
from tests.service.jobs.conftest import MovableClock, Tenant, new_tenant
from tests.service.postgres import PostgresServer
from tests.waiting import PATIENCE

# Longer than anything here takes; only a test that fails waits for so long.


@pytest.fixture
def tenant(sqlite_database: Database) -> Tenant:
    return new_tenant(sqlite_database)


class Outcomes:
    """The outcomes of jobs, one after the other."""

    def __init__(self) -> None:
        self._seen: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def __call__(self, kind: str, outcome: str) -> None:
        self._seen.put((kind, outcome))

    def next(self) -> tuple[str, str]:
        return self._seen.get(timeout=PATIENCE)


@contextmanager
def running(
    database: Database,
    tenant: Tenant,
    clock: MovableClock,
    handlers: dict[str, Callable[[Job], None]],
    *,
    poll_s: float = 0.01,
    keys: MasterKeys | None = None,
) -> Iterator[Outcomes]:
    outcomes = Outcomes()
    runner = JobRunner(database, handlers, keys or tenant.keys, clock, observe=outcomes)
    runner.start(poll_s)
    try:
        yield outcomes
    finally:
        runner.stop(PATIENCE)


def add(database: Database, tenant: Tenant, clock: MovableClock, kind: str = "fit", number: int = 0) -> None:
    database.write(lambda connection: enqueue(connection, tenant, kind, {"number": number}, now=clock()))


def stored(database: Database) -> list[tuple[int, int]]:
    """The attempts and due times of all jobs."""
    with database.reading() as connection:
        return [
            (row.attempts, row.due_at) for row in connection.execute(select(jobs).order_by(jobs.c.number))
        ]


class Slow:
    """A handler that waits until it may go on."""

    def __init__(self) -> None:
        self.taken, self.go_on, self.done = threading.Event(), threading.Event(), []

    def __call__(self, job: Job) -> None:
        self.taken.set()
        assert self.go_on.wait(PATIENCE)
        self.done.append(job.payload["number"])


def fail(job: Job) -> None:
    raise RuntimeError("yvonne's job")


def test_tenants_take_turns(sqlite_database: Database, tenant: Tenant, clock: MovableClock) -> None:
    """However many jobs of one tenant wait, another's comes next."""
    other, seen = new_tenant(sqlite_database, "b"), []
    for number in range(6):
        add(sqlite_database, tenant, clock, number=number)
    for number in range(2):
        add(sqlite_database, other, clock, number=number)
    handlers = {"fit": lambda job: seen.append(job.tenant_id[0])}
    with running(sqlite_database, tenant, clock, handlers) as outcomes:
        assert [outcomes.next() for _ in range(8)] == [("fit", "done")] * 8
    assert "".join(seen) == "ababaaaa"


def test_jobs_are_run_as_soon_as_they_are_committed(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    seen: list[int] = []
    handlers = {"fit": lambda job: seen.append(job.payload["number"])}
    # Without being woken up, the runner would look once an hour.
    with running(sqlite_database, tenant, clock, handlers, poll_s=3600) as outcomes:
        for number in range(20):
            add(sqlite_database, tenant, clock, number=number)
            assert outcomes.next() == ("fit", "done")
    assert seen == list(range(20))
    assert stored(sqlite_database) == []


def test_what_another_process_enqueues_is_found(
    sqlite_url: str, sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    other = Database(sqlite_url)
    with running(sqlite_database, tenant, clock, {"fit": lambda job: None}) as outcomes:
        add(other, tenant, clock)
        assert outcomes.next() == ("fit", "done")
    other.close()


def test_kinds_do_not_wait_for_each_other(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    fitted = threading.Event()

    def hang(job: Job) -> None:
        assert fitted.wait(PATIENCE)

    with running(
        sqlite_database, tenant, clock, {"webhook": hang, "fit": lambda job: fitted.set()}
    ) as outcomes:
        add(sqlite_database, tenant, clock, "webhook")
        add(sqlite_database, tenant, clock, "fit")
        assert {outcomes.next(), outcomes.next()} == {("webhook", "done"), ("fit", "done")}


def test_a_job_that_fails_is_tried_again_ever_later_and_then_dropped(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    began = clock.now
    add(sqlite_database, tenant, clock)
    with running(sqlite_database, tenant, clock, {"fit": fail}) as outcomes, caplog.at_level(logging.WARNING):
        for attempt in range(1, ATTEMPTS):
            assert outcomes.next() == ("fit", "failed")
            ((attempts, due_at),) = stored(sqlite_database)
            assert attempts == attempt
            longest = min(5 * 2 ** (attempt - 1), 3600) * SECOND
            assert longest / 2 <= due_at - clock.now <= longest
            clock.now = due_at
        assert outcomes.next() == ("fit", "dropped")
    assert stored(sqlite_database) == []
    assert 0.8 * DAY < clock.now - began < 1.2 * DAY
    assert "RuntimeError" in caplog.text
    assert "yvonne" not in caplog.text


def test_delays_never_pass_the_farthest_that_a_job_can_be_due() -> None:
    assert all(delay(attempt) <= FARTHEST for attempt in (1, 10, 42, 10_000) for _ in range(100))


def test_a_job_that_kills_every_worker_is_dropped_in_the_end(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    add(sqlite_database, tenant, clock)
    for _ in range(ATTEMPTS):
        # A worker that takes the job and is never heard of again.
        assert sqlite_database.write(lambda connection: take(connection, "fit", clock()))
        clock.now += LEASE
    ran: list[Job] = []
    with running(sqlite_database, tenant, clock, {"fit": ran.append}) as outcomes:
        assert outcomes.next() == ("fit", "dropped")
    assert not ran
    assert stored(sqlite_database) == []


def test_a_job_of_a_worker_that_died_is_taken_over(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    add(sqlite_database, tenant, clock)
    assert sqlite_database.write(lambda connection: take(connection, "fit", clock()))
    attempts: list[int] = []
    with running(
        sqlite_database, tenant, clock, {"fit": lambda job: attempts.append(job.attempt)}
    ) as outcomes:
        clock.now += LEASE
        assert outcomes.next() == ("fit", "done")
    assert attempts == [2]


def test_a_worker_that_lost_its_lease_does_not_end_the_job(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    slow = Slow()
    add(sqlite_database, tenant, clock)
    with running(sqlite_database, tenant, clock, {"fit": slow}, poll_s=3600):
        assert slow.taken.wait(PATIENCE)
        clock.now += LEASE
        assert sqlite_database.write(lambda connection: take(connection, "fit", clock()))
        slow.go_on.set()
    ((attempts, _),) = stored(sqlite_database)
    assert attempts == 2


def test_the_lease_of_a_job_that_takes_long_is_kept(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    slow = Slow()
    add(sqlite_database, tenant, clock)
    runner = JobRunner(sqlite_database, {"fit": slow}, tenant.keys, clock)
    runner.start()
    assert slow.taken.wait(PATIENCE)
    for _ in range(5):
        clock.now += LEASE - 1
        assert not sqlite_database.write(lambda connection: take(connection, "fit", clock()))
        # What its thread does three times during a lease.
        runner._prolong()
    slow.go_on.set()
    runner.stop()
    assert stored(sqlite_database) == []


def test_a_job_that_cannot_be_opened_waits_for_a_worker_that_has_the_key(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    add(sqlite_database, tenant, clock)
    wrong = MasterKeys([b"x" * 32])
    with running(sqlite_database, tenant, clock, {"fit": lambda job: None}, keys=wrong) as outcomes:
        assert outcomes.next() == ("fit", "failed")
    clock.now += FARTHEST
    with running(sqlite_database, tenant, clock, {"fit": lambda job: None}) as outcomes:
        assert outcomes.next() == ("fit", "done")


def test_kinds_without_a_handler_are_left_alone(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    add(sqlite_database, tenant, clock, "learn-population")
    add(sqlite_database, tenant, clock, "fit")
    with running(sqlite_database, tenant, clock, {"fit": lambda job: None}) as outcomes:
        assert outcomes.next() == ("fit", "done")
    assert stored(sqlite_database) == [(0, clock.now)]


def test_stopping_waits_for_the_job_that_runs_and_takes_no_other(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    slow = Slow()
    add(sqlite_database, tenant, clock, number=1)
    add(sqlite_database, tenant, clock, number=2)
    runner = JobRunner(sqlite_database, {"fit": slow}, tenant.keys, clock)
    runner.start()
    assert slow.taken.wait(PATIENCE)
    stopper = threading.Thread(target=runner.stop)
    stopper.start()
    while not runner._stopping:
        threading.Event().wait(0.001)
    slow.go_on.set()
    stopper.join()
    assert slow.done == [1]
    assert [attempts for attempts, _ in stored(sqlite_database)] == [0]


def test_a_thread_that_was_busy_when_the_others_stopped_hears_of_it_at_once(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = JobRunner(sqlite_database, {"fit": fail}, tenant.keys, clock, threads={"fit": 2})
    one, other = runner._threads
    looked, go_on = threading.Event(), threading.Event()

    def is_due(kind: str) -> bool:
        if threading.current_thread() is one:
            return not go_on.wait(PATIENCE)
        looked.set()
        return False

    monkeypatch.setattr(runner, "_is_due", is_due)
    runner.start(poll_s=1e6)
    assert looked.wait(PATIENCE)
    stopper = threading.Thread(target=runner.stop, args=[PATIENCE])
    stopper.start()
    other.join(PATIENCE)
    go_on.set()
    stopper.join()
    assert not one.is_alive()


def test_a_database_that_is_gone_for_a_while_is_waited_for(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, noticed = threading.Event(), threading.Semaphore(0)
    reading = sqlite_database.reading

    @contextmanager
    def unreliable() -> Iterator[Connection]:
        if gone.is_set():
            noticed.release()
            raise DatabaseUnavailableError("gone")
        with reading() as connection:
            yield connection

    monkeypatch.setattr(sqlite_database, "reading", unreliable)
    gone.set()
    with running(sqlite_database, tenant, clock, {"fit": lambda job: None}) as outcomes:
        assert all(noticed.acquire(timeout=PATIENCE) for _ in range(3))
        with monkeypatch.context() as other:
            # Another process enqueues: this one is not woken up.
            other.setattr("keydyn.service.jobs.queue.ENQUEUED", "not noticed")
            add(sqlite_database, tenant, clock)
        gone.clear()
        assert outcomes.next() == ("fit", "done")


def test_a_server_that_is_stopped_while_a_job_runs_and_started_again(
    postgres: PostgresServer, postgres_url: str, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[int] = []

    def stop_the_server_once(job: Job) -> None:
        attempts.append(job.attempt)
        if job.attempt == 1:
            postgres.stop()

    for database in opened(postgres_url):
        tenant = new_tenant(database)
        with running(database, tenant, clock, {"fit": stop_the_server_once}) as outcomes:
            add(database, tenant, clock)
            # Logged when the next job is asked for: by then the end of this one could not be stored.
            while "the database is unavailable" not in caplog.text:
                threading.Event().wait(0.01)
            # It is done again when its lease has ended.
            clock.now += LEASE
            postgres.start()
            assert outcomes.next() == ("fit", "done")
            assert stored(database) == []
    assert attempts == [1, 2]


@pytest.mark.parametrize("back", [SECOND, 30 * SECOND, DAY, 365 * DAY])
def test_new_jobs_are_run_at_once_after_the_clock_was_moved_back(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, back: int
) -> None:
    numbers: list[int] = []
    handlers = {"fit": lambda job: numbers.append(job.payload["number"])}
    with running(sqlite_database, tenant, clock, handlers) as outcomes:
        add(sqlite_database, tenant, clock, number=1)
        assert outcomes.next() == ("fit", "done")
        clock.now -= back
        add(sqlite_database, tenant, clock, number=2)
        assert outcomes.next() == ("fit", "done")
    assert numbers == [1, 2]


def test_jobs_that_failed_are_tried_once_when_the_clock_is_moved_back_not_again_and_again(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    for _ in range(5):
        add(sqlite_database, tenant, clock)
    with running(sqlite_database, tenant, clock, {"fit": fail}) as outcomes:
        assert [outcomes.next()[1] for _ in range(5)] == ["failed"] * 5
        clock.now -= DAY
        assert [outcomes.next()[1] for _ in range(5)] == ["failed"] * 5
        # All jobs wait again, by the clock as it is now; a sixth attempt would have come before this job.
        add(sqlite_database, tenant, clock)
        assert outcomes.next() == ("fit", "failed")
    found = stored(sqlite_database)
    assert [attempts for attempts, _ in found] == [2] * 5 + [1]
    assert all(clock.now < due_at <= clock.now + FARTHEST for _, due_at in found)


def test_a_job_whose_end_could_not_be_stored_is_done_again(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    attempts: list[int] = []

    def lose_the_lease_once(job: Job) -> None:
        if job.attempt == 1:
            # As if the lease had ended, and another worker had crashed with the job.
            values = {"attempts": 2, "leased_until": clock() + LEASE}
            sqlite_database.write(lambda connection: connection.execute(update(jobs).values(values)))
        # Only now may the clock be moved.
        attempts.append(job.attempt)

    add(sqlite_database, tenant, clock)
    with running(sqlite_database, tenant, clock, {"fit": lose_the_lease_once}) as outcomes:
        while not attempts:
            threading.Event().wait(0.001)
        clock.now += LEASE + 1
        assert outcomes.next() == ("fit", "done")
    assert attempts == [1, 3]
