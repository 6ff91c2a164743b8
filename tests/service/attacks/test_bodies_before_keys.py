"""Bodies of unauthorised callers: they are not read, and endless ones delay no other callers."""

from __future__ import annotations

import asyncio
import json
import selectors
from contextlib import ExitStack

import pytest
from starlette.requests import Request

from keydyn.service.http import routing
from keydyn.service.http.limits import OF_OTHERS, Bodies
from keydyn.service.settings import Deployment
from tests.service.attacks.conftest import serving
from tests.service.raw_http import connected, head, problem_in, raw
from tests.service.running import http_get, http_post
from tests.service.typists import enrol, keystrokes_of

CONCURRENT = 16
SETTINGS = {"concurrent": CONCURRENT}
MOST = 4 * CONCURRENT
VERIFY = "/v1/users/ada/verify"


@pytest.fixture
def reads(monkeypatch):
    """The callers whose bodies the service began to read."""
    seen, read = [], Bodies.read

    async def noted(self, request, caller, most):
        seen.append(caller)
        return await read(self, request, caller, most)

    monkeypatch.setattr(Bodies, "read", noted)
    return seen


def answered(talk):
    """Read the answer on a connection that may stay open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += talk.recv(1 << 16)
    top, _, body = found.partition(b"\r\n\r\n")
    length = int(top.lower().partition(b"content-length: ")[2].split()[0])
    while len(body) < length:
        body += talk.recv(1 << 16)
    return top + b"\r\n\r\n" + body


@pytest.mark.parametrize("key", [None, "kdk_no", "kdk_" + "0" * 16 + "_" + "A" * 43, "kdt_e30." + "A" * 43])
def test_a_body_without_a_valid_key_is_answered_before_it_arrives(attacked, reads, key):
    """Nothing of it is sent, and the answer comes all the same."""
    with connected(attacked) as talk:
        talk.sendall(head(attacked, "Content-Length: 2000000", path=VERIFY, key=key))
        assert problem_in(answered(talk))[0] == 401
    assert reads == []


def test_a_body_without_the_scope_is_answered_before_it_arrives(attacked, reads):
    with connected(attacked) as talk:
        key = attacked.key(scopes=["watch"])
        talk.sendall(head(attacked, "Content-Length: 2000000", path=VERIFY, key=key))
        assert problem_in(answered(talk))[0] == 403
    assert reads == []


def test_a_body_over_the_rate_is_answered_before_it_arrives(tmp_path_factory, reads):
    # So few that none is added meanwhile, however slow the machine.
    with serving(tmp_path_factory, requests_per_second=0.01) as service:
        client = service.client()
        assert client.get("/v1/users").status_code == 200
        key = client.headers["authorization"].split()[1]
        with connected(service) as talk:
            talk.sendall(head(service, "Content-Length: 2000000", path=VERIFY, key=key))
            assert problem_in(answered(talk))[0] == 429
    assert reads == []


def test_the_rest_of_a_refused_body_is_thrown_away_and_the_connection_goes_on(attacked):
    body = b"x" * 300_000
    first = head(attacked, f"Content-Length: {len(body)}", path=VERIFY)
    then = head(attacked, "Connection: close", method="GET", path="/healthz")
    found = raw(attacked, first, body + then)
    assert found.count(b"HTTP/1.1 ") == 2
    assert found.index(b"HTTP/1.1 401") < found.index(b"HTTP/1.1 200")


def test_unfinished_bodies_hold_nobody_up(attacked):
    """Three times as many requests as are answered at once, without a key and with one; none ever ends."""
    client = attacked.client(attacked.key("other"))
    enrol(client, "ada", 0)
    key = attacked.key()
    with ExitStack() as stack:
        for n in range(3 * MOST):
            talk = stack.enter_context(connected(attacked))
            talk.sendall(head(attacked, "Content-Length: 1000", path=VERIFY, key=key if n % 2 else None))
        assert http_get(f"{attacked.url}/healthz").status_code == 200
        found = client.post(VERIFY, json={"keystrokes": keystrokes_of(0, 9)})
        assert found.status_code == 200, found.text


def test_one_browser_has_few_unfinished_bodies(attacked):
    client = attacked.client(attacked.key("shop"))
    enrol(client, "ada", 0)
    token = client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    with ExitStack() as stack:
        waiting = []
        for _ in range(MOST // OF_OTHERS + 1):
            waiting.append(stack.enter_context(connected(attacked)))
            waiting[-1].sendall(head(attacked, "Content-Length: 1000", path=VERIFY, key=token))
        # Which of them is the last to be looked at is not known: one is told to wait.
        refused = next(ready(waiting))
        status, problem = problem_in(answered(refused))
        assert (status, problem["type"]) == (429, "urn:keydyn:problem:too-many-requests")


def ready(talks):
    """The connections on which an answer has arrived."""
    with selectors.DefaultSelector() as selector:
        for talk in talks:
            selector.register(talk, selectors.EVENT_READ)
        while True:
            yield from (one.fileobj for one, _ in selector.select(180))


def test_bodies_that_need_not_be_large_may_not_be(attacked):
    """A link is exchanged without a key: its body has a limit of its own."""
    body = json.dumps({f"field-{n}": n for n in range(100_000)}).encode()
    sent = {"content-type": "application/json", "origin": attacked.url}
    answer = http_post(f"{attacked.url}/v1/session", content=body, headers=sent)
    assert (answer.status_code, answer.json()["limit"]) == (413, routing.SMALL_BODY)


def test_when_too_many_wait_the_oldest_is_given_up():
    """By itself, with an event loop of its own: who waits is then certain."""

    async def attack():
        bodies, never = Bodies(Deployment(database="sqlite:///x.db", concurrent=1)), asyncio.Event()

        async def silent():
            await never.wait()

        async def whole():
            return {"type": "http.request", "body": b"{}", "more_body": False}

        def request(receive):
            return Request({"type": "http", "headers": []}, receive)

        waiting = []
        for n in range(4):
            waiting.append(asyncio.create_task(bodies.read(request(silent), f"peer {n}", 10)))
            await asyncio.sleep(0)
        assert await bodies.read(request(whole), "peer new", 10) == b"{}"
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert done == {waiting[0]}
        assert waiting[0].exception().status == 408
        for task in waiting[1:]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(attack())
