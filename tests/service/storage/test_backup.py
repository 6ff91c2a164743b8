"""Backups: complete while others write, private, without the master key, and restorable."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from keydyn.service.storage import audit, backup
from keydyn.service.storage.backup import back_up, restore
from keydyn.service.storage.database import Database
from keydyn.service.storage.errors import DatabaseUnavailableError
from keydyn.service.storage.master_keys import open_master_keys
from keydyn.service.storage.tables import users
from keydyn.service.storage.upgrading import check
from tests.service.storage.rows import add_tenant, add_user
from tests.service.storage.test_master_keys import OLD, key_file


@pytest.fixture
def other_url(database, tmp_path, request):
    """The address to which a backup of the database can be restored."""
    if database.is_sqlite:
        yield f"sqlite:///{tmp_path / 'other' / 'service.db'}"
    else:
        with request.getfixturevalue("postgres").new_database() as url:
            yield url


def test_a_backup_made_while_others_write_is_whole(database, other_url, tmp_path):
    keys = open_master_keys(database, key_file(tmp_path, OLD), {})
    database.write(lambda connection: add_tenant(connection, "t", keys))
    stop = threading.Event()
    added = {}

    def change(connection, user):
        audit.append(connection, "t", audit.Entry(0, "service", "added", user))
        return add_user(connection, user, "t", keys)

    def work():
        while not stop.is_set():
            added[str(len(added))] = database.write(partial(change, user=str(len(added))))

    writer = threading.Thread(target=work)
    writer.start()
    try:
        while len(added) < 20:
            stop.wait(0.01)
        before = len(added)
        back_up(database, tmp_path / "backup")
    finally:
        stop.set()
        writer.join()
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert OLD not in (tmp_path / "backup").read_bytes()
    restore(other_url, tmp_path / "backup")
    other = Database(other_url)
    assert check(other).problems == ()
    with other.reading() as connection:
        rows = connection.execute(select(users.c.id, users.c.wrapped_key)).all()
        report = audit.verify(connection, "t")
    assert before <= len(rows) <= len(added)
    assert (report.entries, report.problem) == (len(rows), "")
    again = open_master_keys(other, tmp_path / "keys", {})
    assert all(again.unwrap(row.wrapped_key, f"users/{row.id}") == added[row.id] for row in rows)
    # The triggers came with it.
    with pytest.raises(Exception, match="append-only"):
        other.write(lambda connection: connection.exec_driver_sql("DELETE FROM audit"))
    other.close()


def test_a_backup_is_not_put_over_a_database(database, tmp_path):
    database.write(lambda connection: add_tenant(connection, "t"))
    back_up(database, tmp_path / "backup")
    url = database.url.render_as_string(hide_password=False)
    with pytest.raises((ValueError, DatabaseUnavailableError), match="already"):
        restore(url, tmp_path / "backup")
    assert check(database).problems == ()


def test_what_is_no_backup_is_refused(database_url, tmp_path):
    (tmp_path / "backup").write_text("something else")
    with pytest.raises(ValueError, match="not a backup"):
        restore(database_url, tmp_path / "backup")


def test_a_failed_backup_leaves_the_earlier_one(sqlite_database, tmp_path):
    file = tmp_path / "backup"
    back_up(sqlite_database, file)
    whole = file.read_bytes()
    damaged = Path(sqlite_database.url.database)
    sqlite_database.close()
    with open(damaged, "r+b") as contents:
        contents.seek(4096)
        contents.write(os.urandom(3 * 4096))
    reopened = Database(f"sqlite:///{damaged}")
    with pytest.raises((ValueError, OSError), match=r"damaged|malformed"):
        back_up(reopened, file)
    reopened.close()
    assert file.read_bytes() == whole
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_pg_dump_the_message_says_so(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    database = Database(postgres_url)
    with pytest.raises(ValueError, match="pg_dump is not installed"):
        back_up(database, tmp_path / "backup")
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_the_password_is_in_no_list_of_processes(postgres, postgres_url, tmp_path, monkeypatch):
    calls = []
    run = backup.subprocess.run
    monkeypatch.setattr(
        backup.subprocess, "run", lambda command, **more: calls.append(command) or run(command, **more)
    )
    database = Database(postgres_url)
    back_up(database, tmp_path / "backup")
    database.close()
    assert calls
    assert not any(postgres.password in word for command in calls for word in command)
