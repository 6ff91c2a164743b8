"""The gate of all requests: limits of size, time, rate and number, ids, headers, and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from keydyn.service.http.gate import HEADERS, LARGEST_HEAD, Gate, HttpProtocol, host_name
from keydyn.service.metrics import Metrics
from keydyn.service.problems import Problem
from keydyn.service.serving import log_to_stderr
from keydyn.service.settings import Deployment
from tests.service.raw_http import head, problem_in, raw
from tests.service.running import connect, http_get, http_post, running
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

LARGEST = 1 << 16
NAMES = (f"gate-{n}" for n in count())
VERIFY = "/v1/users/ada/verify"


@contextmanager
def of_this_file(tmp_path_factory, **settings):
    """A service for all tests of this file."""
    url = f"sqlite:///{tmp_path_factory.mktemp('gate') / 'service.db'}"
    with running(url, **settings) as found:
        yield found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A service that takes small bodies only."""
    with of_this_file(tmp_path_factory, largest_body=LARGEST) as found:
        yield found


class Impatient(HttpProtocol):
    """A protocol that does not wait long for headers."""

    arrival_s = 2.0


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A service that does not wait long for a request."""
    with of_this_file(tmp_path_factory, http=Impatient, arrival_seconds=2.0) as found:
        yield found


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with the usual limits."""
    with of_this_file(tmp_path_factory) as found:
        yield found


@pytest.fixture
def client(service):
    """A client of a new tenant, with all scopes."""
    return service.client(service.key(next(NAMES)))


def test_a_body_that_is_too_large_is_refused_unread(small):
    key = small.key(next(NAMES))
    declared = raw(small, head(small, f"Content-Length: {LARGEST + 1}", path=VERIFY, key=key))
    assert problem_in(declared)[0] == 413
    assert problem_in(declared)[1]["limit"] == LARGEST
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    chunked = raw(small, head(small, "Transfer-Encoding: chunked", path=VERIFY, key=key), *[chunk] * 20)
    assert problem_in(chunked)[0] == 413


def test_a_body_that_trickles_in_is_given_up(impatient):
    top = head(impatient, "Content-Length: 100", key=impatient.key(next(NAMES)))
    trickle = raw(impatient, top, *[b"x"] * 8, pause=0.1)
    assert problem_in(trickle)[0] == 408


def test_the_rest_of_a_refused_request_is_not_waited_for_either(impatient):
    """Without a key it is answered at once, and what trickles in after that ends with the connection."""
    refused = raw(impatient, head(impatient, "Content-Length: 100"), *[b"x"] * 8, pause=0.1)
    assert problem_in(refused)[0] == 401


@pytest.mark.parametrize(
    "line",
    [
        "Content-Length: -1",
        "Content-Length: ten",
        "Content-Length: 1e3",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 99999999999999999999999999",
        "Broken header",
        "Bad\x00name: 1",
    ],
)
def test_headers_that_are_not_http_are_refused(small, line):
    assert problem_in(raw(small, head(small, line), b"{}"))[0] in (400, 413)


def test_headers_without_end_are_refused(small):
    one = raw(small, head(small)[:-2], *[b"X-Long: " + b"x" * 0x1000 + b"\r\n"] * 20, pause=0.001)
    status, problem = problem_in(one)
    assert (status, problem["limit"]) == (431, LARGEST_HEAD)
    many = raw(small, head(small)[:-2], *[b"X-Many: 1\r\n" * 500] * 20, pause=0.001)
    assert problem_in(many)[0] == 431


def test_half_open_connections_do_not_pile_up(impatient):
    """A client that sends nothing, or half a request, is let go, and nothing is left of it."""
    host, port = impatient.url.removeprefix("http://").split(":")
    silent = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(50)]
    for n, each in enumerate(silent[:25]):
        each.sendall(head(impatient)[: 5 + n])
    impatient.client().get("/v1/users")
    for each in silent:
        answer = each.recv(1 << 16)
        assert problem_in(answer)[0] == 408
        each.close()
    # A second request on a connection is waited for no longer than the first.
    first = head(impatient, "Content-Length: 0", method="GET", path="/healthz")
    answer = raw(impatient, first, head(impatient)[:30], pause=0.1)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in answer


def test_pipelined_requests_are_answered_in_order(small):
    one = head(small, "Content-Length: 0", "X-Request-Id: first-one", method="GET", path="/healthz")
    two = head(
        small,
        "Content-Length: 0",
        "X-Request-Id: second-one",
        "Connection: close",
        method="GET",
        path="/none",
    )
    answer = raw(small, one + two)
    assert answer.index(b"first-one") < answer.index(b"second-one")
    assert answer.count(b"HTTP/1.1 ") == 2


def test_what_is_left_of_a_refused_body_is_no_request(small):
    """A request hidden in a body that is too large is never answered."""
    hidden = head(small, method="GET", path="/healthz")
    top = head(small, f"Content-Length: {LARGEST + 1}", path=VERIFY, key=small.key(next(NAMES)))
    answer = raw(small, top, hidden)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"id": "\xff"}',
        b'{"id": "\\ud800"}',
        b"[" * 30_000 + b"]" * 30_000,
        b'{"id":' * 10_000,
        b'{"keystrokes": [{"keyname": "a", "timepress": NaN}]}',
        b'{"keystrokes": [{"keyname": "a", "timepress": Infinity}]}',
        b'{"keystrokes": [{"keyname": "a", "timepress": 1e999}]}',
        b'{"keystrokes": [{"keyname": "a", "timepress": ' + b"9" * 5000 + b"}]}",
        b'{"keystrokes": [{"keyname": "\\u0000", "timepress": 1}]}',
        b'{"keystrokes": [{"keyname": "a", "timepress": "1"}]}',
        b'{"keystrokes": [{"keyname": "a", "timepress": true}]}',
        b"null",
        b"[]",
        b'"text"',
    ],
)
@pytest.mark.parametrize("path", ["/v1/users/ada/verify", "/v1/identify"])
def test_bodies_that_make_no_sense_are_refused(client, body, path):
    client.post("/v1/users", json={"id": "ada"})
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_of_another_type_is_refused(client, kind):
    """A form of another page can be sent without being asked for leave: it must have no effect."""
    answer = client.post("/v1/users", content=b'{"id": "eve"}', headers={"content-type": kind})
    assert answer.status_code in (415, 422), answer.text
    assert client.get("/v1/users/eve").status_code == 404


def test_every_answer_has_an_id_and_the_headers(client, caplog):
    caplog.set_level(logging.INFO)
    given = client.get("/healthz", headers={"x-request-id": "given-by-client"})
    assert given.headers["x-request-id"] == "given-by-client"
    strange = client.get("/healthz", headers={"x-request-id": "a b\tc"})
    answers = [
        given,
        strange,
        client.get("/v1/users"),
        client.get("/v1/users/nobody"),
        client.get("/no/such/route"),
        client.post("/v1/users", content=b"{"),
        client.request("PATCH", "/v1/users"),
        client.request("OPTIONS", "/v1/users"),
        client.get("/docs"),
        client.get("/docs/assets/swagger-ui.css"),
        client.get("/docs/assets/../../secret"),
        client.get("/openapi.json"),
        client.get("/v1/users", headers={"host": "elsewhere.example"}),
        client.get("/v1/users", headers={"authorization": "Bearer no"}),
    ]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    for answer in answers:
        assert "server" not in answer.headers
        for name, value in HEADERS:
            assert name.decode() in answer.headers
            if "/docs" not in str(answer.url):
                assert answer.headers[name.decode()] == value.decode()
        if answer.status_code >= 400:
            assert answer.json()["instance"].endswith(answer.headers["x-request-id"])
    lines = [record.getMessage() for record in caplog.records if record.name == "keydyn.service"]
    for each in ids:
        assert sum(each in line for line in lines) == 1


def test_more_requests_than_can_be_answered_are_told_to_wait(sqlite_url):
    with running(sqlite_url, concurrent=1) as service:
        key, held, go = service.key(), threading.Event(), threading.Event()

        def block(connection):
            held.set()
            go.wait(PATIENCE)

        # The database is kept busy: writes wait, and fill the service.
        waiting = threading.Thread(target=service.database.write, args=(block,))
        waiting.start()
        held.wait(PATIENCE)

        def create(n):
            return http_post(
                f"{service.url}/v1/users",
                json={"id": f"user-{n}"},
                headers={"authorization": f"Bearer {key}"},
                timeout=PATIENCE,
            )

        with ThreadPoolExecutor(12) as pool:
            answers = [pool.submit(create, n) for n in range(12)]
            while sum(answer.done() for answer in answers) < 8:
                time.sleep(0.01)
            go.set()
            found = [answer.result() for answer in answers]
        waiting.join()
        assert sorted(answer.status_code for answer in found) == [201] * 4 + [503] * 8
        for answer in found:
            if answer.status_code == 503:
                assert answer.json()["type"] == "urn:keydyn:problem:busy"
                assert int(answer.headers["retry-after"]) >= 1
        assert create(99).status_code == 201


def test_too_many_requests_of_a_key_are_told_to_wait_and_others_are_not(sqlite_url):
    # So few that none is added meanwhile, however slow the machine.
    with running(sqlite_url, requests_per_second=0.01) as service:
        first, second = service.client(), service.client()
        answers = [first.get("/v1/users") for _ in range(20)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) >= 10
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert all(answer.headers["content-type"] == "application/problem+json" for answer in refused)
        assert second.get("/v1/users").status_code == 200
        # A client that guesses keys is slowed down as well.
        guesses = [http_get(f"{service.url}/v1/users").status_code for _ in range(20)]
        assert set(guesses) == {401, 429}


def test_logs_name_nobody_and_tell_no_secret(service, caplog):
    """A whole life, logged as by a running service."""
    caplog.set_level(logging.INFO)
    log_to_stderr()
    key = service.key()
    client = service.client(key)
    rows = [dict(row, keyname=f"secret-key-{row['keyname']}") for row in keystrokes_of(0, 9)]
    enrol(client, "secret-name", 0)
    token = client.post("/v1/users/secret-name/token", json={"purpose": "verify"}).json()["token"]
    sent = {"keystrokes": keystrokes_of(0, 6)}
    http_post(
        f"{service.url}/v1/users/secret-name/verify", json=sent, headers={"authorization": f"Bearer {token}"}
    )
    client.post("/v1/users/secret-name/verify", json={"keystrokes": rows})
    client.post("/v1/users/secret-name/verify", json={"keystrokes": [{"keyname": "secret-key", "x": 1}]})
    client.post("/v1/identify", json={"keystrokes": keystrokes_of(0, 7)})
    client.get("/v1/users/secret-name/export")
    client.get("/v1/users?cursor=secret-cursor")
    hook = {"url": "https://example.org/secret-path", "events": ["session.locked"]}
    secret = client.post("/v1/webhooks", json=hook).json()["secret"]
    address = f"{service.url.replace('http', 'ws')}/v1/users/secret-name/watch"
    with connect(address, additional_headers={"authorization": f"Bearer {key}"}) as talk:
        talk.send(json.dumps({"type": "hello", "session": None}))
        session = json.loads(talk.recv(120))["session"]
        frame = [[row["keyname"], row["timepress"], row["timerelease"]] for row in keystrokes_of(0, 8)]
        talk.send(json.dumps({"type": "keys", "first": 1, "keys": frame}))
        assert json.loads(talk.recv(120))["type"] == "trust"
        talk.send("secret-frame")
        talk.recv(120)
    client.delete("/v1/users/secret-name")
    text = "\n".join(f"{record.getMessage()} {record.exc_text or ''}" for record in caplog.records)
    assert text.count("request ") >= 14
    times = {str(row[name]) for row in keystrokes_of(0, 6) for name in ("timepress", "timerelease")}
    for hidden in ("secret-", key, key.split("_", 2)[2], token, secret, *(t for t in times if len(t) > 6)):
        assert hidden not in text, hidden
    assert session


def behind_the_gate(application):
    """The messages that a gate sends for an application, until it raises, and the outcome that it logs."""
    sent, scope = (
        [],
        {"type": "http", "method": "GET", "path": "/v1/users", "headers": [(b"host", b"localhost")]},
    )

    async def send(message):
        sent.append(message)

    gate = Gate(application, Deployment(database="none"), Metrics())
    try:
        asyncio.run(gate(scope, None, send))
    except RuntimeError as error:
        sent.append(error)
    return sent


def test_a_bug_before_the_answer_is_answered_and_one_within_it_ends_it(caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    # Each request takes two seconds.
    clock = SimpleNamespace(perf_counter=partial(next, count(0.0, 2.0)))
    monkeypatch.setattr("keydyn.service.http.gate.time", clock)
    bug = RuntimeError("not said")

    async def before(scope, receive, send):
        scope["state"]["tenant_id"] = "the-shop"
        raise bug

    async def within(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise bug

    start, body = behind_the_gate(before)
    assert start["status"] == 500
    assert json.loads(body["body"])["type"] == "urn:keydyn:problem:internal"
    start, error = behind_the_gate(within)
    assert (start["status"], error) == (200, bug)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    ends = [line.partition("status=")[2].split() for line in said]
    assert ends == [["500", "ms=2000.0", "tenant=the-shop"], ["200", "ms=2000.0", "tenant=-"]]


async def through(gate, path="/v1/users", method="GET", kind="http", **headers):
    """The first message that a gate sends for a request, and the headers in it."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": f"{kind}.connect"}

    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await gate({"type": kind, "method": method, "path": path, "headers": lines}, receive, send)
    return sent[0], dict(sent[0].get("headers", []))


async def answering(scope, receive, send):
    """An application that says in a header that it was asked."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"asked", b"yes")]})


def a_gate(application=answering, **settings):
    return Gate(application, Deployment(database="none", **settings), Metrics())


def test_a_number_of_requests_is_let_through_at_once_and_more_when_they_have_been_answered():
    async def ask():
        go = asyncio.Event()

        async def slow(scope, receive, send):
            if scope["path"] != "/healthz":
                await go.wait()
            await answering(scope, receive, send)

        gate = a_gate(slow, concurrent=2)
        waiting = [asyncio.ensure_future(through(gate, host="localhost")) for _ in range(8)]
        await asyncio.sleep(0)
        refused, headers = await through(gate, host="localhost")
        assert (refused["status"], headers[b"retry-after"]) == (503, b"1")
        assert headers[b"content-type"] == b"application/problem+json"
        health, _ = await through(gate, "/healthz", host="localhost")
        assert health["status"] == 200
        assert gate.metrics.registry.get_sample_value("keydyn_running_requests") == 9.0
        go.set()
        assert {(await each)[0]["status"] for each in waiting} == {200}
        assert (await through(gate, host="localhost"))[0]["status"] == 200

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Shop.Example:8000", "shop.example"),
        ("shop.example", "shop.example"),
        ("[::1]:8000", "::1"),
        ("[::1]", "::1"),
        ("", ""),
    ],
)
def test_the_name_of_a_host_has_no_port(host, name):
    assert host_name(host) == name


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:80", "Shop.example:8", "inner.example"])
def test_the_service_is_known_by_its_address_and_by_the_names_in_the_settings(host):
    gate = a_gate(host="Inner.Example", names=("shop.Example",))
    assert asyncio.run(through(gate, host=host))[0]["status"] == 200
    for other in (f"x{host}", f"{host}x"):
        assert asyncio.run(through(gate, host=other))[0]["status"] == 421
        closed, _ = asyncio.run(through(gate, kind="websocket", host=other))
        assert closed == {"type": "websocket.close", "code": 4403}


def test_a_path_does_not_end_with_a_line_break():
    assert asyncio.run(through(a_gate(), "/v1/users\n", host="localhost"))[0]["status"] == 404


@pytest.mark.parametrize(
    ("given", "is_kept"), [("x" * 8, True), ("x" * 64, True), ("x" * 7, False), ("x" * 65, False)]
)
def test_ids_of_requests_have_a_usual_length(given, is_kept):
    _, headers = asyncio.run(through(a_gate(), host="localhost", x_request_id=given))
    assert (headers[b"x-request-id"] == given.encode()) is is_kept


@pytest.mark.parametrize(("status", "is_closed"), [(408, True), (413, True), (422, False)])
def test_a_connection_is_closed_when_the_rest_of_its_request_is_unread(status, is_closed):
    async def refusing(scope, receive, send):
        raise Problem(status, "refused", "Refused", retry_after=7)

    start, headers = asyncio.run(through(a_gate(refusing), host="localhost"))
    assert (start["status"], headers[b"retry-after"]) == (status, b"7")
    assert (headers.get(b"connection") == b"close") is is_closed


@pytest.mark.parametrize(
    ("path", "method", "asks", "status", "is_open"),
    [
        ("/v1/users/ada/verify", "OPTIONS", True, 204, True),
        ("/v1/users/ada/samples", "POST", True, 200, True),
        ("/v1/users/ada/samples", "OPTIONS", False, 200, True),
        ("/v1/users/ada", "OPTIONS", True, 200, False),
        ("/v1/users/ada/verify/x", "OPTIONS", True, 200, False),
    ],
)
def test_pages_of_other_origins_may_ask_for_what_takes_tokens(path, method, asks, status, is_open):
    asked = {"access_control_request_method": "POST"} if asks else {}
    start, headers = asyncio.run(through(a_gate(), path, method, host="localhost", **asked))
    assert start["status"] == status
    assert (b"asked" in headers) is (status == 200)
    assert (headers.get(b"access-control-allow-origin") == b"*") is is_open
    resources = b"cross-origin" if is_open else b"same-origin"
    assert headers[b"cross-origin-resource-policy"] == resources


def test_a_bug_in_a_watched_session_is_one_line_in_the_log(caplog):
    async def buggy(scope, receive, send):
        raise RuntimeError("not said")

    gate = a_gate(buggy)
    scope = {
        "type": "websocket",
        "path": "/",
        "headers": [(b"host", b"localhost"), (b"x-request-id", b"the-bad-one")],
    }
    asyncio.run(gate(scope, None, None))
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("request the-bad-one: RuntimeError at ")
    assert line.split()[-1].startswith("test_gate.py:")
    assert "not said" not in line
