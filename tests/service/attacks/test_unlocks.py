"""An unlock is for one lock, once, and no session is trusted while another of the person is locked."""

from __future__ import annotations

from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from keydyn.service import accounts
from tests.service.attacks.watching import connected, lock, rows_of, said
from tests.service.typists import enrol, keystrokes_of


@pytest.fixture(scope="module")
def service(attacked):
    """A service in which ada is enrolled in two kinds of text."""
    client = attacked.client()
    enrol(client, "ada", 0)
    for session in range(5, 10):
        sent = {"keystrokes": keystrokes_of(0, session), "text": {"kind": "fixed", "name": "a"}}
        assert client.post("/v1/users/ada/samples", json=sent).status_code == 201
    return attacked


def token_of(client, purpose, **more):
    answer = client.post("/v1/users/ada/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


def unlocked(service, session):
    with connected(service, key=service.key()) as socket:
        said(socket, type="hello", session=session)
        assert said(socket, type="unlock")["type"] == "unlocked"


def test_a_token_opens_the_lock_that_it_was_made_for_once(service):
    client = service.client()
    with connected(service) as socket:
        session = said(socket, type="hello", token=token_of(client, "watch"))["session"]
        early = client.post("/v1/users/ada/token", json={"purpose": "unlock", "session": session})
        assert early.json()["type"].endswith("not-locked")
        first = lock(socket)
        unlock = token_of(client, "unlock", session=session)
        assert said(socket, type="unlock", token=unlock)["type"] == "unlocked"
        assert said(socket, type="unlock", token=unlock)["status"] == 403
        lock(socket, first=first)
        assert said(socket, type="unlock", token=unlock)["status"] == 403
        again = token_of(client, "unlock", session=session)
    # The lock is as durable as the session.
    with connected(service) as socket:
        watch = token_of(client, "watch", session=session)
        assert said(socket, type="hello", token=watch)["locked"]
        assert said(socket, type="unlock", token=unlock)["status"] == 403
        assert said(socket, type="unlock", token=again)["type"] == "unlocked"


def test_a_revoked_key_opens_no_lock(service):
    key = service.key()
    with connected(service, key=key) as socket:
        session = said(socket, type="hello")["session"]
        lock(socket)
        now, key_id = service.clock(), key.split("_")[1]
        assert service.database.write(lambda connection: accounts.revoke_key(connection, key_id, now))
        # It is refused, unless the connection has been closed already.
        with suppress(ConnectionClosed):
            assert said(socket, type="unlock")["status"] == 401
    with connected(service, key=service.key()) as socket:
        assert said(socket, type="hello", session=session)["locked"]
    unlocked(service, session)


def test_no_session_is_opened_while_another_is_locked(service):
    client, key = service.client(), service.key()
    with connected(service, key=key) as socket:
        session = said(socket, type="hello")["session"]
        lock(socket)
    for text in ({"kind": "free"}, {"kind": "fixed", "name": "a"}):
        refused = client.post("/v1/users/ada/token", json={"purpose": "watch", "text": text})
        assert refused.status_code == 409
        assert (refused.json()["type"].rpartition(":")[2], refused.json()["session"]) == (
            "session-locked",
            session,
        )
        with connected(service, key=key) as socket:
            problem = said(socket, type="hello", text=text)
            assert (problem["status"], problem["session"]) == (409, session)
    unlocked(service, session)
    with connected(service, key=key) as socket:
        assert not said(socket, type="hello")["locked"]
        assert said(socket, type="keys", first=1, keys=rows_of(0, 10))["type"] == "trust"
