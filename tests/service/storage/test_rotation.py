"""Rotation of the master key: all keys are wrapped again, none stays with the old one, and none is lost."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from keydyn.service.storage.master_keys import VARIABLE, KeyFile, MasterKeyError, open_master_keys, rotate
from keydyn.service.storage.sealing import MasterKeys, wrapped_by
from keydyn.service.storage.tables import users
from tests.service.storage.rows import add_tenant, add_user
from tests.service.storage.test_master_keys import NEW, OLD, key_file, text

PEOPLE = 23


def fill(database, keys):
    def change(connection):
        add_tenant(connection, "t", keys)
        return {f"{n}": add_user(connection, f"{n}", "t", keys) for n in range(PEOPLE)}

    return database.write(change)


def wrapped(database):
    with database.reading() as connection:
        return dict(connection.execute(select(users.c.id, users.c.wrapped_key)).all())


def assert_opens(database, keys, data_keys):
    assert {name: keys.unwrap(key, f"users/{name}") for name, key in wrapped(database).items()} == data_keys


def test_all_keys_are_wrapped_anew(database, tmp_path):
    file = key_file(tmp_path, OLD)
    keys = open_master_keys(database, file, {})
    data_keys = fill(database, keys)
    seen = []
    done = rotate(database, file, {}, progress=lambda n, total: seen.append((n, total)), batch=10)
    (new,) = KeyFile(file).read()
    assert new != OLD
    assert done.retired == MasterKeys([OLD]).ids
    assert done.wrapped == PEOPLE + 1
    assert seen == [(1, 24), (11, 24), (21, 24), (24, 24)]
    assert {wrapped_by(key) for key in wrapped(database).values()} == {MasterKeys([new]).current}
    # In a process that was running all the time too.
    for now in (open_master_keys(database, file, {}), keys):
        assert_opens(database, now, data_keys)
    assert rotate(database, file, {}).wrapped == PEOPLE + 1


def test_nobody_wraps_with_a_retired_key(database, tmp_path):
    file = key_file(tmp_path, OLD)
    open_master_keys(database, file, {})
    rotate(database, file, {})
    stale = MasterKeys([OLD])
    for change in (add_tenant, lambda connection, name, keys: add_user(connection, name, "t", keys)):
        database.write(lambda connection: None)
        with pytest.raises(Exception, match=r"retired master key|too busy"):
            database.write(lambda connection, change=change: change(connection, "new", stale))
    assert wrapped(database) == {}


def test_the_old_key_is_refused_afterwards(database, tmp_path):
    file = key_file(tmp_path, OLD)
    open_master_keys(database, file, {})
    rotate(database, file, {})
    (new,) = KeyFile(file).read()
    for keys in ([OLD], [OLD, new]):
        with pytest.raises(MasterKeyError):
            open_master_keys(database, None, {VARIABLE: text(*keys)})


def test_with_keys_from_the_environment_it_takes_two_steps(database):
    data_keys = fill(database, open_master_keys(database, None, {VARIABLE: text(OLD)}))
    with pytest.raises(MasterKeyError, match="NEW,OLD"):
        rotate(database, None, {VARIABLE: text(OLD)})
    assert rotate(database, None, {VARIABLE: text(NEW, OLD)}).wrapped == PEOPLE + 1
    assert_opens(database, open_master_keys(database, None, {VARIABLE: text(NEW)}), data_keys)


def test_a_wrong_key_is_not_replaced(database, tmp_path):
    file = key_file(tmp_path, OLD)
    data_keys = fill(database, open_master_keys(database, file, {}))
    before = wrapped(database)
    KeyFile(file).replace([NEW])
    with pytest.raises(MasterKeyError, match="not the master key"):
        rotate(database, file, {})
    assert KeyFile(file).read() == [NEW]
    assert wrapped(database) == before
    KeyFile(file).replace([OLD])
    assert_opens(database, open_master_keys(database, file, {}), data_keys)


def test_an_earlier_run_is_finished_rather_than_a_third_key_made(database, tmp_path):
    file = key_file(tmp_path, OLD)
    fill(database, open_master_keys(database, file, {}))
    KeyFile(file).replace([NEW, OLD])
    assert rotate(database, file, {}).key == MasterKeys([NEW]).current
    assert KeyFile(file).read() == [NEW]


def test_one_rotation_at_a_time(sqlite_database, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    file = key_file(tmp_path, OLD)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(MasterKeyError, match="another process"):
        rotate(sqlite_database, file, {})
    assert KeyFile(file).read() == [OLD]
    os.close(folder)
    rotate(sqlite_database, file, {})
    assert KeyFile(file).read() != [OLD]


def test_the_file_stays_private(sqlite_database, tmp_path):
    file = key_file(tmp_path, OLD)
    rotate(sqlite_database, file, {})
    assert file.stat().st_mode & 0o777 == 0o600
