"""A watched session is locked if a recording is played, or its keys cannot be typed by a person."""

from __future__ import annotations

import pytest

from tests.service.attacks.watching import connected, heard, rows_of, said
from tests.service.typists import N_SAMPLES, enrol, keystrokes_of


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture(scope="module")
def key(service):
    """The key of a tenant of four; suspicion alone hardly locks their sessions, and forgery never."""
    key = service.key()
    client = service.client(key)
    for user, name in enumerate(("ada", "bob", "cleo", "dora")):
        enrol(client, name, user)
    settings = client.get("/v1/settings").json() | {"lockouts_per_hour": 0.01, "alarms": 0.0}
    assert client.put("/v1/settings", json=settings).status_code == 200
    return key


def fresh(user, sessions=range(5, N_SAMPLES)):
    """Typing of a person without repetition, one sample after another."""
    rows = []
    for session in sessions:
        rows += rows_of(user, session, rows[-1][1] + 200.0 if rows else 0.0)
    return rows


def played(socket, rows, first=1):
    """Send keys in frames of 20 until the session is locked; return the lock, or None."""
    for begin in range(0, len(rows), 20):
        sent = rows[begin : begin + 20]
        if said(socket, type="keys", first=first + begin, keys=sent)["locked"]:
            return heard(socket)
    return None


def test_a_loop_is_noticed_in_its_second_round_however_often_the_connection_drops(service, key):
    once = fresh(0)
    length = once[-1][1] + 200.0
    twice = once + [[name, press + length, release + length] for name, press, release in once]
    session = locked = None
    # Fewer keys than are looked at together.
    for begin in range(0, len(twice), 40):
        with connected(service, "ada", key) as socket:
            welcome = said(socket, type="hello", session=session)
            assert welcome["durable"] == begin
            session, locked = welcome["session"], played(socket, twice[begin : begin + 40], begin + 1)
            said(socket, type="bye")
        if locked:
            break
    assert len(once) < locked["at"] <= len(once) + 100
    assert locked["reason"].startswith("a recording")
    entries = service.client(key).get("/v1/audit", params={"action": "session.locked"}).json()["entries"]
    assert entries[0]["details"]["reason"] == locked["reason"]


def test_what_was_enrolled_or_accepted_is_a_recording(service, key):
    accepted = {"keystrokes": keystrokes_of(1, 5)}
    client = service.client(key)
    assert client.post("/v1/users/bob/verify", json=accepted).json()["answer"] == "accept"
    for sessions in ((6, 5, 7), (6, 2, 7)):
        with connected(service, "bob", key) as socket:
            said(socket, type="hello")
            locked = played(socket, fresh(1, sessions))
            assert 60 < locked["at"] <= 150
            assert locked["reason"].startswith("a recording")
            assert said(socket, type="unlock")["type"] == "unlocked"


def test_a_machine_is_no_typist(service, key):
    rows = [[name, 150.0 * n, 150.0 * n + 70.0] for n, (name, *_) in enumerate(fresh(2))]
    with connected(service, "cleo", key) as socket:
        said(socket, type="hello")
        locked = played(socket, rows)
    assert locked["reason"].startswith("too regular")


def test_the_person_who_types_is_not_told_why(service, key):
    client = service.client(key)
    token = client.post("/v1/users/dora/token", json={"purpose": "watch"}).json()["token"]
    with connected(service, "dora") as socket:
        said(socket, type="hello", token=token)
        # Nothing that is typed afresh is a recording.
        assert played(socket, fresh(3)) is None
        locked = played(socket, fresh(3), len(fresh(3)) + 1)
    assert locked is not None
    assert "reason" not in locked
