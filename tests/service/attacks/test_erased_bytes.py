"""After an erasure, the person's key is in no file and no process, and no row identifies the person."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import select

from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context
from keydyn.service.people.job_handlers import CaughtUp
from keydyn.service.people.recognition.deciding import subject_of
from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import idempotency, users
from keydyn.service.wall_clock import HOUR
from keydyn.service.wire.both_ways import Text
from tests.service.people.background.test_populations import of
from tests.service.running import KEYS
from tests.service.typists import enrol
from tests.waiting import PATIENCE


def test_with_a_reader_open_the_key_goes_as_soon_as_it_has_finished(service, client):
    service.database.truncating_ms = 50
    client.post("/v1/users", json={"id": "ada"})
    with service.database.reading() as connection:
        wrapped = connection.execute(select(users.c.wrapped_key)).scalar_one()
    file = Path(service.database.url.database)
    files = file, file.with_name(f"{file.name}-wal")
    with closing(sqlite3.connect(file)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM users").fetchone()
        first, again = (client.delete("/v1/users/ada", headers={"idempotency-key": "one"}) for _ in range(2))
        assert first.json()["pending"] == again.json()["pending"] == ["log"]
        assert any(wrapped in one.read_bytes() for one in files)
    until = time.monotonic() + PATIENCE
    while any(wrapped in one.read_bytes() for one in files):
        assert time.monotonic() < until, "the log was not cut off"
        # The job is put off when it fails.
        service.clock.now += HOUR
        time.sleep(0.05)


def test_without_a_reader_nothing_is_pending(service, client):
    # The job does it too, and may take long to end on a busy machine.
    service.database.truncating_ms = 120_000
    client.post("/v1/users", json={"id": "ada"})
    first, again = (client.delete("/v1/users/ada", headers={"idempotency-key": "one"}) for _ in range(2))
    assert first.json() == again.json()
    assert first.json()["pending"] == []


def test_no_row_has_a_hash_of_the_persons_name(service, client):
    client.post("/v1/users", json={"id": "ada"})
    client.delete("/v1/users/ada", headers={"idempotency-key": "one"})
    with service.database.reading() as connection:
        row = connection.execute(select(idempotency)).one()
    whole = hashlib.sha256()
    for part in (b"DELETE", b"/v1/users/ada", b""):
        whole.update(len(part).to_bytes(8, "big") + part)
    assert row.request != whole.digest()
    assert b"ada" not in row.request + row.answer + row.key.encode()


def test_another_process_forgets_the_template_within_seconds(service, client):
    enrol(client, "ada", 0)
    _, tenant = of(service)
    with closing(Database(str(service.database.url))) as database:
        other = Context(database, KEYS, service.clock)
        look = CaughtUp(other)
        subject = subject_of(other, TenantPlace(tenant, Text(), "keyboard"), "ada")
        look()
        assert other.people.names() == [subject.profile.id]
        assert client.delete("/v1/users/ada").status_code == 200
        look()
        assert other.people.names() == []
        # A request that was under way when it looked is found the next time.
        other.people.put(subject.profile.id, 1, subject.known)
        look()
        assert other.people.names() == []
