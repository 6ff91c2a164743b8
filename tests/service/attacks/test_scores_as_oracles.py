"""Answers contain the decision, and little about how close it was."""

from __future__ import annotations

import math

import pytest

from keydyn.service.wall_clock import DAY
from keydyn.service.wire.answers import Verdict
from tests.service.attacks.conftest import NAMES
from tests.service.http.test_watching import address, keys_of, said
from tests.service.running import KEYS, connect
from tests.service.typists import enrol, keystrokes_of

NUDGES = 8


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture
def tenant():
    return next(NAMES)


@pytest.fixture
def client(service, tenant):
    """A client of a new tenant, in which ada is enrolled."""
    found = service.client(service.key(tenant))
    enrol(found, "ada", 0)
    return found


def token_of(client, purpose, **more):
    answer = client.post("/v1/users/ada/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def nudged(user, session, key, by):
    """A sample with the hold of one key changed by some milliseconds."""
    rows = keystrokes_of(user, session)
    return [row | {"timerelease": row["timerelease"] + by * (n == key)} for n, row in enumerate(rows)]


def test_a_browser_is_told_the_answer_alone(service, client):
    browser = service.client(token_of(client, "verify")["token"])
    for user, expected in ((0, {"accept"}), (1, {"reject", "unsure"})):
        found = browser.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(user, 6)}).json()
        assert set(found) == set(Verdict.__struct_fields__)
        assert found["answer"] in expected
        numbers = [value for value in found.values() if isinstance(value, float)]
        assert numbers == []


def is_coarse(rate):
    """Whether a rate is 1, 2 or 5 times a power of ten, or 0."""
    return rate == 0 or (f"{rate:.6e}"[0] in "125" and math.isclose(rate, float(f"{rate:.0e}")))


def test_programs_get_scores_no_finer_than_a_decision_needs(client):
    for user, session in ((0, 6), (1, 6), (2, 7)):
        body = {"keystrokes": keystrokes_of(user, session)}
        found = client.post("/v1/users/ada/verify", json=body).json()
        assert (2 * found["llr"]).is_integer()
        assert all(map(is_coarse, [found["false_match_rate"], *found["false_match_rate_interval"]]))
        spoke = [*found["evidence"]["spoke_for"], *found["evidence"]["spoke_against"]]
        assert spoke
        assert all((2 * one["nats"]).is_integer() for one in spoke)


def test_small_changes_of_a_sample_do_not_show_in_scores(service, tenant, client):
    """Where an exact score leads uphill step by step, a rounded one stands still."""
    page = service.page(tenant)
    shown = {}
    for name, asked in (("program", client), ("page", page)):
        samples = [nudged(0, 6, key, 2.0) for key in range(NUDGES)]
        answers = [asked.post("/v1/identify", json={"keystrokes": one}).json() for one in samples]
        shown[name] = [
            (one["candidates"][0]["llr"], one["candidates"][0]["probability"], one["nobody_probability"])
            for one in answers
        ]
    assert len(set(shown["page"])) > NUDGES // 2
    assert len(set(shown["program"])) <= 2
    assert all((2 * llr).is_integer() and (20 * chance).is_integer() for llr, chance, _ in shown["program"])


def test_a_stranger_is_not_told_whom_they_are_most_like(service, tenant, client):
    """The page, which shows how it works, names the person; a program learns that nobody was recognised."""
    body = {"keystrokes": keystrokes_of(1, 6)}
    exact, told = (one.post("/v1/identify", json=body).json() for one in (service.page(tenant), client))
    assert [one["user"] for one in exact["candidates"]] == ["ada"]
    assert (told["nobody"], told["candidates"]) == (True, [])


def test_identification_needs_a_scope_that_keys_do_not_have_by_default(service, tenant, client):
    from keydyn.service import accounts

    _, key = accounts.new_key(service.database, KEYS, service.clock, tenant)
    body = {"keystrokes": keystrokes_of(0, 6)}
    usual = service.client(key)
    assert usual.post("/v1/users/ada/verify", json=body).status_code == 200
    refused = usual.post("/v1/identify", json=body)
    assert refused.status_code == 403
    assert "identify" in refused.json()["detail"]


def test_the_samples_that_a_key_identifies_in_a_day_are_limited(service, tenant, client):
    settings = client.get("/v1/settings").json() | {"identifications_per_day": 2}
    assert client.put("/v1/settings", json=settings).status_code == 200
    body = {"keystrokes": keystrokes_of(1, 6)}
    assert [client.post("/v1/identify", json=body).status_code for _ in range(3)] == [200, 200, 429]
    spent = client.post("/v1/identify", json=body)
    assert spent.json()["type"].endswith("identifications-spent")
    left = int(spent.headers["retry-after"])
    assert left == -(-(DAY - service.clock() % DAY) // 1000)
    other = service.client(service.key(tenant))
    assert other.post("/v1/identify", json=body).status_code == 200
    service.clock.now += 1000 * left
    assert client.post("/v1/identify", json=body).status_code == 200


def test_a_browser_that_watches_is_told_trust_in_coarse_steps(service, client):
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        said(socket, type="hello", token=token["token"], states=True)
        found = [
            said(socket, type="keys", first=n, keys=[key]) for n, key in enumerate(keys_of(0, 6)[:20], 1)
        ]
    for one in found:
        assert one["type"] == "trust"
        assert len(one["trust"]) == 1
        assert one["trust"][0] is None or (10 * one["trust"][0]).is_integer()
        assert (one["suspicion"], one["pausing"]) == ([], None)
        assert "states" not in one
    assert len({one["trust"][0] for one in found}) <= 11


def test_a_session_that_is_locked_counts_as_a_failed_attempt(service, client):
    before = client.get("/v1/users/ada").json()
    assert (before["failed_attempts"], before["takeover_chance_spent"]) == (0, 0.0)
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        said(socket, type="hello", token=token["token"])
        locked = lock(socket)
    after = client.get("/v1/users/ada").json()
    assert (after["failed_attempts"], after["takeover_chance_spent"]) == (1, 0.001)
    record = client.get(f"/v1/decisions/{locked['decision']}").json()
    assert (record["kind"], record["answer"], record["user"]) == ("watch", "reject", "ada")
    # Four more failures, and no new session is opened until the delay is over.
    for session in range(4):
        client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(1, session)})
    refused = client.post("/v1/users/ada/token", json={"purpose": "watch"})
    assert (refused.status_code, int(refused.headers["retry-after"])) == (429, 30)


def lock(socket):
    """Type as another person until the session is locked; return the frame that reports it."""
    number = 1
    for session in [n % 12 for n in range(60)]:
        keys = keys_of(1, session)
        shifted = [[key, press + 1e5 * number, release + 1e5 * number] for key, press, release in keys]
        answer = said(socket, type="keys", first=number, keys=shifted)
        if answer["type"] == "lock":
            return answer
        number += len(keys)
    raise AssertionError("an impostor was never locked out")
