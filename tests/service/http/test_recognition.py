"""Enrol, verify and identify: the numbers are exactly those of `keydyn.decisions`."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.decisions import Targets, Verifier
from keydyn.decisions.decision import as_json
from tests.service.running import running
from tests.service.typists import enrol, frame_of, keystrokes_of


def offline(enrolled, users):
    """A verifier with the same people, enrolled without the service."""
    verifier = Verifier.shipped(Targets(0.01))
    for name, user in users.items():
        verifier.enrol(name, pd.concat([frame_of(user, session) for session in range(enrolled)]))
    return verifier


def verify(client, name, user, session, **body):
    return client.post(f"/v1/users/{name}/verify", json={"keystrokes": keystrokes_of(user, session), **body})


def test_a_decision_is_that_of_the_verifier(service):
    client = service.page()
    enrol(client, "ada", 0)
    verifier = offline(5, {"ada": 0})
    for user, session in ((0, 6), (1, 7)):
        found = verify(client, "ada", user, session)
        assert found.status_code == 200
        expected = as_json(verifier.verify("ada", frame_of(user, session)))
        for name in ("answer", "reasons", "claimed"):
            assert found.json()[name] == expected[name]
        for name in ("llr", "false_match_rate"):
            assert found.json()[name] == pytest.approx(expected[name], rel=1e-6)
        assert found.json()["evidence"]["keystrokes"] == expected["evidence"]["keystrokes"]
        if session == 6:
            # The template followed the sample.
            assert found.json()["updated"]
            verifier.update("ada", frame_of(user, session))


def test_identification_is_that_of_the_verifier_and_may_answer_nobody(service):
    client = service.page()
    people = {"ada": 0, "bob": 1}
    for name, user in people.items():
        enrol(client, name, user)
    verifier = offline(5, people)
    for user, session in ((1, 6), (2, 7)):
        answer = client.post("/v1/identify", json={"keystrokes": keystrokes_of(user, session)})
        expected = verifier.identify(frame_of(user, session))
        found = answer.json()
        assert [one["user"] for one in found["candidates"]] == [one.user for one in expected.candidates]
        assert [one["probability"] for one in found["candidates"]] == pytest.approx(
            [one.probability for one in expected.candidates], rel=1e-6
        )
        assert found["nobody"] == expected.nobody
    assert found["nobody"]


def test_a_copy_of_any_sample_that_was_accepted_is_refused(client):
    enrol(client, "ada", 0)
    again = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 2), "add": True})
    assert again.status_code == 422
    assert "copy" in again.json()["detail"]
    replayed = verify(client, "ada", 0, 2).json()
    assert replayed["answer"] == "reject"
    assert verify(client, "ada", 0, 6).json()["answer"] == "accept"
    assert verify(client, "ada", 0, 6).json()["answer"] == "reject"


def test_an_acknowledged_sample_counts_at_once_on_any_worker(service, client, sqlite_url):
    enrol(client, "ada", 0, samples=4)
    early = verify(client, "ada", 0, 6)
    assert early.status_code == 409
    assert (early.json()["samples"], early.json()["samples_needed"]) == (4, 5)
    with running(sqlite_url) as another:
        other = another.client(client.headers["authorization"].removeprefix("Bearer "))
        sent = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 4)})
        assert sent.json()["profile"]["complete"]
        assert verify(other, "ada", 0, 6).json()["answer"] == "accept"
        # What one worker accepted, the other knows for a copy.
        assert verify(client, "ada", 0, 6).json()["answer"] == "reject"
        assert verify(client, "ada", 0, 7).json()["answer"] == "accept"
        assert verify(other, "ada", 0, 7).json()["answer"] == "reject"


def test_kinds_of_text_are_never_compared(client):
    enrol(client, "ada", 0)
    fixed = {"text": {"kind": "fixed", "name": "login"}}
    assert verify(client, "ada", 0, 6, **fixed).json()["type"].endswith("not-enrolled")
    for session in range(5):
        body = {"keystrokes": keystrokes_of(0, 6 + session), **fixed}
        assert client.post("/v1/users/ada/samples", json=body).status_code == 201
    other = {"text": {"kind": "fixed", "name": "other"}}
    assert verify(client, "ada", 0, 11, **other).status_code == 409
    assert verify(client, "ada", 0, 11, **fixed).status_code == 200
    profiles = client.get("/v1/users/ada").json()["profiles"]
    assert {profile["text"]["kind"] for profile in profiles} == {"free", "fixed"}
    nobody = client.post("/v1/identify", json={"keystrokes": keystrokes_of(0, 11), **other})
    assert nobody.json()["type"].endswith("nobody-enrolled")


def test_phones_are_refused_without_a_population_of_phones(client):
    client.post("/v1/users", json={"id": "ada"})
    body = {"keystrokes": keystrokes_of(0, 0), "device": "phone"}
    found = client.post("/v1/users/ada/samples", json=body)
    assert found.status_code == 422
    assert found.json()["type"].endswith("no-population")
    assert "phones" in found.json()["detail"]


def test_positions_are_collected_and_judged_only_beside_a_population_of_their_own(client):
    client.post("/v1/users", json={"id": "ada"})
    text = {"kind": "positions", "name": "password"}

    def positions(session):
        return [row | {"keyname": str(n)} for n, row in enumerate(keystrokes_of(0, session), 1)]

    named = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 7), "text": text})
    assert named.status_code == 422
    for session in range(5):
        sent = client.post("/v1/users/ada/samples", json={"keystrokes": positions(session), "text": text})
        assert sent.status_code == 201, sent.text
    judged = client.post("/v1/users/ada/verify", json={"keystrokes": positions(6), "text": text})
    assert judged.json()["type"].endswith("no-population")


def test_raw_events_are_paired(service):
    client = service.page()

    def events(session):
        rows = keystrokes_of(0, session)
        presses = [{"type": "keydown", "key": r["keyname"], "time": r["timepress"]} for r in rows]
        releases = [{"type": "keyup", "key": r["keyname"], "time": r["timerelease"]} for r in rows]
        return sorted(presses + releases, key=lambda event: event["time"])

    client.post("/v1/users", json={"id": "ada"})
    for session in range(5):
        answer = client.post("/v1/users/ada/samples", json={"events": events(session)})
        assert answer.status_code == 201, answer.text
    found = client.post("/v1/users/ada/verify", json={"events": events(6)}).json()
    expected = offline(5, {"ada": 0}).verify("ada", frame_of(0, 6))
    assert found["llr"] == pytest.approx(expected.llr, abs=1e-2)


@pytest.mark.parametrize(
    "keystrokes",
    [
        # Pasted, typed by a machine, times that go back, a release before its press, too short.
        [{"keyname": "a", "timepress": 2.0 * n, "timerelease": 2.0 * n + 1} for n in range(60)],
        [{"keyname": "a", "timepress": 150.0 * n, "timerelease": 150.0 * n + 70} for n in range(60)],
        [{"keyname": "a", "timepress": -150.0 * n, "timerelease": None} for n in range(60)],
        [{"keyname": "a", "timepress": 150.0 * n, "timerelease": 150.0 * n - 9} for n in range(60)],
        [{"keyname": "a", "timepress": 150.0 * n, "timerelease": None} for n in range(3)],
        [{"keyname": "a", "timepress": 5.0, "timerelease": 5.0} for n in range(60)],
    ],
)
def test_what_is_no_typing_is_refused_with_a_reason(client, keystrokes):
    client.post("/v1/users", json={"id": "ada"})
    found = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes})
    assert found.status_code == 422
    assert found.json()["detail"]
    assert client.get("/v1/users/ada").json()["profiles"] == []


def test_failures_in_a_row_cost_time_that_grows_and_passes(service, client):
    enrol(client, "ada", 0)
    for attempt in range(5):
        assert verify(client, "ada", 1, attempt).json()["answer"] != "accept"
    for minutes in (0.5, 1.0, 2.0):
        blocked = verify(client, "ada", 0, 6)
        assert blocked.status_code == 429
        assert int(blocked.headers["retry-after"]) == 60 * minutes
        service.clock.now += int(minutes * 60_000)
        assert verify(client, "ada", 1, 6).json()["answer"] != "accept"
    # After a clock was set back, the wait is no longer than the delay.
    service.clock.now -= 10**12
    assert int(verify(client, "ada", 0, 6).headers["retry-after"]) == 240
    service.clock.now += 240_000
    assert verify(client, "ada", 0, 6).json()["answer"] == "accept"
    assert client.get("/v1/users/ada").json()["failed_attempts"] == 0


def test_an_administrator_unblocks(service, client):
    enrol(client, "ada", 0)
    for attempt in range(5):
        verify(client, "ada", 1, attempt)
    assert verify(client, "ada", 0, 6).status_code == 429
    assert client.post("/v1/users/ada/unblock").json()["wait_s"] == 0
    assert verify(client, "ada", 0, 6).json()["answer"] == "accept"


def test_a_template_outlives_its_samples(service, client):
    enrol(client, "ada", 0)
    assert verify(client, "ada", 0, 6).json()["answer"] == "accept"
    from keydyn.service.jobs.periodic import expire

    service.clock.now += 31 * 86_400_000
    assert expire(service.database, service.clock())["samples"] == 5
    more = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 7)})
    assert more.json()["type"].endswith("enrolment-complete")
    # The template is still there, and follows.
    assert verify(client, "ada", 0, 8).json()["answer"] == "accept"


def test_nothing_is_kept_of_samples_where_the_tenant_says_so(service, client):
    settings = client.get("/v1/settings").json() | {"retention_days": 0}
    assert client.put("/v1/settings", json=settings).status_code == 200
    enrol(client, "ada", 0)
    assert verify(client, "ada", 0, 6).json()["answer"] == "accept"
    exported = client.get("/v1/users/ada/export").json()["profiles"][0]
    assert exported["samples"] == []
    assert exported["samples_enrolled"] == 5


def test_a_database_that_is_taken_up_again_has_everything(sqlite_url):
    with running(sqlite_url) as first:
        key = first.key()
        enrol(first.client(key), "ada", 0)
    with running(sqlite_url) as second:
        assert verify(second.client(key), "ada", 0, 6).json()["answer"] == "accept"
