"""The stored rows of watched sessions: opening one, taking one over, saving many; and events of sessions.

A session belongs to the connection that took it over last and thereby raised its epoch. No other connection
can write to it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, bindparam, insert, or_, select, true, update

from keydyn.service.problems import Problem
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import api_keys, profiles, watch_sessions

# The largest number of rows that one query names.
AT_A_TIME = 500


class SessionRow(NamedTuple):
    """The durable part of a session, up to keystroke number `sequence`; a new session has no state."""

    id: str
    epoch: int
    sequence: int
    locked_at: int | None
    locks: int
    state: bytes | None


@dataclass(frozen=True, repr=False)
class SessionEvent:
    """An event of a session ("opened", "locked", "unlocked"), with its time and its keystroke.

    `reason` says why the session was locked, if not because of suspicion.
    """

    what: str
    tenant_id: str
    user_id: str
    session_id: str
    at: int
    keystroke: int
    actor: str
    data_key: DataKey
    reason: str | None = None


# Called inside the change that stores the event.
Hook = Callable[[Connection, SessionEvent], None]


def lock_id(session_id: str, keystroke: int) -> str:
    """The id of the decision that locked a session, derived so that it need not be looked up."""
    return hashlib.sha256(f"{session_id}/{keystroke}".encode()).hexdigest()[:32]


def place(session_id: str) -> str:
    """The name under which a session's state is sealed."""
    return f"watch_sessions/{session_id}/state"


def new_id() -> str:
    """A random id for a new session."""
    return secrets.token_hex(16)


def open_session(connection: Connection, id_: str, profile_id: str, background: str, now: int) -> SessionRow:
    """Store a new, trusted session; raise a `Problem` if another session of the person is locked."""
    locked = connection.execute(_LOCKED, {"profile": profile_id}).scalar()
    if locked is not None:
        title, detail = "Another session of this user is locked", "Unlock that session, and continue with it."
        raise Problem(409, "session-locked", title, detail, session=locked)
    row = {"id": id_, "profile_id": profile_id, "epoch": 1, "sequence": 0, "background": background}
    connection.execute(insert(watch_sessions).values({**row, "created_at": now, "seen_at": now}))
    return SessionRow(id_, 1, 0, None, 0, None)


_LOCKED = (
    select(watch_sessions.c.id)
    .join(profiles, profiles.c.id == watch_sessions.c.profile_id)
    .where(
        watch_sessions.c.locked_at.is_not(None),
        profiles.c.user_id
        == select(profiles.c.user_id).where(profiles.c.id == bindparam("profile")).scalar_subquery(),
    )
    .order_by(watch_sessions.c.locked_at)
    .limit(1)
)


def lock_of(connection: Connection, id_: str) -> int:
    """The number of a session's current lock; raises a `Problem` if the session is not locked."""
    columns = watch_sessions.c
    found = connection.execute(
        select(columns.locks).where(columns.id == id_, columns.locked_at.is_not(None))
    ).scalar()
    if found is None:
        raise Problem(409, "not-locked", "This session is not locked", "A token opens one lock of a session.")
    return int(found)


def take_over(connection: Connection, id_: str, profile_id: str, background: str, now: int) -> SessionRow:
    """Take over a session of this profile; the connection that held it can no longer write."""
    columns = watch_sessions.c
    found = connection.execute(
        update(watch_sessions)
        .where(columns.id == id_, columns.profile_id == profile_id)
        .values(epoch=columns.epoch + 1, seen_at=now, background=background)
        .returning(
            columns.id, columns.epoch, columns.sequence, columns.locked_at, columns.locks, columns.state
        )
    ).one_or_none()
    if found is None:
        raise Problem(404, "no-such-session", "There is no such session", "open a new one")
    return SessionRow(*found)


def save(connection: Connection, many: Sequence[SessionRow], now: int) -> dict[str, int | None]:
    """Store the sessions that are still held, and return the others: their new epoch, or None if deleted."""
    if not many:
        return {}
    # Always in the same order, so that no two processes wait for each other.
    names = ("row", "held", "number", "locked", "times_locked", "sealed")
    rows = [dict(zip(names, one, strict=True), now=now) for one in sorted(many)]
    done = connection.execute(_SAVE, rows)
    if done.rowcount == len(rows):
        return {}
    held = {one.id: one.epoch for one in many}
    now_held: dict[str, int] = {}
    for some in _in_parts(watch_sessions.c.id, held):
        found = connection.execute(select(watch_sessions.c.id, watch_sessions.c.epoch).where(some))
        now_held.update((id_, epoch) for id_, epoch in found)
    return {id_: now_held.get(id_) for id_, epoch in held.items() if now_held.get(id_) != epoch}


def still_there(
    connection: Connection, sessions: Iterable[str], keys: Iterable[str], now: int
) -> tuple[set[str], set[str]]:
    """Return those of the sessions that exist, and those of the keys that are neither revoked nor expired."""
    lasts = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
    valid = api_keys.c.revoked_at.is_(None) & lasts
    return _among(connection, watch_sessions.c.id, sessions), _among(connection, api_keys.c.id, keys, valid)


def _among(
    connection: Connection, column: Column[str], ids: Iterable[str], where: ColumnElement[bool] | None = None
) -> set[str]:
    """Return those of the ids that occur in a column, in rows for which a condition holds."""
    found: set[str] = set()
    for some in _in_parts(column, ids):
        query = select(column).where(some, true() if where is None else where)
        found.update(connection.execute(query).scalars())
    return found


def _in_parts(column: Column[str], ids: Iterable[str]) -> list[ColumnElement[bool]]:
    """Conditions that together match all of these ids, each with at most `AT_A_TIME` of them."""
    every = sorted(ids)
    return [column.in_(every[begin : begin + AT_A_TIME]) for begin in range(0, len(every), AT_A_TIME)]


_SAVE = (
    update(watch_sessions)
    .where(watch_sessions.c.id == bindparam("row"), watch_sessions.c.epoch == bindparam("held"))
    .values(
        sequence=bindparam("number"),
        locked_at=bindparam("locked"),
        locks=bindparam("times_locked"),
        state=bindparam("sealed"),
        seen_at=bindparam("now"),
    )
)
