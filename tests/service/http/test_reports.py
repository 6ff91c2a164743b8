"""Reports about a tenant, against the requests made and decisions made without the service."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from sqlalchemy import text

from keydyn.decisions import Targets
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.calibration.error_rates import claims_among, counted_rates
from keydyn.service.people.background import tenant_error_rates
from keydyn.service.people.keystroke_payload import TypedKeys, samples_of
from keydyn.service.storage import audit
from keydyn.service.wire.both_ways import Text
from tests.service.running import STARTED
from tests.service.typists import enrol, keystrokes_of

HOUR, DAY = 3_600_000, 86_400_000
SAMPLE = {"keystrokes": keystrokes_of(0, 9)}
ALLOWED = {"learn_from_people": True}


def test_decisions_are_counted_by_hour_and_by_day(service, client):
    enrol(client, "ada", 0)
    service.clock.now += 2 * HOUR
    answers = []
    for user, session, level in ((0, 6, "low"), (0, 7, "standard"), (1, 6, "standard"), (2, 6, "high")):
        body = {"keystrokes": keystrokes_of(user, session), "level": level}
        answers.append((level, client.post("/v1/users/ada/verify", json=body).json()["answer"]))
    service.clock.now += DAY
    nobody = [
        client.post("/v1/identify", json={"keystrokes": keystrokes_of(user, 8)}).json()["nobody"]
        for user in (0, 1)
    ]
    client.post("/v1/users/ada/token", json={"purpose": "watch"})
    found = client.get("/v1/decisions", params={"by": "hour", "since": STARTED}).json()
    assert found["until"] == STARTED + 27 * HOUR
    assert [one["at"] for one in found["periods"]] == [STARTED + n * HOUR for n in range(27)]
    busy = {n: one for n, one in enumerate(found["periods"]) if total(one)}
    assert sorted(busy) == [0, 2, 26]
    assert (busy[0]["samples"], busy[0]["enrolled"], busy[0]["sessions"]) == (5, 1, 0)
    given = [
        (level, answer)
        for level, counts in busy[2]["verified"].items()
        for answer, number in counts.items()
        for _ in range(number)
    ]
    assert sorted(given) == sorted(answers)
    assert {answer for _, answer in answers} > {"accept"}
    assert (busy[26]["identified"], busy[26]["nobody"], busy[26]["sessions"]) == (2, sum(nobody), 1)
    # By day, from some midnight: the first two together.
    days = client.get("/v1/decisions", params={"since": STARTED - 20 * HOUR, "until": STARTED + 2 * DAY})
    assert [total(one) for one in days.json()["periods"]] == [10, 3, 0]


def total(period):
    verified = sum(sum(counts.values()) for counts in period["verified"].values())
    return verified + sum(
        period[name] for name in ("identified", "sessions", "locked", "samples", "enrolled")
    )


def test_there_are_so_many_periods_and_no_more(client):
    for since, until, status in ((0, 400 * DAY, 200), (0, 400 * DAY + 1, 422), (5, 5, 422), (9, 5, 422)):
        answer = client.get("/v1/decisions", params={"since": since, "until": until})
        assert answer.status_code == status, answer.text


def test_how_things_stand(service, client):
    enrol(client, "ada", 0)
    enrol(client, "bob", 1, samples=2)
    found = client.get("/v1/standing").json()
    assert (found["tenant"], found["people"], found["enrolled"]) == ("default", 2, 1)
    assert found["now"] == STARTED
    client.post("/v1/users/ada/token", json={"purpose": "watch"})
    for _ in range(5):
        wrong = {"keystrokes": keystrokes_of(1, 7)}
        assert client.post("/v1/users/ada/verify", json=wrong).json()["answer"] != "accept"
    now = client.get("/v1/standing").json()
    assert (now["delayed"], now["blocked"], now["watched"], now["locked"]) == (1, 0, 1, 0)
    service.clock.now += HOUR
    assert client.get("/v1/standing").json()["watched"] == 0


def test_users_are_found_by_a_part_of_their_ids(client):
    for name in ("Ada.L", "ada_x", "bob", "bob2"):
        client.post("/v1/users", json={"id": name})

    def found(search):
        answer = client.get("/v1/users", params={"search": search, "limit": 1}).json()
        names = [one["id"] for one in answer["users"]]
        while answer["next"]:
            asked = {"search": search, "limit": 1, "cursor": answer["next"]}
            answer = client.get("/v1/users", params=asked).json()
            names += [one["id"] for one in answer["users"]]
        return sorted(names)

    assert found("ADA") == ["Ada.L", "ada_x"]
    assert found("ob") == ["bob", "bob2"]
    # Signs that mean something to the database mean themselves.
    assert found("a_") == ["ada_x"]
    assert found("%") == []


def test_the_audit_log_is_listed_newest_first_in_pages(client):
    enrol(client, "yvonne", 0)
    client.put("/v1/settings", json={"samples_needed": 3})
    everything = client.get("/v1/audit", params={"limit": 200}).json()
    assert everything["next"] is None
    numbers = [one["number"] for one in everything["entries"]]
    assert numbers == list(range(len(numbers), 0, -1))
    assert everything["entries"][0]["action"] == "settings.changed"
    assert everything["entries"][0]["details"] == {"changed": {"samples_needed": {"from": 5, "to": 3}}}
    assert "yvonne" not in json.dumps(everything)
    for action in (None, "sample.stored"):
        pages, cursor = [], None
        while not pages or cursor:
            asked = {"limit": 2, "cursor": cursor, "action": action}
            answer = client.get("/v1/audit", params={k: v for k, v in asked.items() if v}).json()
            pages.append(answer["entries"])
            cursor = answer["next"]
        listed = [one for page in pages for one in page]
        expected = [one for one in everything["entries"] if action in (None, one["action"])]
        assert listed == expected
        assert all(len(page) == 2 for page in pages[:-1])


def test_each_change_is_in_the_audit_log(client):
    hook = {"url": "https://example.org/", "events": ["session.locked"]}
    changes = {
        "user.created": ("POST", "/v1/users", {"id": "ada"}),
        "settings.changed": ("PUT", "/v1/settings", {"samples_needed": 4}),
        "webhook.created": ("POST", "/v1/webhooks", hook),
        "webhook.deleted": ("DELETE", "/v1/webhooks/{webhook}", None),
        "token.made": ("POST", "/v1/users/ada/token", {"purpose": "verify"}),
        "user.second-factor": ("POST", "/v1/users/ada/second-factor", None),
        "user.unblocked": ("POST", "/v1/users/ada/unblock", None),
        "user.reset": ("POST", "/v1/users/ada/reset", None),
        "user.erased": ("DELETE", "/v1/users/ada", None),
    }
    for method, path, body in changes.values():
        if "{webhook}" in path:
            (webhook,) = client.get("/v1/webhooks").json()["webhooks"]
            path = path.format(webhook=webhook["id"])
        answer = client.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
    entries = client.get("/v1/audit", params={"limit": 50}).json()["entries"]
    found = [entry["action"] for entry in reversed(entries)]
    assert [action for action in found if action in changes] == list(changes)


def test_the_audit_log_of_one_user_is_what_their_export_has(client):
    for name in ("ada", "bob"):
        client.post("/v1/users", json={"id": name})
        client.get(f"/v1/users/{name}/export")
    exported = client.get("/v1/users/ada/export").json()["audit"]
    found = client.get("/v1/audit", params={"user": "ada"}).json()["entries"]
    # The export itself is noted after it was made.
    assert found[1:] == exported[::-1]
    assert [one["action"] for one in found] == ["person.exported", "person.exported", "user.created"]
    made = client.get("/v1/audit", params={"user": "ada", "action": "user.created"}).json()["entries"]
    assert made == found[2:]
    assert client.get("/v1/audit", params={"user": "eve"}).status_code == 404
    assert client.get("/v1/audit", params={"user": "é"}).status_code == 422


@pytest.mark.parametrize("service", [{"checked_entries": 4}], indirect=True)
def test_the_audit_log_is_checked_in_parts(service, client):
    enrol(client, "ada", 0)
    entries = client.get("/v1/audit", params={"limit": 200}).json()["entries"]

    def checked():
        answers, cursor = [], None
        while not answers or cursor:
            asked = {"cursor": cursor} if cursor else {}
            answers.append(client.get("/v1/audit/check", params=asked).json())
            cursor = answers[-1]["next"]
        return answers

    found = checked()
    assert [one["checked"] for one in found] == [4, 8, len(entries)]
    assert all(one["whole"] for one in found)
    assert found[-1]["end"] == entries[0]["hash"]
    # An entry of the second part is changed, by a person who can write to the database.
    for statement in (
        "DROP TRIGGER audit_no_update",
        "UPDATE audit SET actor = 'nobody' WHERE number = 6",
    ):
        service.database.write(lambda connection, sql=statement: connection.execute(text(sql)))
    found = checked()
    assert [one["whole"] for one in found] == [True, False]
    assert found[-1]["checked"] == 5
    assert "entry 6" in found[-1]["problem"]


@pytest.mark.parametrize("service", [{"checked_entries": 2}], indirect=True)
def test_a_check_goes_on_from_what_it_saw(service, client):
    """Hashes that were changed after a part was checked do not fit the hash that the cursor carries."""
    enrol(client, "ada", 0)
    first = client.get("/v1/audit/check").json()
    with service.database.reading() as connection:
        tenant = connection.execute(text("SELECT id FROM tenants")).scalar_one()
        rows = [dict(row) for row in connection.execute(text("SELECT * FROM audit")).mappings()]
    service.database.write(lambda connection: connection.execute(text("DROP TRIGGER audit_no_update")))
    before = b""
    for row in rows:
        # The whole log is written anew with another actor: by itself it is whole.
        row["actor"] = "nobody"
        fields = ("tenant_id", "number", "at", "actor", "action", "subject", "details")
        said = json.dumps([row[name] for name in fields], separators=(",", ":"))
        before = row["hash"] = hashlib.sha256(before + said.encode()).digest()
    update = text("UPDATE audit SET actor = :actor, hash = :hash WHERE number = :number")
    service.database.write(lambda connection: connection.execute(update, rows))
    end = text("UPDATE tenants SET audit_hash = :hash")
    service.database.write(lambda connection: connection.execute(end, {"hash": before}))
    with service.database.reading() as connection:
        assert audit.verify(connection, tenant).problem == ""
    again = client.get("/v1/audit/check", params={"cursor": first["next"]}).json()
    assert not again["whole"]


@pytest.mark.parametrize("cursor", ["x", "W10=", "WzEsIDJd", "WzEsICJ4Il0="])
def test_cursors_of_other_lists_are_refused(client, cursor):
    for route in ("/v1/users", "/v1/audit/check"):
        assert client.get(route, params={"cursor": cursor}).status_code == 400


def test_stated_error_rates_are_those_of_the_calibration(client):
    client.put("/v1/settings", json={"levels": {"low": 0.1, "standard": 0.02, "high": 0.0001}})
    found = client.get("/v1/error-rates").json()
    calibration = shipped_background().calibrations.typical
    assert found["population"] is None
    assert found["people"] == calibration.n_people
    for level, target in (("low", 0.1), ("standard", 0.02)):
        assert found[level]["target_false_match_rate"] == target
        for one in found[level]["rates"]:
            # At the threshold for this share of strangers, that share of genuine samples lies below.
            threshold = calibration.threshold(target, one["keystrokes"])
            assert one["accepted_strangers"]["value"] == pytest.approx(target)
            interval = one["accepted_strangers"]
            assert interval["low"] <= target <= interval["high"]
            assert one["refused_genuine"] == pytest.approx(
                below(calibration, threshold, one["keystrokes"]), rel=1e-9
            )
    rates = [one["refused_genuine"] for one in found["standard"]["rates"]]
    assert rates[0] > rates[-1]
    assert client.get("/v1/error-rates", params={"device": "phone"}).status_code == 422
    assert client.get("/v1/error-rates", params={"positions": "password"}).status_code == 422


def below(calibration, score, keys):
    return float(calibration.false_non_match_rates(np.array([score]), np.array([keys]))[0])


def test_error_rates_are_measured_among_people_if_the_settings_allow_it(client):
    for user, name in enumerate(("ada", "bob", "eve")):
        enrol(client, name, user)
    refused = client.post("/v1/error-rates/measure", json={})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:keydyn:problem:not-allowed")
    # Beside the shipped cohort alone.
    client.put("/v1/settings", json=ALLOWED | {"compare_people": False})
    found = client.post("/v1/error-rates/measure", json={}).json()
    assert (found["people"], found["samples"]) == (3, 15)
    # Computed without the service.
    owners = [str(user) for user in range(3) for _ in range(5)]
    typed = [typed_of(user, session) for user in range(3) for session in range(5)]
    background = shipped_background()
    samples = samples_of(typed, Text(), owners)
    trials = claims_among(background, samples)
    calibration = background.calibrations.at(samples.sequences.n_events // 3)
    for level, target in (("low", 0.05), ("standard", 0.01), ("high", 0.001)):
        expected = counted_rates(trials, calibration, Targets(target))
        assert [one["keystrokes"] for one in found[level]] == [one.keys for one in expected]
        for one, rates in zip(found[level], expected, strict=True):
            assert one["refused_genuine"]["value"] == rates.refused_genuine.value
            assert one["refused_genuine"]["trials"] == 15
            assert one["accepted_strangers"]["value"] == rates.accepted_strangers.value
    entry = client.get("/v1/audit").json()["entries"][0]
    assert (entry["action"], entry["details"]) == ("errors.measured", {"people": 3, "samples": 15})
    fixed = {"text": {"kind": "fixed", "name": "login"}}
    assert client.post("/v1/error-rates/measure", json=fixed).json()["type"].endswith("too-few-people")


def typed_of(user, session):
    rows = keystrokes_of(user, session)
    columns = (tuple(row[name] for row in rows) for name in ("keyname", "timepress", "timerelease"))
    return TypedKeys(*columns).resolved()


def test_one_measurement_at_a_time(client):
    client.put("/v1/settings", json=ALLOWED)
    with tenant_error_rates._MEASURING:
        busy = client.post("/v1/error-rates/measure", json={})
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "5")
