"""Processes killed at random moments: nothing acknowledged is lost, nothing half-written is seen."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager

import pytest
from sqlalchemy import inspect, select

from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import KeyFile, open_master_keys
from keydyn.service.storage.sealing import MasterKeys, wrapped_by
from keydyn.service.storage.tables import tenants, users
from keydyn.service.storage.upgrading import check, upgrade
from tests.service.storage.rows import add_tenant, add_user
from tests.service.storage.victims import Victims, kill, wait_for
from tests.waiting import wait_until

EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
TIMES = [3, pytest.param(100, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def victims():
    with Victims() as started:
        yield started


@contextmanager
def reopened(url):
    """Open the database as a process that is started afterwards."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


def assert_whole(url, acknowledged):
    """Check that everything acknowledged is there, all rows are complete, and the audit log fits."""
    with reopened(url) as database:
        with database.reading() as connection:
            there = set(connection.execute(select(users.c.id)).scalars())
            logged = [entry["subject"] for entry in audit.entries(connection, "t")]
            report = audit.verify(connection, "t")
        assert check(database).problems == ()
    assert acknowledged <= there
    assert there == set(logged)
    assert len(logged) == len(there)
    assert report.problem == ""


def noted(file):
    return set(file.read_text().split()) if file.exists() else set()


@pytest.mark.parametrize("times", TIMES)
def test_writers_are_killed(database_url, victims, tmp_path, times):
    chance = random.Random(times)
    notes = tmp_path / "acknowledged"
    with reopened(database_url) as database:
        upgrade(database)
        database.write(lambda connection: add_tenant(connection, "t"))
    # One writes on while the other is killed.
    running = [victims.start("write", database_url, f"first-{n}", str(notes)) for n in range(2)]
    for n in range(times):
        before = len(noted(notes))
        wait_until(lambda before=before: len(noted(notes)) > before)
        time.sleep(chance.uniform(0, 0.1))
        kill(running.pop(0))
        assert_whole(database_url, noted(notes))
        running.append(victims.start("write", database_url, f"later-{n}", str(notes)))
    for process in running:
        kill(process)
    assert_whole(database_url, noted(notes))


@pytest.mark.parametrize("times", TIMES)
def test_postgresql_is_killed(postgres, postgres_url, victims, tmp_path, times):
    chance = random.Random(times)
    notes = tmp_path / "acknowledged"
    with reopened(postgres_url) as database:
        upgrade(database)
        database.write(lambda connection: add_tenant(connection, "t"))
    for n in range(times):
        process = victims.start("write", postgres_url, str(n), str(notes))
        before = len(noted(notes))
        wait_until(lambda before=before: len(noted(notes)) > before)
        time.sleep(chance.uniform(0, 0.1))
        postgres.kill()
        kill(process)
        postgres.start()
        assert_whole(postgres_url, noted(notes))


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrations_are_killed(kind, request, victims, tmp_path, times):
    chance = random.Random(times)

    def empty(name):
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / name}.db"
        url = request.getfixturevalue("postgres_url")
        with reopened(url) as database:
            # Quicker than another database.
            database.write(lambda connection: connection.exec_driver_sql(EMPTY))
        return url

    whole = steps_of(victims, tmp_path, "upgrade", empty("whole"))
    interrupted = 0
    for n in range(times):
        url = empty(str(n))
        wait_for(victims.start("upgrade", url, str(chance.randint(1, whole)), str(tmp_path / "steps")))
        with reopened(url) as database:
            with database.reading() as connection:
                tables = inspect(connection).get_table_names()
            report = check(database)
            assert bool(tables) == (report.revision is not None)
            interrupted += not tables
            assert upgrade(database) == report.newest
            assert check(database).problems == ()
    assert interrupted


@pytest.mark.parametrize("times", TIMES)
def test_rotations_are_killed(database_url, victims, tmp_path, times):
    chance = random.Random(times)
    key_file = tmp_path / "keys"
    KeyFile(key_file).make()
    with reopened(database_url) as database:
        upgrade(database)
        keys = open_master_keys(database, key_file, {})
        data_keys = {"users": {}, "tenants": {}}

        def fill(connection):
            data_keys["tenants"]["t"] = add_tenant(connection, "t", keys)
            for n in range(150):
                data_keys["users"][f"{n}"] = add_user(connection, f"{n}", "t", keys)

        database.write(fill)
    whole = steps_of(victims, tmp_path, "rotate", database_url, str(key_file))
    interrupted = 0
    for _ in range(times):
        last = chance.randint(1, whole)
        wait_for(victims.start("rotate", database_url, str(key_file), str(last), str(tmp_path / "steps")))
        interrupted += len(KeyFile(key_file).read()) > 1
        assert_all_open(database_url, key_file, data_keys)
    assert interrupted
    steps_of(victims, tmp_path, "rotate", database_url, str(key_file))
    assert len(KeyFile(key_file).read()) == 1
    assert assert_all_open(database_url, key_file, data_keys) == set(MasterKeys(KeyFile(key_file).read()).ids)


def steps_of(victims, folder, task, *arguments):
    """Let a process run to its end, and count its steps."""
    steps = folder / "steps"
    steps.unlink(missing_ok=True)
    wait_for(victims.start(task, *arguments, "0", str(steps)))
    return int(steps.read_text())


def assert_all_open(url, key_file, data_keys):
    """Check that every data key can be unwrapped and is unchanged; return the names of master keys."""
    used = set()
    with reopened(url) as database:
        keys = open_master_keys(database, key_file, {})
        with database.reading() as connection:
            for table in (tenants, users):
                rows = connection.execute(select(table.c.id, table.c.wrapped_key)).all()
                found = {row.id: keys.unwrap(row.wrapped_key, f"{table.name}/{row.id}") for row in rows}
                assert found == data_keys[table.name]
                used |= {wrapped_by(row.wrapped_key) for row in rows}
    return used
