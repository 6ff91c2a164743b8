"""Requests: a write has one effect, even if connections are lost."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from keydyn.client import (
    NotEnrolled,
    NotFound,
    NotTyping,
    ServiceProblem,
    ServiceUnreachable,
    TooManyAttempts,
    UnexpectedAnswerError,
)
from tests.client.conftest import Client, Running
from tests.client.flaky_proxy import ANSWER_CUT, ANSWER_LOST, LOST, PASS, flaky, planned
from tests.waiting import PATIENCE


def refusal(kind: str, status: int, **more: object) -> tuple[int, dict[str, str], str]:
    fields = {
        "type": f"urn:keydyn:problem:{kind}",
        "title": "No",
        "status": status,
        "detail": "not now",
        "instance": "urn:keydyn:request:abcd1234",
        **more,
    }
    headers = {"content-type": "application/problem+json"}
    if "retry_after" in more:
        headers["retry-after"] = str(more["retry_after"])
    return status, headers, json.dumps(fields)


@pytest.mark.parametrize("fates", [*itertools.product((LOST, ANSWER_LOST, ANSWER_CUT), repeat=2), (PASS,)])
def test_a_lost_connection_is_survived_and_the_effect_is_one(fake: Running, fates: tuple[str, ...]) -> None:
    with flaky(fake.port, planned(*fates)) as proxy, Client(proxy.url, "key") as client:
        assert client.create_user("ada").id == "ada"
    assert fake.service.effects == ["ada"]


def test_every_call_has_a_key_of_its_own_and_keeps_it(fake: Running) -> None:
    fake.service.failures = [(503, {}, ""), (503, {}, "")]
    with Client(fake.url, "key") as client:
        client.create_user("ada")
        client.create_user("ben")
    keys = [headers["idempotency-key"] for _, _, headers in fake.service.requests]
    assert keys[0] == keys[1] == keys[2]
    assert keys[3] != keys[0]
    assert fake.service.effects == ["ada", "ben"]


def test_slow_answers_are_not_waited_for_and_the_effect_is_one(fake: Running) -> None:
    fake.service.failures = [3.0]
    with Client(fake.url, "key", timeout_s=1.0, patience_s=PATIENCE) as client:
        assert client.create_user("ada").id == "ada"
    assert fake.service.effects == ["ada"]
    assert len(fake.service.requests) >= 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_service_is_asked_again(fake: Running, status: int) -> None:
    fake.service.failures = [refusal("busy", status), (status, {}, "<html>")]
    with Client(fake.url, "key") as client:
        client.create_user("ada")
    assert fake.service.effects == ["ada"]
    assert len(fake.service.requests) == 3


def test_retry_after_is_respected(fake: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    fake.service.failures = [refusal("busy", 503, retry_after=7)]
    with Client(fake.url, "key") as client:
        client.create_user("ada")
    assert slept == [7.0]


def test_what_would_take_longer_than_the_patience_is_not_waited_for(
    fake: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    fake.service.failures = [refusal("busy", 503, retry_after=31)]
    with Client(fake.url, "key", patience_s=30) as client, pytest.raises(ServiceProblem) as caught:
        client.create_user("ada")
    assert (caught.value.status, caught.value.retry_after) == (503, 31.0)
    assert fake.service.effects == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_other_problems_are_raised_at_once(fake: Running, status: int) -> None:
    fake.service.failures = [refusal("strange", status, limit=3)]
    with Client(fake.url, "key") as client, pytest.raises(ServiceProblem) as caught:
        client.create_user("ada")
    found = caught.value
    assert (found.status, found.kind, found.title, found.detail) == (status, "strange", "No", "not now")
    assert (found.request_id, found.retry_after, found.more) == ("abcd1234", None, {"limit": 3})
    assert len(fake.service.requests) == 1


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("no-such-user", 404, NotFound),
        ("not-enrolled", 409, NotEnrolled),
        ("not-typing", 422, NotTyping),
        ("too-many-attempts", 429, TooManyAttempts),
        ("attempts-spent", 429, TooManyAttempts),
    ],
)
def test_problems_that_callers_expect_have_classes_of_their_own(
    fake: Running, kind: str, status: int, expected: type[ServiceProblem]
) -> None:
    fake.service.failures = [refusal(kind, status, retry_after=1)]
    with Client(fake.url, "key") as client, pytest.raises(expected):
        client.verify("ada", [("a", 0, 90)])
    assert len(fake.service.requests) == 1, "an attempt that was refused is not made again by itself"


def test_an_answer_of_somebody_else_is_a_problem_too(fake: Running) -> None:
    fake.service.failures = [(404, {"x-request-id": "from-the-proxy"}, "<html>nothing here</html>")]
    with Client(fake.url, "key") as client, pytest.raises(NotFound) as caught:
        client.user("ada")
    assert (caught.value.kind, caught.value.title) == ("", "Not Found")
    assert caught.value.request_id == "from-the-proxy"


@pytest.mark.parametrize("answer", ["<html>", "[]", "{}", '{"id": 3}', "null"])
def test_a_success_that_makes_no_sense_is_an_error(fake: Running, answer: str) -> None:
    fake.service.failures = [(200, {}, answer)]
    with Client(fake.url, "key") as client, pytest.raises(UnexpectedAnswerError):
        client.user("ada")


@pytest.mark.usefixtures("passing_time")
def test_a_service_that_is_not_there_is_given_up_in_the_end(fake: Running) -> None:
    with (
        flaky(fake.port, lambda: LOST) as proxy,
        Client(proxy.url, "key") as client,
        pytest.raises(ServiceUnreachable),
    ):
        client.create_user("ada")
    assert proxy.connections > 1
    assert fake.service.effects == []


def test_reading_needs_no_idempotency_key(fake: Running) -> None:
    fake.service.answers["GET", "/v1/webhooks"] = {"webhooks": []}
    with Client(fake.url, "a-key") as client:
        assert client.webhooks() == ()
    ((_, _, headers),) = fake.service.requests
    assert "idempotency-key" not in headers
    assert headers["authorization"] == "Bearer a-key"


def test_redirects_are_not_followed_with_the_key(fake: Running) -> None:
    fake.service.failures = [(307, {"location": "http://127.0.0.1:1/"}, "")]
    with Client(fake.url, "key") as client, pytest.raises(ServiceProblem) as caught:
        client.user("ada")
    assert caught.value.status == 307


@pytest.mark.parametrize(
    "url", ["keydyn.example.com", "ftp://keydyn.example.com", "https://", "https://x/?a=b"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Client(url, "key")


def test_the_key_is_not_sent_unencrypted_to_other_machines() -> None:
    with pytest.raises(ValueError, match="without encryption"):
        Client("http://keydyn.example.com", "key")
    for url in (
        "http://localhost:8421",
        "http://127.0.0.1/",
        "http://[::1]:8421",
        "https://keydyn.example.com",
    ):
        Client(url, "key").close()
    Client("http://keydyn:8421", "key", allow_http=True).close()
