"""Master keys: reading them from the environment or a file, proving that they are right, and rotating them.

A key is 32 random bytes in base64. If there are several, the newest comes first.
"""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, bindparam, func, select, update

from keydyn.atomic import replacing, sync_folder
from keydyn.regular_files import UnusableFileError, opened
from keydyn.service.storage.authentic import authenticate_all
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import ID_BYTES, KEY_BYTES, MasterKeys, SealError
from keydyn.service.storage.tables import master_keys, tenants, users

VARIABLE = "KEYDYN_MASTER_KEY"
# The texts by which a key is proved. With the earlier one, rows that grant access may lack their codes. They
# get codes once, together with the new proof, which cannot be undone without the key.
PROOF, EARLIER_PROOF = b"keydyn master key; rows are authentic", b"keydyn master key"
LARGEST_FILE = 1 << 16
HOW_TO_MAKE_ONE = "(umask 077 && openssl rand -base64 32 > {file})"
# The number of data keys that are wrapped again in one transaction.
BATCH = 200
TWO_STEPS = (
    f"the master key comes from {VARIABLE}, which only you can change. First put a new key before the old "
    "one, as NEW,OLD, restart the service with both and run this command with both; then remove the old key "
    "and restart the service"
)


class MasterKeyError(ValueError):
    """Raised if there is no master key, if it is not the right one, or if its file is not safe."""


class KeyFile:
    """A file of master keys, one per line, the newest first; only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] | None = None

    def read(self) -> list[bytes]:
        """Read the keys; raise a `MasterKeyError` if the file cannot be used or is not safe."""
        try:
            with opened(self.path, LARGEST_FILE) as file:
                status = os.fstat(file.fileno())
                text = file.read()
        except UnusableFileError as error:
            raise MasterKeyError(f"{self.path}: {error}") from None
        if status.st_uid != os.geteuid():
            raise MasterKeyError(f"{self.path}: belongs to another user; run: chown $(id -un) {self.path}")
        if status.st_mode & 0o077:
            raise MasterKeyError(f"{self.path}: other users can read it; run: chmod 600 {self.path}")
        self._seen = _identity(status)
        return decoded(text.decode("ascii", "replace").split(), str(self.path))

    def changed(self) -> list[bytes] | None:
        """The keys, if the file has changed since it was read and can be read; otherwise None."""
        with suppress(OSError, MasterKeyError):
            if _identity(os.stat(self.path)) != self._seen:
                return self.read()
        return None

    def make(self) -> None:
        """Create the file with one new key, unless it exists already."""
        temporary = self.path.with_name(f".{secrets.token_hex(8)}.key")
        try:
            _write_private(temporary, [secrets.token_bytes(KEY_BYTES)])
            with suppress(FileExistsError):
                os.link(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def replace(self, keys: Sequence[bytes]) -> None:
        """Replace the keys in the file."""
        with replacing(self.path) as temporary:
            _write_private(temporary, keys)


def open_master_keys(
    database: Database, key_file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> MasterKeys:
    """The master keys of a database, proved to be its own before anything is written.

    They come from the environment, or from a file that is read again when it changes. If neither is given, an
    SQLite database has a key file next to it, which is created if the database is new.
    """
    keys, file = given(database, key_file, environment)
    if keys is not None:
        found = MasterKeys(keys)
    else:
        assert file is not None
        if not file.path.exists():
            _may_make(database, file.path, key_file)
            file.make()
        found = MasterKeys(file.read(), file.changed)
    with database.reading() as connection:
        known = _prove(connection, found)
    if not known:
        database.write(lambda connection: register(connection, found))
    return found


def known_master_keys(
    database: Database, key_file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> MasterKeys:
    """The master keys of a database that already has some, proved to be its own; nothing is written."""
    keys, file = given(database, key_file, environment)
    if keys is None:
        assert file is not None
        if not file.path.exists():
            raise MasterKeyError(f"{file.path}: no such file")
        keys = file.read()
    found = MasterKeys(keys)
    with database.reading() as connection:
        _prove(connection, found)
    return found


def given(
    database: Database, key_file: Path | None, environment: Mapping[str, str] = os.environ
) -> tuple[list[bytes] | None, KeyFile | None]:
    """The keys from the environment, or the file that holds them; the other is None."""
    text = environment.get(VARIABLE, "")
    if text and key_file is not None:
        raise MasterKeyError(f"give {VARIABLE} or a key file, not both")
    if text:
        return decoded(text.replace(",", " ").split(), VARIABLE), None
    if key_file is None and not database.is_sqlite:
        raise MasterKeyError(
            f"there is no master key: set {VARIABLE}, or name a file with --key-file; create one with "
            + HOW_TO_MAKE_ONE.format(file="keydyn.key")
        )
    return None, KeyFile(key_file or Path(database.url.database or "").with_suffix(".key"))


def decoded(words: Sequence[str], source: str) -> list[bytes]:
    """Decode keys from base64; raise a `MasterKeyError`, which quotes none of it, if one is not 32 bytes."""
    keys = []
    for word in words:
        try:
            key = base64.b64decode(word, validate=True)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise MasterKeyError(f"{source}: a master key is {KEY_BYTES} bytes in base64; this is not one")
        keys.append(key)
    if not keys:
        raise MasterKeyError(f"{source}: there is no master key in it")
    return keys


def register(connection: Connection, keys: MasterKeys) -> bool:
    """Store the proof of the newest key, and return whether it was new.

    Raises a `MasterKeyError` if these are not the right keys. Rows that an earlier version of keydyn wrote
    get their authentication codes, once.
    """
    if connection.dialect.name == "postgresql":
        # If two processes have different keys for a new database, the second is refused.
        connection.exec_driver_sql("LOCK TABLE master_keys IN SHARE ROW EXCLUSIVE MODE")
    if _prove(connection, keys):
        return False
    rows = {row.id: row for row in connection.execute(select(master_keys))}
    earlier = [name for name in keys.ids if name in rows and _is_earlier(keys, rows[name])]
    if earlier:
        authenticate_all(connection, keys)
    for name in earlier:
        proof = keys.key(name).seal(PROOF, _place(name))
        connection.execute(update(master_keys).where(master_keys.c.id == name).values(proof=proof))
    name = keys.current
    if name in rows:
        return False
    proof = keys.key(name).seal(PROOF, _place(name))
    connection.execute(master_keys.insert().values(id=name, proof=proof, retired=False))
    return True


def _prove(connection: Connection, keys: MasterKeys) -> bool:
    """Whether the database knows the newest key, and its rows have their authentication codes.

    Raises a `MasterKeyError` if the newest key is retired, or if a key in use was not given.
    """
    rows = {row.id: row for row in connection.execute(select(master_keys))}
    missing = [name for name, row in rows.items() if not row.retired and name not in keys.ids]
    if missing:
        raise MasterKeyError(
            f"this is not the master key of the database: it was encrypted with {', '.join(missing)}, and "
            f"{', '.join(keys.ids)} was given"
        )
    if keys.current in rows and rows[keys.current].retired:
        raise MasterKeyError(f"the master key {keys.current} was replaced by another; give that one first")
    earlier = [_is_earlier(keys, rows[name]) for name in keys.ids if name in rows]
    return keys.current in rows and not any(earlier)


def _is_earlier(keys: MasterKeys, row: Row[Any]) -> bool:
    """Whether a key in use was registered by a version of keydyn that did not authenticate rows."""
    try:
        proof = keys.key(row.id).open(row.proof, _place(row.id))
    except SealError:
        raise MasterKeyError(f"the proof of the master key {row.id} is damaged") from None
    return proof == EARLIER_PROOF and not row.retired


def _may_make(database: Database, path: Path, key_file: Path | None) -> None:
    if key_file is not None:
        raise MasterKeyError(f"{path}: no such file; create one with {HOW_TO_MAKE_ONE.format(file=path)}")
    with database.reading() as connection:
        if connection.execute(select(master_keys.c.id).limit(1)).first() is not None:
            raise MasterKeyError(f"{path}: the master key file is missing; without it nothing can be read")


def _place(name: str) -> str:
    return f"master_keys/{name}"


def _write_private(path: Path, keys: Sequence[bytes]) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(b"".join(base64.b64encode(key) + b"\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class Rotation:
    """The result of a rotation: the key in use, the keys retired, the number of data keys wrapped again."""

    key: str
    retired: tuple[str, ...]
    wrapped: int


def rotate(
    database: Database,
    key_file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], object] = lambda done, total: None,
    batch: int = BATCH,
) -> Rotation:
    """Replace the master key by a new one or, with keys from the environment, by the first of these.

    Every step can be repeated: a run that was killed is finished by the next one. First the old key is
    retired, so that triggers refuse to wrap anything with it; then everything that it wrapped is wrapped
    again, in batches; only when nothing is left is the old key removed. The service may keep running.
    """
    keys, file = given(database, key_file, environment)
    if keys is not None:
        if len(keys) == 1:
            raise MasterKeyError(TWO_STEPS)
        return _wrap_all(database, open_master_keys(database, None, environment), progress, batch)
    assert file is not None
    # Prove the old key before a new one is made.
    open_master_keys(database, key_file, environment)
    with _alone(file.path.parent):
        known = file.read()
        # Several keys mean that an earlier run was killed: finish it with the key that it made.
        if len(known) == 1:
            known = [secrets.token_bytes(KEY_BYTES), *known]
            file.replace(known)
        done = _wrap_all(database, MasterKeys(known), progress, batch)
        file.replace(known[:1])
    return done


def _wrap_all(
    database: Database, keys: MasterKeys, progress: Callable[[int, int], object], batch: int
) -> Rotation:
    retired = database.write(lambda connection: _retire_others(connection, keys))
    with database.reading() as connection:
        total = sum(_count(connection, table, keys) for table in (tenants, users))
    wrapped = 0
    for table in (tenants, users):
        after = ""
        while done := database.write(partial(_wrap, table=table, after=after, keys=keys, most=batch)):
            wrapped += len(done)
            after = done[-1]
            progress(wrapped, total)
    # Only rows that are authentic by the old key are authenticated again.
    database.write(lambda connection: authenticate_all(connection, keys, only_authentic=True))
    return Rotation(keys.current, retired, wrapped)


def _retire_others(connection: Connection, keys: MasterKeys) -> tuple[str, ...]:
    """Retire all keys but the newest, so that they can wrap nothing more; return the names of given ones."""
    register(connection, keys)
    others = master_keys.c.id != keys.current
    names = connection.execute(select(master_keys.c.id).where(others)).scalars().all()
    connection.execute(update(master_keys).where(others).values(retired=True))
    return tuple(name for name in names if name in keys.ids)


def _wrap(connection: Connection, table: Table, after: str, keys: MasterKeys, most: int) -> list[str]:
    """Wrap the next batch of data keys again; return the ids of their rows."""
    columns = select(table.c.id, table.c.wrapped_key).where(_is_old(table, keys), table.c.id > after)
    rows = connection.execute(columns.order_by(table.c.id).limit(most).with_for_update()).all()
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
    """Hold a lock on a folder, so that only one process at a time replaces its keys."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MasterKeyError("another process is replacing the master key") from None
        yield
    finally:
        os.close(handle)
