"""Expiry: rows that are kept for a limited time are deleted after it, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, insert, select

from keydyn.service.jobs import periodic
from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import (
    api_keys,
    counters,
    decisions,
    idempotency,
    profiles,
    samples,
    watch_sessions,
)
from keydyn.service.wall_clock import DAY
from tests.service.jobs.conftest import START, new_tenant

TABLES = ("samples", "api_keys", "idempotency", "watch_sessions", "counters", "decisions")


def fill(connection: Connection, tenant_id: str, user_id: str) -> None:
    """Seven rows in each table, the last of which expires just after START."""
    connection.execute(
        insert(profiles).values(
            id="p", user_id=user_id, text="free", device="keyboard", created_at=0, version=1, samples=7,
            keystrokes=700, known_keystrokes=700, clock_tick=0.0, drift=0.0, fitted_samples=7,
        )
    )  # fmt: skip
    connection.execute(
        insert(api_keys).values(
            id="key", tenant_id=tenant_id, name="", scopes="admin", hash=b"", created_at=0
        )
    )
    for number in range(7):
        age = 6 - number
        connection.execute(
            insert(samples).values(
                id=f"s{number}", profile_id="p", number=number, created_at=0, expires_at=START - age,
                keystrokes=100, contents=b"",
            )
        )  # fmt: skip
        connection.execute(
            insert(api_keys).values(
                id=f"l{number}", tenant_id=tenant_id, name="", scopes="admin", hash=b"", created_at=0,
                kind="link", expires_at=START - age,
            )
        )  # fmt: skip
        connection.execute(
            insert(idempotency).values(
                tenant_id=tenant_id, key=f"i{number}", request=b"", status=200, answer=b"",
                created_at=START - DAY - age,
            )
        )  # fmt: skip
        connection.execute(
            insert(watch_sessions).values(
                id=f"w{number}", profile_id="p", epoch=1, sequence=0, created_at=0,
                seen_at=START - 30 * DAY - age, background="",
            )
        )  # fmt: skip
        connection.execute(
            insert(counters).values(
                tenant_id=tenant_id, name=f"c{number}", expires_at=START - age, amount=1, user_id=user_id
            )
        )
        connection.execute(
            insert(decisions).values(
                id=f"d{number}", tenant_id=tenant_id, created_at=START - 30 * DAY - age, kind="verify",
                answer="accept", level="low", judged_level="low", text="free", device="keyboard", actor="",
            )
        )  # fmt: skip


@pytest.mark.parametrize("batch", [1, 2, 3, 500])
def test_what_has_expired_is_deleted_and_nothing_else(database: Database, batch: int) -> None:
    tenant = new_tenant(database)
    database.write(lambda connection: fill(connection, tenant.id, tenant.user_id))
    assert periodic.expire(database, START, batch) == dict.fromkeys(TABLES, 6)
    with database.reading() as connection:
        assert connection.execute(select(samples.c.id)).scalars().all() == ["s6"]
        left = select(api_keys.c.id).order_by(api_keys.c.id)
        assert connection.execute(left).scalars().all() == ["key", "l6"]
        assert connection.execute(select(idempotency.c.key)).scalars().all() == ["i6"]
        assert connection.execute(select(watch_sessions.c.id)).scalars().all() == ["w6"]
    assert periodic.expire(database, START + 1, batch) == dict.fromkeys(TABLES, 1)


def test_finding_nothing_writes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "write", None)
    assert periodic.expire(database, START) == dict.fromkeys(TABLES, 0)
