"""Upgrading a database to the tables of this version of keydyn, and checking the state of a database.

All migrations run in one transaction: if the process is killed meanwhile, the database stays as it was. The
transaction holds a lock, so that if several processes start at once, one upgrades and the others wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from keydyn.service.storage import sqlite
from keydyn.service.storage.database import Database
from keydyn.service.storage.errors import translated
from keydyn.service.storage.tables import metadata

# An arbitrary number that no other program uses.
ADVISORY_LOCK = 0x6B65_7964_796E
# How many seconds a process waits for another that upgrades.
PATIENCE = 3600
# Alembic keeps the current migration in module variables.
_ONE_AT_A_TIME = threading.Lock()


class NewerDatabaseError(ValueError):
    """Raised if a newer version of keydyn has upgraded the database."""


@dataclass(frozen=True)
class DatabaseReport:
    """The state of a database: its revision, the newest one, and the problems found."""

    revision: str | None
    newest: str
    problems: tuple[str, ...]

    @property
    def upgrade_needed(self) -> bool:
        """Whether `upgrade` would change something."""
        return self.revision != self.newest


def upgrade(database: Database) -> str:
    """Apply the migrations that a database does not have yet; return its revision after that.

    Raises a `NewerDatabaseError` if the database has a migration that this version does not know.
    """
    config = _config()
    newest = _newest(config)
    with database.reading() as connection:
        if _revision(connection, config) == newest:
            return newest
    with _ONE_AT_A_TIME, _upgrading(database) as connection:
        _revision(connection, config)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return newest


def check(database: Database) -> DatabaseReport:
    """Report the revision of a database, and any damage or unexpected tables."""
    config = _config()
    newest = _newest(config)
    with database.reading() as connection:
        revision = _revision(connection, config)
        problems = _damage(connection) if database.is_sqlite else []
        if revision == newest:
            problems += [f"not the expected tables: {one}" for one in differences(connection)]
    return DatabaseReport(revision, newest, tuple(problems))


def differences(connection: Connection) -> list[str]:
    """Descriptions of all differences between the tables and those that this version expects."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return [str(difference) for difference in compare_metadata(context, metadata)]


def _config() -> Config:
    config = Config()
    # Alembic reads this as a template in which % is special.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _newest(config: Config) -> str:
    (newest,) = ScriptDirectory.from_config(config).get_heads()
    return newest


def _revision(connection: Connection, config: Config) -> str | None:
    """The revision of a database, None if it is empty; raises a `NewerDatabaseError` if it is unknown."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = MigrationContext.configure(connection).get_current_revision()
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if revision is not None and revision not in known:
        raise NewerDatabaseError(
            f"the database has revision {revision}, which this version of keydyn does not know (it knows "
            f"revisions up to {known[0]}): it was upgraded by a newer version; install that version or "
            "restore a backup"
        )
    return revision


@contextmanager
def _upgrading(database: Database) -> Iterator[Connection]:
    """A transaction in which only one process at a time can upgrade the database."""
    try:
        with database.engine.connect() as connection, connection.begin():
            if database.is_sqlite:
                driver = sqlite.driver(connection)
                # SQLite changes a table by making a new one; rows that refer to the old one must stay.
                driver.execute("PRAGMA foreign_keys=OFF")
                driver.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")
                driver.execute("BEGIN IMMEDIATE")
            else:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout='{PATIENCE}s'")
                connection.exec_driver_sql("SET LOCAL statement_timeout=0")
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
            yield connection
            if database.is_sqlite:
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                if broken:
                    first = broken[0][0]
                    raise ValueError(
                        f"{len(broken)} rows refer to rows that do not exist, the first in {first}"
                    )
    except database.errors as error:
        raise translated(error) from error


def _damage(connection: Connection) -> list[str]:
    found = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
    damage = [] if found == ["ok"] else [f"damaged: {one}" for one in found]
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    return damage + [
        f"{row[0]}, row {row[1]}: refers to a row of {row[2]} that does not exist" for row in broken
    ]
