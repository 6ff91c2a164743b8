"""Bodies with many errors: checking stops at the first, and each body counts against a rate."""

from __future__ import annotations

import json

import pytest

from keydyn.service.http import routing
from tests.service.attacks.conftest import serving
from tests.service.running import http_post
from tests.service.typists import enrol

JSON = {"content-type": "application/json"}


@pytest.fixture
def parsed(monkeypatch):
    """The sizes of the bodies that were parsed."""
    seen, decoded = [], routing.decoded

    def noted(kind, contents):
        seen.append(len(contents))
        return decoded(kind, contents)

    monkeypatch.setattr(routing, "decoded", noted)
    return seen


def test_a_body_of_unknown_fields_is_not_parsed_without_a_key(attacked, parsed):
    """Two megabytes of them, to the one route that takes a body without a key."""
    body = json.dumps({f"f{n}": 1 for n in range(150_000)}).encode()
    answer = http_post(f"{attacked.url}/v1/session", content=body, headers=JSON | {"origin": attacked.url})
    assert answer.status_code == 413
    assert parsed == []


def test_only_the_first_of_many_errors_is_found(attacked):
    """With a browser's token, 5,000 rows of 50 unknown fields."""
    client = attacked.client()
    enrol(client, "ada", 0)
    token = client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    rows = [{f"x{n}": 1 for n in range(50)}] * 5000
    body = json.dumps({"keystrokes": rows}, separators=(",", ":")).encode()
    # What follows the first error is not even looked at: it is no JSON.
    for content in (body, body[: len(body) // 2]):
        headers = JSON | {"authorization": f"Bearer {token}"}
        answer = http_post(f"{attacked.url}/v1/users/ada/verify", content=content, headers=headers)
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/body/keystrokes/0/x0"]


# One request per caller, so that none is added meanwhile, however slow the machine.
@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A service that allows each caller one request."""
    with serving(tmp_path_factory, requests_per_second=0.01) as found:
        yield found


@pytest.mark.parametrize(
    ("what", "first"),
    [
        ({"content": b'{"x": 1}', "headers": JSON}, 422),
        ({"content": b"{" * 100_000, "headers": JSON}, 413),
        ({"content": b"{", "headers": JSON}, 400),
        ({"json": {"id": "ada"}}, 201),
    ],
)
def test_what_is_wrong_counts_like_what_is_right(slow, what, first):
    client = slow.client()
    answers = [client.post("/v1/users", **what).status_code for _ in range(4)]
    assert answers == [first, 429, 429, 429]


def test_what_is_not_allowed_counts(slow):
    client = slow.client(slow.key(scopes=["watch"]))
    answers = [client.post("/v1/users", json={"id": "eve"}).status_code for _ in range(4)]
    assert answers == [403, 429, 429, 429]


def test_wrong_bodies_without_a_key_count_for_their_address(slow):
    """Bodies that make no sense, and then those of other kinds of callers without a key."""
    place, headers = f"{slow.url}/v1/session", JSON | {"origin": slow.url}
    answers = [http_post(place, content=b'{"x": 1}', headers=headers).status_code for _ in range(4)]
    assert answers == [422, 429, 429, 429]
    assert http_post(f"{slow.url}/v1/users", json={}).status_code == 429
