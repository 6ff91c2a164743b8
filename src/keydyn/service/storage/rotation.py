"""Rotation of the master key: all data keys are wrapped again, and the old master key is no longer needed.

Every step can be repeated: a run that was killed is finished by the next one. First nothing can be wrapped
with the old key any more, because triggers refuse it; then what it wrapped is wrapped again, in batches; when
nothing is left does the old key go. The service may run meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, Table, bindparam, func, select, update

from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import VARIABLE, MasterKeyError, given, open_master_keys, register
from keydyn.service.storage.sealing import ID_BYTES, KEY_BYTES, MasterKeys
from keydyn.service.storage.tables import master_keys, tenants, users

# Data keys that are wrapped again in one transaction.
BATCH = 200
TWO_STEPS = (
    f"the master key comes from {VARIABLE}, which only you can change. First put a new key before the old "
    "one, as NEW,OLD, restart the service with both and run this command with both; then remove the old key "
    "and restart the service"
)


@dataclass(frozen=True)
class Rotation:
    """What was done: the name of the key in use, those that were retired, and how many were wrapped again."""

    key: str
    retired: tuple[str, ...]
    wrapped: int


def rotate(
    database: Database,
    key_file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Rotation:
    """Replace the master key; with keys from the environment, finish with what is given."""
    keys, file = given(database, key_file, environment)
    if keys is not None:
        if len(keys) == 1:
            raise MasterKeyError(TWO_STEPS)
        return _wrap_all(database, open_master_keys(database, None, environment), progress)
    assert file is not None
    # Proves the old key before a new one is made.
    open_master_keys(database, key_file, environment)
    with _alone(file.path.parent):
        known = file.read()
        # With several keys an earlier run was killed: it is finished, with the key that it made.
        if len(known) == 1:
            known = [secrets.token_bytes(KEY_BYTES), *known]
            file.replace(known)
        done = _wrap_all(database, MasterKeys(known), progress)
        file.replace(known[:1])
    return done


def _wrap_all(database: Database, keys: MasterKeys, progress: Callable[[int, int], object]) -> Rotation:
    retired = database.write(lambda connection: _retire_others(connection, keys))
    with database.reading() as connection:
        total = sum(_count(connection, table, keys) for table in (tenants, users))
    wrapped = 0
    for table in (tenants, users):
        after = ""
        while batch := database.write(partial(_wrap_batch, table=table, after=after, keys=keys)):
            wrapped += len(batch)
            after = batch[-1]
            progress(wrapped, total)
    return Rotation(keys.current, retired, wrapped)


def _retire_others(connection: Connection, keys: MasterKeys) -> tuple[str, ...]:
    """Retire all other keys: nothing can be wrapped with them from now on."""
    register(connection, keys)
    others = master_keys.c.id != keys.current
    names = connection.execute(select(master_keys.c.id).where(others)).scalars().all()
    connection.execute(update(master_keys).where(others).values(retired=True))
    return tuple(name for name in names if name in keys.ids)


def _wrap_batch(connection: Connection, table: Table, after: str, keys: MasterKeys) -> list[str]:
    """Wrap the next keys again; the ids of their rows."""
    columns = select(table.c.id, table.c.wrapped_key).where(_is_old(table, keys), table.c.id > after)
    rows = connection.execute(columns.order_by(table.c.id).limit(BATCH).with_for_update()).all()
    if rows:
        places = [f"{table.name}/{row.id}" for row in rows]
        connection.execute(
            update(table).where(table.c.id == bindparam("row")).values(wrapped_key=bindparam("wrapped")),
            [
                {"row": row.id, "wrapped": keys.wrap(keys.unwrap(row.wrapped_key, place), place)}
                for row, place in zip(rows, places, strict=True)
            ],
        )
    return [row.id for row in rows]


def _count(connection: Connection, table: Table, keys: MasterKeys) -> int:
    count = select(func.count()).select_from(table).where(_is_old(table, keys))
    return int(connection.execute(count).scalar_one())


def _is_old(table: Table, keys: MasterKeys) -> ColumnElement[bool]:
    return func.substr(table.c.wrapped_key, 1, ID_BYTES) != bytes.fromhex(keys.current)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock: one process at a time exchanges the keys of a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MasterKeyError("another process is replacing the master key") from None
        yield
    finally:
        os.close(handle)
