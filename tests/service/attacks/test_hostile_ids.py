"""Ids and texts with characters that databases refuse: no answer is a 500, and no log is flooded."""

from __future__ import annotations

import base64
import json
import logging
import secrets

import pytest

from keydyn.service.http.gate import HEADERS
from tests.service.running import connect, http_get, http_post, running
from tests.service.typists import enrol

HOSTILE = ["\ud800", "\udfff", "a\0b", "\0", "\x01", "\x7f", "\n", "'; --", "é" * 100, "\u202e", "\U0010ffff"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request, tmp_path_factory):
    """A service on each kind of database, with an enrolled person."""
    if request.param == "sqlite":
        yield from served(f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'service.db'}")
    else:
        with request.getfixturevalue("postgres").new_database() as url:
            yield from served(url)


def served(url):
    with running(url) as found:
        enrol(found.client(), "ada", 0)
        yield found


def check(answer, *expected):
    assert answer.status_code in expected, (answer.status_code, answer.text)
    for name, _ in HEADERS:
        assert name.decode() in answer.headers
    assert answer.headers["x-request-id"]


def forged(tenant="0" * 32, key="0" * 16, purpose="verify"):
    """A token that the service did not sign."""
    claims = json.dumps([tenant, key, "user", purpose, "", 10**13, "nonce"]).encode()
    return f"kdt_{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.{'A' * 43}"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_forged_tokens_are_refused(service, text, caplog):
    caplog.set_level(logging.INFO)
    for token in (forged(tenant=text), forged(key=text), forged(purpose=text)):
        # A name of its own: the line of an earlier test's request may be written after its answer.
        name = secrets.token_hex(8)
        headers = {"authorization": f"Bearer {token}", "x-request-id": name}
        check(http_post(f"{service.url}/v1/users/ada/verify", json={}, headers=headers), 401)
        lines = [record.getMessage() for record in caplog.records if name in record.getMessage()]
        assert len(lines) <= 1
        assert all(len(line) < 200 for line in lines)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("text", ["%00", "a%00b", "%ED%A0%80", "%FF", "%0A", "%C3%A9", "%E2%80%AE"])
def test_paths_and_queries(service, text):
    client = service.client()
    for method, path in (
        ("GET", f"/v1/users/{text}"),
        ("GET", f"/v1/users/{text}/export"),
        ("DELETE", f"/v1/users/{text}"),
        ("POST", f"/v1/users/{text}/verify"),
        ("DELETE", f"/v1/webhooks/{text}"),
        ("GET", f"/pages/{text}"),
        ("GET", f"/docs/assets/{text}"),
        ("GET", f"/{text}"),
        ("GET", f"/x{text}"),
        ("GET", f"/healthz{text}"),
        ("GET", f"/v1/users?cursor={text}"),
        ("GET", f"/v1/audit?action={text}"),
        ("GET", f"/v1/error-rates?positions={text}"),
    ):
        check(client.request(method, path), 400, 404, 422)


def test_a_search_for_what_no_id_has(service):
    client = service.client()
    for text in ("%00", "a%00b", "%01", "%0A"):
        check(client.get(f"/v1/users?search={text}"), 422)
    for text in ("%ED%A0%80", "%C3%A9", "%25", "_"):
        answer = client.get(f"/v1/users?search={text}")
        check(answer, 200)
        assert answer.json()["users"] == []


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_bodies(service, text):
    client = service.client()
    escaped = json.dumps(text)[1:-1]
    typed = [{"keyname": text, "timepress": 100.0 * n, "timerelease": 100.0 * n + 60} for n in range(40)]
    for method, path, body in (
        ("POST", "/v1/users", {"id": text}),
        ("POST", "/v1/users/ada/samples", {"keystrokes": typed}),
        ("POST", "/v1/users/ada/verify", {"keystrokes": typed, "text": {"kind": "fixed", "name": text}}),
        ("POST", "/v1/identify", {"keystrokes": typed}),
        ("POST", "/v1/users/ada/token", {"purpose": "unlock", "session": text}),
        ("POST", "/v1/webhooks", {"url": f"https://example.org/{text}", "events": [text]}),
        ("PUT", "/v1/settings", {"origins": [f"https://{text}"]}),
        ("POST", "/v1/populations", {"text": {"kind": "positions", "name": text}}),
    ):
        content = json.dumps(body)
        assert escaped in content
        answer = client.request(method, path, content=content, headers={"content-type": "application/json"})
        # A key may have a strange name; that is for the statistics to judge.
        check(answer, *((200, 201, 400, 409, 422) if "keystrokes" in body else (400, 409, 422)))
    for body in ({"link": text}, {"key": text}):
        headers = {"origin": service.url, "content-type": "application/json"}
        check(
            http_post(f"{service.url}/v1/session", content=json.dumps(body), headers=headers), 400, 401, 422
        )


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_frames(service, text, caplog):
    headers = {"authorization": service.client().headers["authorization"]}
    address = service.url.replace("http", "ws") + "/v1/users/ada/watch"
    for hello in (
        {"session": text},
        {"token": text},
        {"token": forged(tenant=text)},
        {"device": text},
        {"text": {"kind": "fixed", "name": text}},
    ):
        with connect(address, additional_headers=headers) as talk:
            talk.send(json.dumps({"type": "hello", **hello}))
            problem = json.loads(talk.recv(180))
        assert problem["type"] == "problem"
        assert problem["status"] in (400, 401, 404, 409, 422), problem
    assert not [record for record in caplog.records if record.exc_info]


def test_people_in_the_path_of_a_socket(service):
    headers = {"authorization": service.client().headers["authorization"]}
    for user in ("a%00b", "%ED%A0%80", "%0A", "ada%0A"):
        address = f"{service.url.replace('http', 'ws')}/v1/users/{user}/watch"
        with connect(address, additional_headers=headers) as talk:
            talk.send(json.dumps({"type": "hello"}))
            assert json.loads(talk.recv(180))["status"] == 404


def test_a_bug_is_answered_like_any_other_problem(service, monkeypatch, caplog):
    """With the headers and an id, and one line in the log that tells where, but not what."""

    def broken(*_):
        raise RuntimeError("about yvonne")

    monkeypatch.setattr(service.app.state.door, "enter", broken)
    answer = http_get(f"{service.url}/v1/users", headers={"x-request-id": "the-broken-one"})
    check(answer, 500)
    assert answer.json()["type"] == "urn:keydyn:problem:internal"
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(lines) == 1
    assert lines[0].startswith("request the-broken-one: RuntimeError at ")
    assert "test_hostile_ids.py:" in lines[0]
    assert "yvonne" not in caplog.text
