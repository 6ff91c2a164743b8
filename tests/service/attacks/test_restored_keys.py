"""Restoring a backup brings back neither keys that were revoked since then nor attempts without delay."""

from __future__ import annotations

import json
from functools import partial

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.service import accounts
from keydyn.service.people.recognition.attempts import FREE_FAILURES
from keydyn.service.storage.backup import back_up
from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import VARIABLE, open_master_keys
from keydyn.service.storage.tables import users
from keydyn.service.storage.upgrading import check
from tests.service.storage.rows import add_user
from tests.service.storage.test_backup import other_url
from tests.service.storage.test_master_keys import OLD, text

__all__ = ["other_url"]
NOW = 1_700_000_000_000


@pytest.fixture
def backup(database, tmp_path):
    """A backup with a key, a session that it opened, and a person; the key was revoked later."""
    keys = open_master_keys(database, None, {VARIABLE: text(OLD)})
    key_id, key = accounts.new_key(database, keys, lambda: NOW, "shop", scopes=accounts.SCOPES)
    session = accounts.open_page(database, keys, lambda: NOW + 60_000, key=key).token
    with database.reading() as connection:
        tenant = accounts.key_holder(connection, keys, key, NOW).tenant_id
    database.write(lambda connection: add_user(connection, "ada", tenant, keys))
    back_up(database, tmp_path / "backup")
    database.write(lambda connection: accounts.revoke_key(connection, key_id, NOW))
    return tmp_path / "backup", keys, (key, session)


def restored(file, url, *options):
    arguments = ["service", "database", "restore", str(file), "--database", url, "--json", *options]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_keys_and_sessions_are_revoked(backup, other_url):
    file, keys, presented = backup
    assert restored(file, other_url) == {"file": str(file), "last_entry": "2023-11-14 22:14", "revoked": 2}
    other = Database(other_url)
    with other.reading() as connection:
        valid = partial(accounts.key_holder, connection, keys, now=NOW)
        assert [valid(presented=one) for one in presented] == [None, None]
        person = connection.execute(select(users)).one()
    assert person.failures == FREE_FAILURES
    assert person.failed_at > NOW
    assert check(other).problems == ()
    other.close()


def test_a_restored_file_leaves_no_other_beside_it(sqlite_database, tmp_path):
    back_up(sqlite_database, tmp_path / "backup")
    restored(tmp_path / "backup", f"sqlite:///{tmp_path / 'other' / 'service.db'}")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["service.db"]


def test_keys_are_kept_if_the_operator_says_so(backup, other_url):
    file, keys, presented = backup
    assert restored(file, other_url, "--keep-keys")["revoked"] == 0
    other = Database(other_url)
    with other.reading() as connection:
        assert all(accounts.key_holder(connection, keys, one, NOW) for one in presented)
    other.close()


def test_the_command_says_what_is_lost(backup, other_url):
    arguments = ["service", "database", "restore", str(backup[0]), "--database", other_url]
    done = CliRunner().invoke(app, arguments)
    printed = " ".join(done.stdout.split())
    for said in (
        "2 API keys, links and sessions were revoked",
        "failed since then are forgotten",
        "users erase",
    ):
        assert said in printed
