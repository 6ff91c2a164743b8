"""The rows of watched sessions: opened, taken over, saved many at a time; and what happens to sessions.

A session belongs to the connection that took it over last, which raised its epoch: no other can write.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, update

from keydyn.service.problems import Problem
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import watch_sessions

# Rows that one query names.
AT_A_TIME = 500


class SessionRow(NamedTuple):
    """The durable part of a session: everything up to one keystroke; a new one has no state."""

    id: str
    epoch: int
    sequence: int
    locked_at: int | None
    state: bytes | None


@dataclass(frozen=True, repr=False)
class SessionEvent:
    """What happened to a session ("opened", "locked", "unlocked"), when, and after which keystroke."""

    what: str
    tenant_id: str
    user_id: str
    session_id: str
    at: int
    keystroke: int
    actor: str
    data_key: DataKey


# Called inside the change that stores the event.
Hook = Callable[[Connection, SessionEvent], None]


def lock_id(session_id: str, keystroke: int) -> str:
    """The id of the decision that locked a session: known without asking where it is stored."""
    return hashlib.sha256(f"{session_id}/{keystroke}".encode()).hexdigest()[:32]


def place(session_id: str) -> str:
    """The name under which a session's state is sealed."""
    return f"watch_sessions/{session_id}/state"


def new_id() -> str:
    """The id of a session that is to be opened."""
    return secrets.token_hex(16)


def open_session(connection: Connection, id_: str, profile_id: str, background: str, now: int) -> SessionRow:
    """Store a new session, which is trusted."""
    row = {"id": id_, "profile_id": profile_id, "epoch": 1, "sequence": 0, "background": background}
    connection.execute(insert(watch_sessions).values({**row, "created_at": now, "seen_at": now}))
    return SessionRow(id_, 1, 0, None, None)


def take_over(connection: Connection, id_: str, profile_id: str, background: str, now: int) -> SessionRow:
    """Continue a session of this profile: the connection that held it can no longer write."""
    columns = watch_sessions.c
    found = connection.execute(
        update(watch_sessions)
        .where(columns.id == id_, columns.profile_id == profile_id)
        .values(epoch=columns.epoch + 1, seen_at=now, background=background)
        .returning(columns.id, columns.epoch, columns.sequence, columns.locked_at, columns.state)
    ).one_or_none()
    if found is None:
        raise Problem(404, "no-such-session", "There is no such session", "open a new one")
    return SessionRow(*found)


def save(connection: Connection, many: Sequence[SessionRow], now: int) -> dict[str, int | None]:
    """Store sessions that are still held; the epochs of the others, None for those that are gone."""
    if not many:
        return {}
    # In one order, so that no two processes wait for each other.
    names = ("row", "held", "number", "locked", "sealed")
    rows = [dict(zip(names, one, strict=True), now=now) for one in sorted(many)]
    done = connection.execute(_SAVE, rows)
    if done.rowcount == len(rows):
        return {}
    held = {one.id: one.epoch for one in many}
    now_held: dict[str, int] = {}
    ids = sorted(held)
    for begin in range(0, len(ids), AT_A_TIME):
        some = watch_sessions.c.id.in_(ids[begin : begin + AT_A_TIME])
        found = connection.execute(select(watch_sessions.c.id, watch_sessions.c.epoch).where(some))
        now_held.update((id_, epoch) for id_, epoch in found)
    return {id_: now_held.get(id_) for id_, epoch in held.items() if now_held.get(id_) != epoch}


_SAVE = (
    update(watch_sessions)
    .where(watch_sessions.c.id == bindparam("row"), watch_sessions.c.epoch == bindparam("held"))
    .values(
        sequence=bindparam("number"),
        locked_at=bindparam("locked"),
        state=bindparam("sealed"),
        seen_at=bindparam("now"),
    )
)
