"""Watched sessions through the whole service: tokens, locks, unlocking, webhooks."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from websockets.exceptions import ConnectionClosed

from keydyn.decisions import Verifier
from keydyn.service.jobs.queue import waiting
from tests.service.running import connect
from tests.service.typists import enrol, frame_of, keystrokes_of
from tests.waiting import PATIENCE


def token_of(client, purpose, **more):
    answer = client.post("/v1/users/ada/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def address(service, user="ada"):
    return f"{service.url.replace('http', 'ws')}/v1/users/{user}/watch"


def said(socket, **frame):
    socket.send(json.dumps(frame))
    return heard(socket)


def heard(socket):
    return json.loads(socket.recv(timeout=PATIENCE))


def closing_code(socket):
    """The code with which the service closes the connection, after any number of frames."""
    try:
        while True:
            socket.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code


def keys_of(user, session):
    return [[row["keyname"], row["timepress"], row["timerelease"]] for row in keystrokes_of(user, session)]


def enrolled(client):
    enrol(client, "ada", 0)
    verifier = Verifier.shipped()
    verifier.enrol("ada", pd.concat([frame_of(0, session) for session in range(5)]))
    return verifier


def test_a_browser_watches_with_a_token_and_goes_on_where_it_was(service, client):
    verifier = enrolled(client)
    token = token_of(service.page(), "watch")
    keys = keys_of(0, 6)
    with connect(address(service), origin=service.url) as socket:
        welcome = said(socket, type="hello", token=token["token"])
        assert (welcome["type"], welcome["session"], welcome["durable"]) == ("welcome", token["session"], 0)
        first = said(socket, type="keys", first=1, keys=keys[:30])
    with connect(address(service)) as socket:
        again = said(socket, type="hello", token=token["token"])
        assert again["session"] == token["session"]
        durable = again["durable"]
        rest = said(socket, type="keys", first=durable + 1, keys=keys[durable:])
    expected = verifier.watch("ada").update(frame_of(0, 6))
    assert first["trust"] == pytest.approx(expected.trust[:30].tolist(), abs=1e-9)
    assert rest["trust"] == pytest.approx(expected.trust[durable:].tolist(), abs=1e-9)


def test_what_is_no_token_to_watch_is_refused(service, client):
    enrolled(client)
    enrol(client, "bob", 1)
    right = token_of(client, "watch")["token"]
    cases = [
        (address(service), token_of(client, "verify")["token"], {}, 4403),
        (address(service, "bob"), right, {}, 4403),
        (address(service), right, {"origin": "https://evil.example"}, 4403),
        (address(service), "kdt_x.y", {}, 4401),
        (address(service), None, {}, 4401),
    ]
    for url, token, more, code in cases:
        with connect(url, **more) as socket:
            socket.send(json.dumps({"type": "hello", "token": token}))
            assert closing_code(socket) == code, (url, code)
    service.clock.now += 600_000
    with connect(address(service)) as socket:
        socket.send(json.dumps({"type": "hello", "token": right}))
        assert closing_code(socket) == 4401


def test_an_impostor_is_locked_out_until_the_session_is_unlocked(service, client):
    enrolled(client)
    webhook = {"url": "https://example.org/hook", "events": ["session.locked"]}
    client.post("/v1/webhooks", json=webhook)
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        said(socket, type="hello", token=token["token"])
        number, locked = 1, False
        for session in [n % 12 for n in range(60)]:
            keys = keys_of(1, session)
            shifted = [[key, press + 1e5 * number, release + 1e5 * number] for key, press, release in keys]
            answer = said(socket, type="keys", first=number, keys=shifted)
            if answer["type"] == "lock":
                locked = True
                break
            number += len(keys)
        assert locked
    with connect(address(service)) as socket:
        assert said(socket, type="hello", token=token["token"])["locked"]
        refused = said(socket, type="unlock", token=token["token"])
        assert refused["type"] == "problem"
        unlock = token_of(client, "unlock", session=token["session"])["token"]
        assert said(socket, type="unlock", token=unlock)["type"] == "unlocked"
    with connect(address(service)) as socket:
        assert not said(socket, type="hello", token=token["token"])["locked"]
    log = [entry["action"] for entry in client.get("/v1/users/ada/export").json()["audit"]]
    assert log.count("session.locked") == log.count("session.unlocked") == 1
    with service.database.reading() as connection:
        assert waiting(connection)["webhook"] == 1


def test_programs_watch_with_an_api_key(service, client):
    enrolled(client)
    headers = {"Authorization": client.headers["authorization"]}
    with connect(address(service), additional_headers=headers) as socket:
        welcome = said(socket, type="hello", text={"kind": "free"})
        assert welcome["type"] == "welcome"
        assert len(said(socket, type="keys", first=1, keys=keys_of(0, 6))["trust"]) == 60
    with connect(address(service, "nobody"), additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "hello"}))
        assert heard(socket)["status"] == 404
    key = service.key(scopes=["verify"])
    with connect(address(service), additional_headers={"Authorization": f"Bearer {key}"}) as socket:
        socket.send(json.dumps({"type": "hello"}))
        assert heard(socket)["status"] == 403


def test_a_session_is_logged_once_when_it_is_opened_however_often_it_is_taken_over(service, client):
    enrol(client, "ada", 0)
    headers = {"Authorization": client.headers["authorization"]}
    session, opened = None, []
    for _ in range(2):
        with connect(address(service), additional_headers=headers) as socket:
            session = said(socket, type="hello", session=session)["session"]
        opened.append(session)
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        assert said(socket, type="hello", token=token["token"])["session"] == token["session"]
    entries = client.get("/v1/audit", params={"action": "session.opened"}).json()["entries"]
    assert [one["details"]["session"] for one in entries[::-1]] == [opened[0], token["session"]]
    assert opened[0] == opened[1]
    assert client.get("/v1/decisions").json()["periods"][-1]["sessions"] == 2
