"""Attacks leave traces in the audit log, and cannot fill it."""

from __future__ import annotations

from itertools import count

import pytest

from tests.service.running import http_get, http_post
from tests.service.typists import enrol, keystrokes_of

NAMES = (f"audited-{n}" for n in count())
MINUTE = 60_000


@pytest.fixture
def client(attacked):
    """A client of a new tenant, with all scopes."""
    return attacked.client(attacked.key(next(NAMES)))


def logged(service, client, action):
    """The entries of one action, the oldest first, after all counts have been written."""
    service.app.state.notes.flush(everything=True)
    # Changes are stored in their order.
    service.database.write(lambda connection: None)
    return client.get("/v1/audit", params={"action": action, "limit": 200}).json()["entries"][::-1]


def refusals(service, client):
    return [
        (one["details"]["kind"], one["details"]["count"])
        for one in logged(service, client, "request.refused")
    ]


def test_a_wrong_secret_is_noted_at_the_tenant_whose_key_it_names(attacked, client):
    key_id = client.headers["authorization"].split("_")[1]
    headers = {"authorization": f"Bearer kdk_{key_id}_{'A' * 43}"}
    assert http_get(f"{attacked.url}/v1/users", headers=headers).status_code == 401
    (entry,) = logged(attacked, client, "request.refused")
    assert entry["actor"] == f"key:{key_id}"
    assert entry["details"] == {"kind": "not-authenticated", "count": 1}
    assert "A" * 43 not in str(entry)


def test_a_token_and_a_link_that_are_not_valid_are_noted(attacked, client):
    client.post("/v1/users", json={"id": "ada"})
    token = client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    headers = {"authorization": f"Bearer {token[:-5]}AAAAA"}
    assert http_post(f"{attacked.url}/v1/users/ada/verify", json={}, headers=headers).status_code == 401
    key_id = client.headers["authorization"].split("_")[1]
    body = {"key": f"kdk_{key_id}_{'A' * 43}"}
    answer = http_post(f"{attacked.url}/v1/session", json=body, headers={"origin": attacked.url})
    assert answer.status_code == 401
    found = logged(attacked, client, "request.refused")
    assert [one["actor"] for one in found] == [f"token:{key_id}", f"key:{key_id}"]


def test_a_missing_scope_and_a_wrong_user_are_noted(attacked, client):
    name = client.get("/v1/standing").json()["tenant"]
    poor = attacked.client(attacked.key(name, scopes=["enrol"]))
    assert poor.get("/v1/settings").status_code == 403
    for user in ("ada", "bob"):
        client.post("/v1/users", json={"id": user})
    token = client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    assert attacked.client(token).post("/v1/users/bob/verify", json={}).status_code == 403
    assert refusals(attacked, client) == [("forbidden", 1), ("forbidden", 1)]


def test_throttled_attempts_and_refused_copies_are_noted(attacked, client):
    enrol(client, "ada", 0, samples=4)
    again, last = ({"keystrokes": keystrokes_of(0, session)} for session in (0, 4))
    assert client.post("/v1/users/ada/samples", json=again).status_code == 422
    assert client.post("/v1/users/ada/samples", json=last).status_code == 201
    other = [{"keystrokes": keystrokes_of(1, session)} for session in range(6)]
    answers = [client.post("/v1/users/ada/verify", json=body).status_code for body in other]
    assert answers[-1] == 429
    found = refusals(attacked, client)
    assert found[0] == ("not-typing", 1)
    assert {kind for kind, _ in found[1:]} == {"too-many-attempts"}


def test_refusals_cannot_fill_the_log(attacked, client):
    """However many there are, one entry at once, and one for each minute after that."""
    key_id = client.headers["authorization"].split("_")[1]
    headers = {"authorization": f"Bearer kdk_{key_id}_{'A' * 43}"}

    def attack(times):
        for _ in range(times):
            assert http_get(f"{attacked.url}/v1/users", headers=headers).status_code == 401

    attack(30)
    attacked.clock.now += MINUTE
    attack(30)
    attacked.clock.now += MINUTE
    assert refusals(attacked, client) == [("not-authenticated", n) for n in (1, 30, 29)]


def test_a_key_that_nobody_has_is_noted_nowhere(attacked, client):
    before = client.get("/v1/audit").json()["entries"]
    headers = {"authorization": f"Bearer kdk_{'0' * 16}_{'A' * 43}"}
    assert http_get(f"{attacked.url}/v1/users", headers=headers).status_code == 401
    assert logged(attacked, client, "request.refused") == []
    assert client.get("/v1/audit").json()["entries"] == before


def test_reading_personal_data_is_noted(attacked, client):
    enrol(client, "ada", 0)
    for _ in range(3):
        client.get("/v1/users")
        client.get("/v1/users/ada")
    export = client.get("/v1/users/ada/export").json()
    assert client.get("/v1/users/ada/densities").status_code == 200
    for action in ("people.listed", "person.read"):
        assert [one["details"]["count"] for one in logged(attacked, client, action)] == [1, 2]
    for action in ("person.exported", "densities.read"):
        (entry,) = logged(attacked, client, action)
        assert entry["subject"] == export["audit"][0]["subject"]


def test_settings_and_populations_are_noted_with_their_values(attacked, client):
    settings = client.get("/v1/settings").json()
    changed = settings | {"learn_from_people": True, "levels": settings["levels"] | {"high": 0.002}}
    assert client.put("/v1/settings", json=changed).status_code == 200
    assert client.post("/v1/populations", json={"device": "phone"}).status_code == 202
    (entry,) = logged(attacked, client, "settings.changed")
    assert entry["details"]["changed"] == {
        "learn_from_people": {"from": False, "to": True},
        "levels": {"from": settings["levels"], "to": changed["levels"]},
    }
    (asked,) = logged(attacked, client, "population.asked")
    assert asked["details"] == {"device": "phone", "vocabulary": "keys"}
