"""Strangers who try often: the cost of failed attempts, which only time restores."""

from __future__ import annotations

import threading
from itertools import cycle

import pytest

from keydyn.service.people.recognition.attempts import WINDOW
from keydyn.service.wall_clock import DAY, SECOND
from keydyn.service.wire.requests import TenantSettings
from tests.service.attacks.conftest import with_ada
from tests.service.running import running
from tests.service.tries import failures_allowed
from tests.service.typists import enrol, keystrokes_of

STRANGERS = [(user, session) for session in range(12) for user in (1, 2, 3)]


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture
def client(service):
    return with_ada(service)


def settle(client, **changes):
    settings = client.get("/v1/settings").json() | changes
    answer = client.put("/v1/settings", json=settings)
    assert answer.status_code == 200, answer.text


def attempt(client, user, session, name="ada", **more):
    body = {"keystrokes": keystrokes_of(user, session), **more}
    return client.post(f"/v1/users/{name}/verify", json=body)


def spend(client, level="standard"):
    """Let strangers try until no attempt is left, each after a second factor of the owner; return levels."""
    levels, tries = [], cycle(STRANGERS)
    while (found := attempt(client, *next(tries), level=level)).status_code == 200:
        assert found.json()["answer"] != "accept"
        levels.append(found.json()["judged_level"])
        assert client.post("/v1/users/ada/second-factor").json()["failed_attempts"] == 0
    return levels, found


def wait_of(client):
    return client.get("/v1/users/ada").json()["wait_s"]


@pytest.mark.parametrize("level", ["standard", "low"])
def test_strangers_have_as_many_tries_as_the_chance_allows_whatever_the_owner_does(service, client, level):
    settings = TenantSettings()
    allowed = failures_allowed(settings, level)
    assert attempt(client, 0, 6).json()["answer"] == "accept"
    levels, refused = spend(client, level)
    assert {name: levels.count(name) for name in set(levels)} == allowed
    # The union bound over the rates at which they were judged.
    assert sum(getattr(settings.levels, name) for name in levels) <= settings.takeover_chance + 1e-9
    assert refused.json()["type"].endswith("attempts-spent")
    assert "another factor" in refused.json()["detail"]
    # The owner has none left either, and neither a success before nor a second factor changes that.
    assert attempt(client, 0, 7).status_code == 429
    client.post("/v1/users/ada/unblock")
    assert attempt(client, 0, 7).status_code == 429
    assert client.get("/v1/standing").json()["blocked"] == 1
    # All was spent on one day, which no longer counts when 30 days have passed since its last moment.
    wait = int(refused.headers["retry-after"])
    assert 30 * DAY < wait * SECOND <= WINDOW * DAY
    assert wait_of(client) == wait
    service.clock.now += (wait - 1) * SECOND
    assert attempt(client, 0, 7).status_code == 429
    service.clock.now += SECOND
    again = attempt(client, 0, 7).json()
    assert (again["answer"], again["judged_level"]) == ("accept", "standard" if level == "low" else level)


def test_successes_of_the_owner_give_nothing_back(client):
    for session in range(6, 9):
        attempt(client, 1, session)
        spent = client.get("/v1/users/ada").json()["takeover_chance_spent"]
        assert attempt(client, 0, session).json()["answer"] == "accept"
        assert client.get("/v1/users/ada").json()["takeover_chance_spent"] == spent > 0


def test_a_second_factor_ends_the_delay_and_a_token_cannot_claim_one(service, client):
    for session in range(5):
        assert attempt(client, 1, session).json()["wait_s"] == (30 if session == 4 else 0)
    assert attempt(client, 0, 6).json()["type"].endswith("too-many-attempts")
    token = client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    assert service.client(token).post("/v1/users/ada/second-factor").status_code == 403
    assert attempt(client, 0, 6).status_code == 429
    assert client.post("/v1/users/ada/second-factor").json()["failed_attempts"] == 0
    # Four at standard and one at high: what is left allows only high.
    found = attempt(client, 0, 6).json()
    assert (found["answer"], found["level"], found["judged_level"]) == ("accept", "standard", "high")
    assert client.get("/v1/users/ada").json()["takeover_chance_spent"] == pytest.approx(0.041)


def test_an_administrator_restores_the_budget_only_explicitly(client):
    for session in range(3):
        attempt(client, 1, session)
    assert client.post("/v1/users/ada/unblock").json()["takeover_chance_spent"] > 0
    restored = client.post("/v1/users/ada/unblock", params={"restore_budget": "true"}).json()
    assert restored["takeover_chance_spent"] == 0
    entries = client.get("/v1/audit", params={"action": "user.unblocked"}).json()["entries"]
    assert [entry["details"] for entry in entries] == [{"budget": True}, {}]


def test_settings_that_allow_no_attempt_are_refused(client):
    settings = client.get("/v1/settings").json() | {"takeover_chance": 0.001}
    settings["levels"] = {"low": 0.05, "standard": 0.01, "high": 0.002}
    refused = client.put("/v1/settings", json=settings)
    assert refused.status_code == 422
    assert "takeover_chance" in refused.json()["detail"]


def test_tries_spread_over_people_are_noticed_and_judged_strictly(client):
    enrol(client, "bob", 1)
    enrol(client, "eve", 2)
    settle(client, takeovers_per_day=0.02)
    client.post("/v1/webhooks", json={"url": "https://example.org/hook", "events": ["attempts.unusual"]})
    levels = [attempt(client, 3, n, name).json()["judged_level"] for n, name in enumerate(("ada", "bob"))]
    assert levels == ["standard", "standard"]

    def told():
        return client.get("/v1/audit", params={"action": "attempts.unusual"}).json()["entries"]

    assert told() == []
    # The third makes it unusual; after it, everybody is judged strictly.
    assert attempt(client, 3, 2, "eve").json()["judged_level"] == "standard"
    assert len(told()) == 1
    assert [attempt(client, 3, 3, name).json()["judged_level"] for name in ("ada", "bob")] == ["high"] * 2
    assert attempt(client, 0, 6).json()["judged_level"] == "high"
    assert len(told()) == 1
    assert client.get("/v1/standing").json()["jobs"]["webhook"] == 1


def test_another_day_counts_from_nothing_at_a_tenant(service, client):
    enrol(client, "bob", 1)
    settle(client, takeovers_per_day=0.01)
    for session in range(2):
        attempt(client, 3, session)
    assert attempt(client, 1, 6, "bob").json()["judged_level"] == "high"
    service.clock.now += DAY
    assert attempt(client, 1, 7, "bob").json()["judged_level"] == "standard"


def test_tries_at_the_same_time_are_all_counted(database_url):
    """On both databases: as many outcomes as the budget has room for."""
    with running(database_url) as service:
        client = service.client()
        enrol(client, "ada", 0)
        settle(client, takeover_chance=0.003)
        found = []

        def send(user, session):
            found.append(attempt(client, user, session))

        threads = [threading.Thread(target=send, args=each) for each in STRANGERS[:8]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(one.status_code for one in found) == [200] * 3 + [429] * 5
        assert {one.json()["judged_level"] for one in found if one.status_code == 200} == {"high"}
        assert client.get("/v1/users/ada").json()["takeover_chance_spent"] == 0.003
