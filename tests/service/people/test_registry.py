"""People: create, list, read, reset, export, erase; and writes that are sent again."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from keydyn.service.jobs import queue
from keydyn.service.people import registry
from keydyn.service.people.recognition import attempts
from keydyn.service.storage import audit
from keydyn.service.storage.tables import members, metadata, populations, tenants
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.answers import Erased
from tests.service.people.conftest import logged, person_of
from tests.service.running import KEYS, STARTED
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


def test_what_is_done_to_people_is_in_the_audit_log(context, write):
    by_key, done = replace(write, actor="key:k"), []
    write = replace(by_key, finish=lambda _, answer, user: done.append((answer.id, user)))
    registry.create(context, write, "bob")
    bob = person_of(context, write, "bob")
    context.clock.now += 5
    registry.unblock(context, write, "bob")
    registry.unblock(context, write, "bob", budget=True)
    registry.unblock(context, write, "bob", action="user.reset", reset=True)
    registry.erase(context, by_key, "bob")
    found = [one for one in logged(context, write) if one["subject"] == audit.pseudonym(bob.key)]
    assert [(one["action"], one["details"]) for one in found] == [
        ("user.created", {}),
        ("user.unblocked", {}),
        ("user.unblocked", {"budget": True}),
        ("user.reset", {}),
        ("user.erased", {}),
    ]
    assert {one["actor"] for one in found} == {"key:k"}
    assert [one["at"] for one in found] == [STARTED] + [STARTED + 5] * 4
    assert done == [("bob", bob.id)] * 4


def test_what_attempts_have_cost_is_told_until_it_is_forgotten(context, write):
    ada, failed = person_of(context, write), attempts.Attempt("high", "high", accepted=False)
    for _ in range(attempts.FREE_FAILURES):
        now = context.clock()
        context.database.write(lambda c, now=now: attempts.count_attempt(c, write.tenant, ada, failed, now))
    context.clock.now += 500
    cost = attempts.FREE_FAILURES * write.tenant.settings.levels.high
    found = registry.find_user(context, write.tenant, "ada")
    assert (found.failed_attempts, found.wait_s) == (attempts.FREE_FAILURES, 30)
    assert found.takeover_chance_spent == pytest.approx(cost)
    expires = (STARTED // DAY + attempts.WINDOW) * DAY
    spent = [{"expires_at": expires, "amount": round(cost * attempts.UNIT)}]
    exported = registry.export(context, write.tenant, "ada")
    assert (exported["failed_attempts"], exported["failed_attempts_cost"]) == (attempts.FREE_FAILURES, spent)
    found = registry.unblock(context, write, "ada")
    assert (found.failed_attempts, found.wait_s) == (0, 0)
    assert found.takeover_chance_spent == pytest.approx(cost)
    assert registry.unblock(context, write, "ada", budget=True).takeover_chance_spent == 0.0


def test_an_erased_person_is_dropped_from_memory_and_the_answer_belongs_to_nobody(context, write):
    ada, finished, amended = person_of(context, write), [], []
    for held in (context.people, context.remembered):
        held.put(ada.id, 1, "of ada")
        held.put("other", 1, "of another")
    context.crowds.put(f"{write.tenant.id}/keyboard/free", 1, "all people")
    context.crowds.put("another/keyboard/free", 1, "all people")
    write = replace(write, finish=lambda _, *done: finished.append(done), amend=amended.append)
    done = registry.erase(context, write, "ada")
    assert (done.population, done.pending) == ("unchanged", ())
    assert finished == [(Erased(population="unchanged", pending=("log",)), None)]
    assert amended == [done]
    assert context.people.names() == context.remembered.names() == ["other"]
    assert context.crowds.names() == ["another/keyboard/free"]
    with context.database.reading() as connection:
        one = select(tenants.c.erasures).where(tenants.c.id == write.tenant.id)
        assert connection.execute(one).scalar_one() == 1
        assert queue.waiting(connection) == {"truncate-log": 1}


def test_the_log_is_truncated_later_if_it_cannot_be_now(context, write, monkeypatch):
    monkeypatch.setattr(type(context.database), "truncate_log", lambda _: False)
    amended = []
    done = registry.erase(context, replace(write, amend=amended.append), "ada")
    assert (done.pending, amended) == (("log",), [])


def test_populations_in_use_are_learnt_again_without_a_person_who_is_erased(context, write):
    ada, tenant = person_of(context, write), write.tenant

    def fill(connection):
        for name, replaced_at in (("in use", None), ("earlier", 5)):
            row = {"id": name, "tenant_id": tenant.id, "device": "phone", "vocabulary": name}
            more = {"background": name, "created_at": 1, "learnt_here": True, "contents": b""}
            connection.execute(insert(populations).values(**row, **more, replaced_at=replaced_at))
            connection.execute(insert(members).values(population_id=name, user_id=ada.id))

    context.database.write(fill)
    assert registry.erase(context, write, "ada").population == "being learnt again without them"
    now = context.clock()
    take = lambda connection: queue.take(connection, "learn-population", now)  # noqa: E731
    lease = context.database.write(take)
    assert lease.opened(KEYS).payload == {"device": "phone", "vocabulary": "in use", "without": True}
    assert context.database.write(take) is None


def test_a_page_of_people_says_where_the_next_one_begins(context, write):
    for name in ("Bob_1", "bob%2", "bob3"):
        context.clock.now += 1
        registry.create(context, write, name)
    tenant = write.tenant

    def ids(*args):
        found, after = registry.listed(context, tenant, *args)
        return [one.id for one in found], after

    names, after = ids(2, None)
    assert names == ["ada", "Bob_1"]
    assert after[0] == STARTED + 1
    assert ids(2, after) == (["bob%2", "bob3"], None)
    # What is searched for is a text, not a pattern.
    assert [ids(9, None, search)[0] for search in ("B_", "b%", "OB3", "x")] == [
        ["Bob_1"],
        ["bob%2"],
        ["bob3"],
        [],
    ]
