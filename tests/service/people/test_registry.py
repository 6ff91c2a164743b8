"""People: create, list, read, reset, export, erase; and writes that are sent again."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import select, text

from keydyn.service.storage.tables import metadata
from tests.service.typists import enrol, keystrokes_of


def test_pages_hold_everybody_once_however_they_are_cut(service, client):
    for n in range(7):
        # Some at the same time.
        service.clock.now += n % 2
        assert client.post("/v1/users", json={"id": f"user-{n}"}).status_code == 201
    whole = [one["id"] for one in client.get("/v1/users").json()["users"]]
    assert sorted(whole) == [f"user-{n}" for n in range(7)]
    for limit in (1, 2, 3, 7):
        found, cursor = [], None
        while True:
            query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = client.get("/v1/users", params=query).json()
            found += [one["id"] for one in page["users"]]
            cursor = page["next"]
            if cursor is None:
                break
            assert len(page["users"]) == limit
        assert found == whole
    for wrong in ("x", "AAAA", "W10=", "bnVsbA=="):
        assert client.get("/v1/users", params={"cursor": wrong}).status_code == 400


def test_an_id_may_be_given_or_is_random(client):
    given = client.post("/v1/users", json={"id": "ada@example.org"}).json()["id"]
    assert given == "ada@example.org"
    assert client.get(f"/v1/users/{given}").status_code == 200
    assert client.post("/v1/users", json={"id": given}).status_code == 409
    one, two = (client.post("/v1/users", json={}).json()["id"] for _ in range(2))
    assert one != two
    for wrong in ("", "a/b", "a b", "-a", "x" * 129, "\x00", 5):
        assert client.post("/v1/users", json={"id": wrong}).status_code == 422


def test_a_write_sent_again_has_the_same_answer_and_one_effect(client):
    enrol(client, "ada", 0, samples=4)
    requests = [
        ("POST", "/v1/users", {"id": "bob"}),
        ("POST", "/v1/users/ada/samples", {"keystrokes": keystrokes_of(0, 4)}),
        ("POST", "/v1/users/ada/verify", {"keystrokes": keystrokes_of(0, 6)}),
        ("POST", "/v1/users/ada/token", {"purpose": "verify"}),
        ("PUT", "/v1/settings", {"samples_needed": 4}),
        ("POST", "/v1/webhooks", {"url": "https://example.org/", "events": ["session.locked"]}),
        ("POST", "/v1/users/ada/reset", None),
        ("DELETE", "/v1/users/ada", None),
    ]
    for n, (method, path, body) in enumerate(requests):
        headers = {"idempotency-key": f"write-{n}"}
        first, again = (client.request(method, path, json=body, headers=headers) for _ in range(2))
        assert first.status_code == again.status_code < 300, first.text
        assert first.json() == again.json()
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true"
    assert len(client.get("/v1/webhooks").json()["webhooks"]) == 1
    other = client.post("/v1/users", json={"id": "eve"}, headers={"idempotency-key": "write-0"})
    assert other.json()["type"].endswith("idempotency-key-reused")
    for wrong in ("", "x" * 129, "caf\xe9".encode("latin-1")):
        refused = client.post("/v1/users", json={"id": "eve"}, headers={"idempotency-key": wrong})
        assert refused.status_code == 400


def test_the_same_write_from_many_threads_has_one_effect(service, client):
    client.post("/v1/users", json={"id": "ada"})
    body, found = {"keystrokes": keystrokes_of(0, 0)}, []

    def send():
        headers = {"idempotency-key": "one"}
        found.append(client.post("/v1/users/ada/samples", json=body, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in found} == {201}
    assert len({answer.json()["sample"] for answer in found}) == 1
    assert client.get("/v1/users/ada").json()["profiles"][0]["samples"] == 1


def test_samples_from_many_threads_are_all_counted(client):
    client.post("/v1/users", json={"id": "ada"})
    found = []

    def send(session):
        found.append(client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, session)}))

    threads = [threading.Thread(target=send, args=(session,)) for session in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [answer for answer in found if answer.status_code == 201]
    # A request that was overtaken too often must be sent again.
    assert {answer.status_code for answer in found} <= {201, 409}
    assert client.get("/v1/users/ada").json()["profiles"][0]["samples"] == len(stored)
    assert sorted(answer.json()["profile"]["samples"] for answer in stored) == list(range(1, len(stored) + 1))


def test_attempts_in_parallel_are_all_counted(client):
    enrol(client, "ada", 0)
    found = []

    def send(session):
        body = {"keystrokes": keystrokes_of(1, session)}
        found.append(client.post("/v1/users/ada/verify", json=body).status_code)

    threads = [threading.Thread(target=send, args=(session,)) for session in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Five are free, and the sixth outcome is withheld until the delay is over.
    assert sorted(found) == [200] * 5 + [429] * 7


def test_an_export_holds_everything_and_nobody_else(client):
    enrol(client, "ada", 0)
    enrol(client, "bob", 1)
    client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 6)})
    client.post("/v1/users/ada/token", json={"purpose": "watch"})
    found = client.get("/v1/users/ada/export").json()
    profile = found["profiles"][0]
    sent = keystrokes_of(0, 2)
    stored = profile["samples"][2]
    assert [row["keyname"] for row in stored] == [row["keyname"] for row in sent]
    first = sent[0]["timepress"]
    assert [row["timepress"] for row in stored] == pytest.approx([row["timepress"] - first for row in sent])
    assert len(profile["samples"]) == 5
    assert len(profile["fingerprints"]) == 6
    assert bytes.fromhex(profile["template"])
    assert len(profile["watch_sessions"]) == 1
    assert {entry["action"] for entry in found["audit"]} == {
        "user.created", "enrolment.complete",
        "sample.stored", "verified", "token.made",
        "session.opened",
    }  # fmt: skip
    assert "bob" not in client.get("/v1/users/ada/export").text


def test_nothing_is_left_of_a_person_who_was_erased(service, client):
    empty = {table.name: _count(service, table) for table in metadata.sorted_tables}
    enrol(client, "yvonne", 0)
    headers = {"idempotency-key": "mine"}
    client.post("/v1/users/yvonne/verify", json={"keystrokes": keystrokes_of(0, 6)}, headers=headers)
    client.post("/v1/users/yvonne/token", json={"purpose": "watch"})
    with service.database.reading() as connection:
        user_id, wrapped = connection.execute(text("SELECT id, wrapped_key FROM users")).one()
    # No job reads from the database's log.
    service.idle()
    done = {"erased": True, "population": "unchanged", "pending": []}
    assert client.delete("/v1/users/yvonne").json() == done
    assert client.get("/v1/users/yvonne").status_code == 404
    kept = {"audit", "tenants", "api_keys", "jobs"}
    for table in metadata.sorted_tables:
        if table.name not in kept:
            assert _count(service, table) == empty[table.name], table.name
    # Not in the file either: neither the name, nor the key, nor anything that refers to the person.
    path = service.database.url.database
    contents = b"".join(Path(path + end).read_bytes() for end in ("", "-wal"))
    for trace in (user_id.encode(), wrapped, b"yvonne"):
        assert trace not in contents
    with service.database.reading() as connection:
        entries = connection.execute(select(metadata.tables["audit"])).all()
    assert all(user_id not in str(entry) and "yvonne" not in str(entry) for entry in entries)


def test_after_a_reset_copies_of_earlier_samples_are_still_refused(client):
    enrol(client, "ada", 0)
    after = client.post("/v1/users/ada/reset").json()["profiles"][0]
    assert (after["samples"], after["complete"], after["template_at"]) == (0, False, None)
    again = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 1)})
    assert "copy" in again.json()["detail"]
    for session in range(6, 11):
        fresh = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, session)})
        assert fresh.status_code == 201
    judged = client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 11)})
    assert judged.json()["answer"] == "accept"


def test_no_more_fingerprints_are_kept_than_are_compared(service, client, monkeypatch):
    monkeypatch.setattr("keydyn.decisions.liveness.copies.MOST_SAMPLES", 3)
    enrol(client, "ada", 0)
    enrol(client, "bob", 1, samples=2)
    with service.database.reading() as connection:
        kept = connection.execute(
            text("SELECT name, count(*) FROM fingerprints JOIN profiles ON profiles.id = profile_id "
                 "JOIN users ON users.id = user_id GROUP BY name ORDER BY name")
        ).all()  # fmt: skip
    assert [tuple(row) for row in kept] == [("ada", 3), ("bob", 2)]
    latest = client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 4), "add": True})
    assert "copy" in latest.json()["detail"]


def _count(service, table):
    with service.database.reading() as connection:
        return len(connection.execute(select(table)).all())
