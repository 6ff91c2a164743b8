"""Holders of a token cannot choose text, device, level or number, which are the server's choice."""

from __future__ import annotations

import threading

import pytest

from tests.service.attacks.conftest import with_ada
from tests.service.running import running
from tests.service.typists import enrol, keystrokes_of

MINE = {"kind": "fixed", "name": "mine"}


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture
def client(service):
    return with_ada(service)


def browser(service, client, purpose, name="ada", **more):
    """A browser with a token that the program has made."""
    answer = client.post(f"/v1/users/{name}/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return service.client(answer.json()["token"])


def send(browser, what, user, session, name="ada", headers=None, **more):
    body = {"keystrokes": keystrokes_of(user, session), **more}
    return browser.post(f"/v1/users/{name}/{what}", json=body, headers=headers)


def test_a_token_creates_no_profile_of_its_holders_choice(service, client):
    enrolling = browser(service, client, "enrol")
    for more in ({"text": MINE}, {"device": "phone"}, {"text": {"kind": "positions", "name": "pin"}}):
        refused = send(enrolling, "samples", 1, 0, **more)
        assert refused.status_code == 403, more
        assert "free" in refused.json()["detail"]
    profiles = client.get("/v1/users/ada").json()["profiles"]
    assert [profile["text"] for profile in profiles] == [{"kind": "free", "name": None}]


def test_a_token_is_judged_at_the_level_and_for_the_text_of_the_server(service, client):
    verifying = browser(service, client, "verify")
    for more in ({"level": "low"}, {"level": "high"}, {"text": MINE}, {"device": "phone"}):
        assert send(verifying, "verify", 1, 6, **more).status_code == 403, more
    # Refused requests were no attempts, and did not use the token.
    assert client.get("/v1/users/ada").json()["failed_attempts"] == 0
    found = send(verifying, "verify", 0, 6, level="standard", text={"kind": "free"}, device="keyboard")
    assert (found.json()["answer"], found.json()["level"]) == ("accept", "standard")
    strict = browser(service, client, "verify", level="high")
    assert send(strict, "verify", 0, 7).json()["level"] == "high"


def test_a_sample_without_a_text_is_of_the_text_of_the_token(service, client):
    client.post("/v1/users", json={"id": "bob"})
    enrolling = browser(service, client, "enrol", "bob", text=MINE)
    for session in range(5):
        assert send(enrolling, "samples", 1, session, "bob").status_code == 201
    assert send(enrolling, "samples", 1, 5, "bob").json()["type"].endswith("token-used-up")
    (profile,) = client.get("/v1/users/bob").json()["profiles"]
    assert (profile["text"], profile["complete"]) == ({"kind": "fixed", "name": "mine"}, True)
    # A token for the wrong text does not reach this one.
    assert send(browser(service, client, "verify", "bob"), "verify", 1, 6, "bob").status_code == 409
    found = send(browser(service, client, "verify", "bob", text=MINE), "verify", 1, 6, "bob")
    assert found.status_code == 200


@pytest.mark.parametrize(("more", "uses"), [({}, 5), ({"uses": 1}, 1)])
def test_a_token_is_used_up(service, client, more, uses):
    made = client.post("/v1/users/ada/token", json={"purpose": "verify", **more}).json()
    assert made["uses"] == uses
    verifying = service.client(made["token"])
    found = [send(verifying, "verify", 0, 6 + n % 5) for n in range(uses + 1)]
    assert [one.status_code for one in found] == [200] * uses + [403]
    assert found[-1].json()["type"].endswith("token-used-up")


def test_a_token_that_watches_or_unlocks_counts_no_samples(client):
    assert client.post("/v1/users/ada/token", json={"purpose": "watch"}).json()["uses"] is None


def test_what_is_sent_again_is_one_use_and_a_token_never_gets_the_answer_to_a_key(service, client):
    again = {"idempotency-key": "the same"}
    server = send(client, "verify", 0, 6, headers=again).json()
    assert "llr" in server
    verifying = browser(service, client, "verify", uses=1)
    # The same request with the same key of the server's program behind it, but not by the program.
    first = send(verifying, "verify", 0, 6, headers=again)
    assert first.status_code == 200
    assert "llr" not in first.json()
    assert first.json()["id"] != server["id"]
    assert send(verifying, "verify", 0, 7).status_code == 403


def test_uses_at_the_same_time_are_all_counted(database_url):
    with running(database_url) as service:
        client = service.client()
        enrol(client, "ada", 0)
        verifying = browser(service, client, "verify", uses=2)
        found = []

        def run(session):
            found.append(send(verifying, "verify", 1, session).status_code)

        threads = [threading.Thread(target=run, args=(session,)) for session in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [200, 200, 403, 403, 403]
        # Outcomes that were withheld were no attempts.
        assert client.get("/v1/users/ada").json()["failed_attempts"] == 2
