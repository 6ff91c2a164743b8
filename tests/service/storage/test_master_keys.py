"""Master keys: their sources, files that are refused, and no change by a wrong key."""

from __future__ import annotations

import base64
import os
import secrets

import pytest
from sqlalchemy import select

from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import VARIABLE, KeyFile, MasterKeyError, open_master_keys
from keydyn.service.storage.sealing import DataKey, MasterKeys, SealError, wrapped_by
from keydyn.service.storage.tables import master_keys
from keydyn.service.storage.upgrading import upgrade

OLD, NEW = b"o" * 32, b"n" * 32


def text(*keys):
    return ",".join(base64.b64encode(key).decode() for key in keys)


def from_environment(database, *keys):
    return open_master_keys(database, None, {VARIABLE: text(*keys)})


def known(database):
    with database.reading() as connection:
        return connection.execute(select(master_keys)).all()


def key_file(path, *keys):
    file = path / "keys"
    KeyFile(file).replace(keys)
    return file


def test_a_key_from_the_environment_is_known_from_then_on(database):
    assert from_environment(database, OLD).ids == MasterKeys([OLD]).ids
    assert from_environment(database, OLD).ids == MasterKeys([OLD]).ids
    (row,) = known(database)
    assert OLD not in row.proof


def test_a_wrong_key_is_refused_before_anything_is_written(database):
    from_environment(database, OLD)
    before = known(database)
    with pytest.raises(MasterKeyError, match="not the master key of the database"):
        from_environment(database, NEW)
    assert known(database) == before
    # With the old one after it, it is a new key.
    assert from_environment(database, NEW, OLD).current == MasterKeys([NEW]).current
    assert len(known(database)) == 2


def test_sqlite_makes_a_key_beside_it_once(sqlite_database, tmp_path):
    found = open_master_keys(sqlite_database, None, {})
    file = tmp_path / "service.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(base64.b64decode(file.read_text())) == 32
    assert open_master_keys(sqlite_database, None, {}).ids == found.ids
    file.unlink()
    with pytest.raises(MasterKeyError, match="is missing"):
        open_master_keys(sqlite_database, None, {})
    assert not file.exists()
    endings = {path.name.removeprefix("service.db") for path in tmp_path.iterdir()}
    assert endings <= {"", "-wal", "-shm", "-turns"}


def test_two_processes_that_make_a_key_have_the_same(tmp_path):
    files = [KeyFile(tmp_path / "service.key") for _ in range(2)]
    for file in files:
        file.make()
    assert files[0].read() == files[1].read()
    assert len(list(tmp_path.iterdir())) == 1


def test_postgresql_needs_a_key(postgres_url):
    database = Database(postgres_url)
    upgrade(database)
    with pytest.raises(MasterKeyError, match=VARIABLE):
        open_master_keys(database, None, {})
    database.close()


def test_a_file_that_is_not_there_is_not_made(sqlite_database, tmp_path):
    with pytest.raises(MasterKeyError, match="no such file"):
        open_master_keys(sqlite_database, tmp_path / "typo", {})
    assert not (tmp_path / "typo").exists()


def test_a_file_that_others_can_read_is_refused(sqlite_database, tmp_path):
    file = key_file(tmp_path, OLD)
    for mode in (0o640, 0o604, 0o660):
        file.chmod(mode)
        with pytest.raises(MasterKeyError, match=f"chmod 600 {file}"):
            open_master_keys(sqlite_database, file, {})
    file.chmod(0o400)
    assert open_master_keys(sqlite_database, file, {}).ids == MasterKeys([OLD]).ids


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(sqlite_database, tmp_path):
    file = key_file(tmp_path, OLD)
    os.chown(file, 65534, -1)
    with pytest.raises(MasterKeyError, match="another user"):
        open_master_keys(sqlite_database, file, {})


def test_what_is_no_file_is_refused(sqlite_database, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("folder", "pipe"):
        with pytest.raises(MasterKeyError, match=name):
            open_master_keys(sqlite_database, tmp_path / name, {})


@pytest.mark.parametrize("bad", ["", ",", "short", base64.b64encode(b"x" * 31).decode(), "é" * 44, "=" * 44])
def test_what_is_no_key_is_refused_and_not_shown(sqlite_database, tmp_path, bad):
    good = base64.b64encode(OLD).decode()
    file = tmp_path / "keys"
    KeyFile(file).replace([OLD])
    file.write_text(f"{good if bad.strip(',') else ''}\n{bad}\n")
    with pytest.raises(MasterKeyError) as refused:
        open_master_keys(sqlite_database, file, {})
    assert good not in str(refused.value)
    if bad.strip(","):
        with pytest.raises(MasterKeyError) as refused:
            open_master_keys(sqlite_database, None, {VARIABLE: f"{good},{bad}"})
        assert good not in str(refused.value)


def test_a_key_and_a_file_are_one_too_many(sqlite_database, tmp_path):
    with pytest.raises(MasterKeyError, match="not both"):
        open_master_keys(sqlite_database, key_file(tmp_path, OLD), {VARIABLE: text(OLD)})


def test_a_running_process_follows_the_file(sqlite_database, tmp_path):
    file = key_file(tmp_path, OLD)
    keys = open_master_keys(sqlite_database, file, {})
    data_key = DataKey(secrets.token_bytes(32))
    wrapped = keys.wrap(data_key, "users/a")
    KeyFile(file).replace([NEW, OLD])
    # What others wrapped with the new key is opened, and what is wrapped from now on has the new key.
    assert keys.unwrap(MasterKeys([NEW]).wrap(data_key, "users/a"), "users/a") == data_key
    assert wrapped_by(keys.wrap(data_key, "users/a")) == MasterKeys([NEW]).current
    assert keys.unwrap(wrapped, "users/a") == data_key
    KeyFile(file).replace([NEW])
    keys.wrap(data_key, "users/a")
    with pytest.raises(SealError):
        keys.unwrap(wrapped, "users/a")
    # A file that is gone for a moment is no reason to stop.
    file.unlink()
    assert wrapped_by(keys.wrap(data_key, "users/a")) == MasterKeys([NEW]).current
