"""The database: changes are durable, complete and independent of each other, despite faults meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from keydyn.service.storage import database as database_module
from keydyn.service.storage.database import Database, DatabaseUnavailableError, checked_url
from keydyn.service.storage.tables import tenants
from keydyn.service.storage.upgrading import check, upgrade
from tests.service.storage.rows import add_tenant
from tests.waiting import PATIENCE


def names(database):
    with database.reading() as connection:
        return sorted(connection.execute(select(tenants.c.id)).scalars())


@contextmanager
def holding(database):
    """Keep the writer busy until the event is set, so that changes submitted meanwhile form one group."""
    go, started = threading.Event(), threading.Event()

    def wait(_):
        started.set()
        go.wait(PATIENCE)

    busy = database.submit(wait)
    started.wait(PATIENCE)
    yield go
    go.set()
    busy.result()


@pytest.fixture
def held(database):
    """Keep the writer busy as in `holding`, for one test."""
    with holding(database) as go:
        yield go


def test_a_failing_change_does_not_disturb_the_others(database, held):
    def fail(connection):
        add_tenant(connection, "never")
        raise LookupError("no such thing")

    def break_a_rule(connection):
        add_tenant(connection, "neither")
        add_tenant(connection, "a")

    runs = []

    def counted(connection):
        runs.append(1)
        return add_tenant(connection, "b")

    changes = [
        partial(add_tenant, tenant_id="a"),
        counted,
        fail,
        break_a_rule,
        partial(add_tenant, tenant_id="c"),
    ]
    waiting = [database.submit(change) for change in changes]
    held.set()
    assert [type(one.exception()) for one in waiting] == [
        type(None), type(None), LookupError, IntegrityError, type(None)
    ]  # fmt: skip
    assert names(database) == ["a", "b", "c"]
    assert len(runs) == 1
    # What was to be stored is told by the database alone, in a message that is not logged.
    assert "neither" not in str(waiting[3].exception())
    assert "parameters hidden" in str(waiting[3].exception())


def test_changes_see_those_before_them(database, held):
    def count(connection):
        return connection.execute(select(func.count()).select_from(tenants)).scalar()

    waiting = [database.submit(one) for one in (count, partial(add_tenant, tenant_id="a"), count)]
    held.set()
    assert [waiting[0].result(), waiting[2].result()] == [0, 1]


def test_64_threads(database):
    def work(thread):
        for n in range(5):
            database.write(partial(add_tenant, tenant_id=f"{thread:02}-{n}"))
            with database.reading() as connection:
                found = connection.execute(select(tenants.c.id).where(tenants.c.id == f"{thread:02}-{n}"))
                assert found.scalar() == f"{thread:02}-{n}"

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(work, range(64)))
    assert len(names(database)) == 320


def test_a_caller_who_gives_up_waiting_stops_no_other(database, held):
    given_up = database.submit(partial(add_tenant, tenant_id="a"))
    other = database.submit(partial(add_tenant, tenant_id="b"))
    assert given_up.cancel()
    held.set()
    other.result()
    assert names(database) == ["b"]


def test_too_many_changes_are_refused(database):
    with (
        closing(Database(database.url.render_as_string(False), most_waiting=3)) as small,
        holding(small) as go,
    ):
        waiting = [small.submit(partial(add_tenant, tenant_id=str(n))) for n in range(5)]
        go.set()
        assert [type(one.exception()) for one in waiting] == [type(None)] * 3 + [DatabaseUnavailableError] * 2
        assert names(small) == ["0", "1", "2"]


def test_what_waits_is_finished_when_the_database_is_closed(database_url):
    database = Database(database_url)
    upgrade(database)
    waiting = [database.submit(partial(add_tenant, tenant_id=str(n))) for n in range(20)]
    database.close()
    assert all(one.done() and one.exception() is None for one in waiting)
    with pytest.raises(DatabaseUnavailableError, match="closed"):
        database.submit(partial(add_tenant, tenant_id="late"))
    again = Database(database_url)
    assert len(names(again)) == 20
    again.close()


def test_readers_see_one_state_and_cannot_change_it(database):
    with database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(tenants)).scalar() == 0
        database.write(partial(add_tenant, tenant_id="a"))
        assert connection.execute(select(func.count()).select_from(tenants)).scalar() == 0
    assert names(database) == ["a"]

    def delete():
        with database.reading() as connection:
            connection.execute(text("DELETE FROM tenants"))

    with pytest.raises((DBAPIError, DatabaseUnavailableError), match=r"readonly|read-only"):
        delete()
    assert names(database) == ["a"]


def test_an_error_of_a_reader_is_its_own(database):
    def read():
        with database.reading():
            raise LookupError("mine")

    for _ in range(database_module.READERS + 1):
        with pytest.raises(LookupError, match="mine"):
            read()


def test_a_mistake_in_a_statement_is_not_called_unavailability(database):
    with pytest.raises(DBAPIError):
        database.write(lambda connection: connection.execute(text("SELECT * FROM nothing")))


def test_changes_that_wait_for_each_other_are_run_again(postgres_url):
    """Two processes, here two objects, lock the same rows in different orders."""
    first, second = Database(postgres_url), Database(postgres_url)
    upgrade(first)
    for name in "ab":
        first.write(partial(add_tenant, tenant_id=name))
    both = threading.Barrier(2)
    runs = []

    def lock(connection, order):
        runs.append(order)
        for name in order:
            locked = connection.execute(
                update(tenants).where(tenants.c.id == name).values(audit_number=tenants.c.audit_number + 1)
            )
            assert locked.rowcount == 1
            if len(runs) <= 2 and name == order[0]:
                both.wait(PATIENCE)

    waiting = [first.submit(partial(lock, order="ab")), second.submit(partial(lock, order="ba"))]
    for one in waiting:
        one.result(PATIENCE)
    assert len(runs) >= 3
    with first.reading() as connection:
        assert connection.execute(select(tenants.c.audit_number)).scalars().all() == [2, 2]
    first.close()
    second.close()


def test_two_processes_write_to_one_database(database_url):
    first, second = Database(database_url), Database(database_url)
    upgrade(first)
    waiting = [
        one.submit(partial(add_tenant, tenant_id=f"{name}{n}"))
        for n in range(100)
        for name, one in (("a", first), ("b", second))
    ]
    for one in waiting:
        one.result(PATIENCE)
    assert len(names(first)) == 200
    first.close()
    second.close()


def test_sqlite_is_full_and_then_has_room(sqlite_database):
    database = sqlite_database
    database.write(partial(add_tenant, tenant_id="before"))

    def limit(connection):
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 3}")

    def large(connection, tenant_id):
        add_tenant(connection, tenant_id)
        connection.execute(update(tenants).where(tenants.c.id == tenant_id).values(settings="x" * 100_000))

    database.write(limit)
    waiting = [database.submit(partial(large, tenant_id=str(n))) for n in range(5)]
    for one in waiting:
        assert isinstance(one.exception(120), DatabaseUnavailableError)
        assert "full" in str(one.exception())
    assert names(database) == ["before"]
    if database._writing is not None:
        database._writing.exec_driver_sql("PRAGMA max_page_count=1000000")
        database._writing.rollback()
    database.write(partial(large, tenant_id="after"))
    assert names(database) == ["after", "before"]


FULL_DISK = """
import resource, sys
from functools import partial
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from tests.service.storage.rows import add_tenant

database = Database(sys.argv[1])
database.write(partial(add_tenant, tenant_id="before"))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
kept = []
for n in range(1000):
    try:
        database.write(partial(add_tenant, tenant_id=str(n)))
        kept.append(str(n))
    except DatabaseUnavailableError:
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
database.write(partial(add_tenant, tenant_id="after"))
print(*kept, "after", "before")
"""


def test_the_operating_system_refuses_to_write_and_then_does_not(sqlite_database):
    """As on a full disk: the log of changes cannot grow."""
    url = sqlite_database.url.render_as_string()
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, url], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    kept = done.stdout.split()
    assert 2 < len(kept) < 1000
    assert names(sqlite_database) == sorted(kept)
    assert check(sqlite_database).problems == ()


def test_threads_that_cut_off_the_log_wait_for_each_other(sqlite_database):
    sqlite_database.truncating_ms = 120_000
    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            sqlite_database.write(partial(add_tenant, tenant_id=f"tenant {number}"))
            assert all(threads.map(lambda _: sqlite_database.truncate_log(), range(8)))


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_a_change_that_ends_the_transaction_is_an_error_and_stops_nobody(database, end):
    with pytest.raises(Exception, match=r".+"):
        database.write(lambda connection: getattr(connection, end)())
    database.write(partial(add_tenant, tenant_id="a"))
    assert names(database) == ["a"]


def test_sqlite_held_by_another_process_is_waited_for(sqlite_database):
    with sqlite_database.engine.connect() as other:
        driver = other.connection.dbapi_connection
        driver.execute("BEGIN IMMEDIATE")
        waiting = sqlite_database.submit(partial(add_tenant, tenant_id="a"))
        time.sleep(0.1)
        assert not waiting.done()
        driver.execute("COMMIT")
        waiting.result(PATIENCE)
    assert names(sqlite_database) == ["a"]


def test_postgresql_goes_and_comes_back(postgres, postgres_url):
    database = Database(postgres_url)
    upgrade(database)
    try:
        for end in (postgres.stop, postgres.kill):
            database.write(partial(add_tenant, tenant_id=end.__name__))
            end()
            with pytest.raises(DatabaseUnavailableError):
                database.write(partial(add_tenant, tenant_id="lost"))
            with pytest.raises(DatabaseUnavailableError):
                names(database)
            postgres.start()
            assert end.__name__ in names(database)
            # A connection that died unnoticed between two changes.
            postgres.stop()
            postgres.start()
            database.write(partial(add_tenant, tenant_id=f"{end.__name__} again"))
        assert names(database) == ["kill", "kill again", "stop", "stop again"]
    finally:
        database.close()


def test_a_connection_that_the_server_ends_in_a_change_is_replaced(postgres, postgres_url):
    database = Database(postgres_url)
    upgrade(database)
    runs = []

    def change(connection):
        process = connection.execute(text("SELECT pg_backend_pid()")).scalar()
        runs.append(process)
        if len(runs) == 1:
            postgres.execute(f"SELECT pg_terminate_backend({process})")
        add_tenant(connection, "a")

    database.write(change)
    assert len(set(runs)) == 2
    assert names(database) == ["a"]
    database.close()


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("service.db", "must be an address"),
        ("mysql://x/y", "SQLite or PostgreSQL, not mysql"),
        ("sqlite://", "SQLite needs a file"),
        ("sqlite:///:memory:", "SQLite needs a file"),
    ],
)
def test_addresses_that_cannot_be_used(address, problem):
    with pytest.raises(ValueError, match=problem):
        checked_url(address)


@pytest.mark.parametrize("address", ["postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"])
def test_postgresql_is_reached_by_psycopg(address):
    assert checked_url(address).drivername == "postgresql+psycopg"


def test_nobody_else_can_read_the_file(sqlite_database, tmp_path):
    sqlite_database.write(partial(add_tenant, tenant_id="a"))
    files = list(tmp_path.iterdir())
    # The database, its log of changes, what its readers share, and the turns of its writers.
    assert {file.name.removeprefix("service.db") for file in files} == {"", "-wal", "-shm", "-turns"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
