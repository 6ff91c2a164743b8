"""Backing up the database of a running service, and restoring it. Backups do not contain the master key."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL

from keydyn.atomic import replacing
from keydyn.service.storage.database import Database, checked_url
from keydyn.service.storage.errors import PATIENCE, DatabaseUnavailableError

# The number of pages that SQLite copies at a time; others may write in between.
PAGES = 1000
SQLITE_MAGIC, POSTGRESQL_MAGIC = b"SQLite format 3\0", b"PGDMP"


def back_up(database: Database, file: Path) -> None:
    """Write the state of the database at one moment to a file that only its owner can read."""
    with replacing(file) as temporary:
        if not temporary.exists():
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if database.is_sqlite:
            _copy(Path(database.url.database or ""), temporary)
        else:
            _run("pg_dump", database.url, "--format=custom", "--file", str(temporary))


def restore(url: str, file: Path, secure: Callable[[Database], None] = lambda database: None) -> None:
    """Restore a backup into a database that does not exist yet (SQLite) or is empty (PostgreSQL).

    `secure` is called to change the database before it is used. On SQLite, the database file appears only
    after that.
    """
    target = checked_url(url)
    with open(file, "rb") as backup:
        magic = backup.read(16)
    if target.get_backend_name() == "sqlite":
        path = Path(target.database or "")
        if not magic.startswith(SQLITE_MAGIC):
            raise ValueError(f"{file}: not a backup of an SQLite database")
        if path.exists():
            raise ValueError(f"{path}: a database already exists; stop the service and move the file away")
        with replacing(path) as temporary:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            _copy(file, temporary)
            _secure(target.set(database=str(temporary)), secure)
        return
    if not magic.startswith(POSTGRESQL_MAGIC):
        raise ValueError(f"{file}: not a backup of a PostgreSQL database")
    _run("pg_restore", target, "--single-transaction", "--no-owner", "--exit-on-error", str(file))
    _secure(target, secure)


def _secure(url: URL, secure: Callable[[Database], None]) -> None:
    try:
        with closing(Database(url.render_as_string(hide_password=False))) as database:
            secure(database)
            if not database.truncate_log():
                raise DatabaseUnavailableError("another program reads from the database being restored")
    finally:
        if url.get_backend_name() == "sqlite":
            # The queue of writers belongs to the temporary file name.
            Path(f"{url.database}-turns").unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy an SQLite database, which others may use meanwhile, and check the copy."""
    try:
        # Opened only for reading, so that it is not created if it does not exist.
        reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)
        writing = sqlite3.connect(target)
        try:
            reading.backup(writing, pages=PAGES)
            # The copy must be a single file, without a log next to it.
            writing.execute("PRAGMA journal_mode=DELETE")
            found = writing.execute("PRAGMA integrity_check").fetchone()[0]
        finally:
            writing.close()
            reading.close()
    except sqlite3.Error as error:
        raise DatabaseUnavailableError(f"{source}: {error}") from error
    if found != "ok":
        raise ValueError(f"{source}: damaged, and a copy would be damaged too: {found}")


def _run(program: str, url: URL, *arguments: str) -> None:
    """Run a PostgreSQL program; the password is passed in the environment, which other users cannot see."""
    found = shutil.which(program)
    if found is None:
        raise ValueError(f"{program} is not installed: it is part of PostgreSQL's client programs")
    query = {name: value for name, value in url.query.items() if name != "password"}
    address = URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    password = url.password or url.query.get("password")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    done = subprocess.run(
        [found, "--dbname", address.render_as_string(), "--no-password", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DatabaseUnavailableError(f"{program} failed: {done.stderr.strip()}")
