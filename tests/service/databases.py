"""Databases with all tables, made by migrating once: each test gets a copy."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from sqlalchemy import make_url

from keydyn.service.storage.database import Database
from keydyn.service.storage.upgrading import upgrade


def make_tables(url: str) -> str:
    """Give a database all tables if it is empty, and return its address."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        file = Path(address.database or "")
        with suppress(FileExistsError), open(file, "xb", opener=_for_the_owner) as copy:
            copy.write(_migrated())
    else:
        with closing(Database(url)) as database:
            upgrade(database)
    return url


def _for_the_owner(file: str, flags: int) -> int:
    return os.open(file, flags, 0o600)


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="keydyn-tables-") as folder:
        file = Path(folder) / "service.db"
        with closing(Database(f"sqlite:///{file}")) as database:
            upgrade(database)
        # The last connection writes the log of changes into the file, and removes it.
        assert not file.with_name("service.db-wal").exists()
        return file.read_bytes()
