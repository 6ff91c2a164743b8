"""keydyn service database, as an administrator uses it."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from tests.service.storage.rows import add_tenant


@pytest.fixture
def run(database_url, tmp_path, monkeypatch):
    """Run a command on the database; return its output and its exit code."""
    monkeypatch.setenv("KEYDYN_DATABASE", database_url)
    monkeypatch.delenv("KEYDYN_MASTER_KEY", raising=False)
    monkeypatch.setenv("KEYDYN_KEY_FILE", str(tmp_path / "keys"))

    def invoke(*arguments):
        done = CliRunner().invoke(app, ["service", "database", *arguments])
        return done.exit_code, done.stdout, done.stderr

    return invoke


def changed(url, change):
    database = Database(url)
    database.write(change)
    database.close()


def test_from_upgrade_to_check(run, database_url):
    assert run("upgrade")[0] == 0
    code, printed, _ = run("check", "--json")
    assert code == 0
    assert json.loads(printed)["problems"] == []

    def fill(connection):
        add_tenant(connection, "t")
        for _ in range(3):
            audit.append(connection, "t", audit.Entry(0, "operator", "x"))

    changed(database_url, fill)
    code, printed, _ = run("check", "--json")
    assert code == 0
    assert json.loads(printed)["audit"][0]["entries"] == 3
    changed(database_url, lambda connection: connection.execute(text("UPDATE tenants SET audit_number = 4")))
    code, _, complaint = run("check")
    assert code == 1
    assert "audit log of t: the log ends after entry 3; entry 4 should be the last" in complaint


def test_a_database_that_is_not_up_to_date_is_reported(run, database_url):
    Database(database_url).close()
    code, _, complaint = run("check")
    assert code == 1
    assert "keydyn service database upgrade" in complaint


def test_a_newer_database_is_refused(run, database_url):
    run("upgrade")
    changed(
        database_url,
        lambda connection: connection.execute(text("UPDATE alembic_version SET version_num='z'")),
    )
    for command in ("upgrade", "check"):
        code, _, complaint = run(command)
        assert code == 4
        assert "newer version" in complaint


def test_another_key(run, tmp_path):
    run("upgrade")
    code, _, complaint = run("rotate-key")
    assert code == 4
    assert "no such file" in complaint
    (tmp_path / "keys").write_text("bm90IGEga2V5\n")
    (tmp_path / "keys").chmod(0o600)
    assert run("rotate-key")[0] == 4
    (tmp_path / "keys").write_text("b29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb28=\n")
    code, printed, _ = run("rotate-key")
    assert code == 0
    assert "master key is now" in printed
    assert len((tmp_path / "keys").read_text()) == 45


def test_backup(run, tmp_path):
    run("upgrade")
    code, printed, _ = run("backup", str(tmp_path / "backup"))
    assert code == 0
    assert "master key" in printed
    assert (tmp_path / "backup").stat().st_size > 1000
    code, _, complaint = run("restore", str(tmp_path / "backup"))
    assert code == 4
    assert "already" in complaint


def test_a_database_is_not_made_by_looking_at_it(sqlite_url, tmp_path):
    for command in (["check"], ["rotate-key"], ["backup", str(tmp_path / "backup")]):
        done = CliRunner().invoke(app, ["service", "database", *command, "--database", sqlite_url])
        assert done.exit_code == 4
        assert "no database yet" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there(tmp_path):
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    done = CliRunner().invoke(app, ["service", "database", "check", "--database", url])
    assert done.exit_code == 4
    assert len(done.stderr.splitlines()) < 4
