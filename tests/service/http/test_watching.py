"""Watched sessions through the whole service: tokens, locks, unlocking, webhooks."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pandas as pd
import pytest
from sqlalchemy import insert, select, update
from websockets.exceptions import ConnectionClosed

from keydyn.decisions import Verifier
from keydyn.service import accounts
from keydyn.service.http.access import Door
from keydyn.service.http.counted_notes import CountedNotes
from keydyn.service.http.limits import Rates
from keydyn.service.http.watch_admission import Admission, session_for_token
from keydyn.service.jobs import queue, webhooks
from keydyn.service.jobs.queue import waiting
from keydyn.service.live.session_rows import SessionEvent, lock_id
from keydyn.service.people import registry
from keydyn.service.people.recognition import attempts, enrolment
from keydyn.service.people.rows import new_profile
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import decisions, watch_sessions
from keydyn.service.tokens import TokenClaims
from keydyn.service.wire.both_ways import Text
from keydyn.service.wire.requests import TokenBody
from keydyn.service.wire.watch_frames import Hello
from tests.service.people.conftest import context, logged, person_of, typed_by, write
from tests.service.running import KEYS, connect
from tests.service.typists import enrol, frame_of, keystrokes_of
from tests.waiting import PATIENCE

__all__ = ["context", "write"]
SESSION = "5" * 32


def token_of(client, purpose, **more):
    answer = client.post("/v1/users/ada/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def address(service, user="ada"):
    return f"{service.url.replace('http', 'ws')}/v1/users/{user}/watch"


def said(socket, **frame):
    socket.send(json.dumps(frame))
    return heard(socket)


def heard(socket):
    return json.loads(socket.recv(timeout=PATIENCE))


def closing_code(socket):
    """The code with which the service closes the connection, after any number of frames."""
    try:
        while True:
            socket.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code


def keys_of(user, session):
    return [[row["keyname"], row["timepress"], row["timerelease"]] for row in keystrokes_of(user, session)]


def enrolled(client):
    enrol(client, "ada", 0)
    verifier = Verifier.shipped()
    verifier.enrol("ada", pd.concat([frame_of(0, session) for session in range(5)]))
    return verifier


def test_a_browser_watches_with_a_token_and_goes_on_where_it_was(service, client):
    verifier = enrolled(client)
    token = token_of(service.page(), "watch")
    keys = keys_of(0, 6)
    with connect(address(service), origin=service.url) as socket:
        welcome = said(socket, type="hello", token=token["token"])
        assert (welcome["type"], welcome["session"], welcome["durable"]) == ("welcome", token["session"], 0)
        first = said(socket, type="keys", first=1, keys=keys[:30])
    with connect(address(service)) as socket:
        again = said(socket, type="hello", token=token["token"])
        assert again["session"] == token["session"]
        durable = again["durable"]
        rest = said(socket, type="keys", first=durable + 1, keys=keys[durable:])
    expected = verifier.watch("ada").update(frame_of(0, 6))
    assert first["trust"] == pytest.approx(expected.trust[:30].tolist(), abs=1e-9)
    assert rest["trust"] == pytest.approx(expected.trust[durable:].tolist(), abs=1e-9)


def test_what_is_no_token_to_watch_is_refused(service, client):
    enrolled(client)
    enrol(client, "bob", 1)
    right = token_of(client, "watch")["token"]
    cases = [
        (address(service), token_of(client, "verify")["token"], {}, 4403),
        (address(service, "bob"), right, {}, 4403),
        (address(service), right, {"origin": "https://evil.example"}, 4403),
        (address(service), "kdt_x.y", {}, 4401),
        (address(service), None, {}, 4401),
    ]
    for url, token, more, code in cases:
        with connect(url, **more) as socket:
            socket.send(json.dumps({"type": "hello", "token": token}))
            assert closing_code(socket) == code, (url, code)
    service.clock.now += 600_000
    with connect(address(service)) as socket:
        socket.send(json.dumps({"type": "hello", "token": right}))
        assert closing_code(socket) == 4401


def test_an_impostor_is_locked_out_until_the_session_is_unlocked(service, client):
    enrolled(client)
    webhook = {"url": "https://example.org/hook", "events": ["session.locked"]}
    client.post("/v1/webhooks", json=webhook)
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        said(socket, type="hello", token=token["token"])
        number, locked = 1, False
        for session in [n % 12 for n in range(60)]:
            keys = keys_of(1, session)
            shifted = [[key, press + 1e5 * number, release + 1e5 * number] for key, press, release in keys]
            answer = said(socket, type="keys", first=number, keys=shifted)
            if answer["type"] == "lock":
                locked = True
                break
            number += len(keys)
        assert locked
    with connect(address(service)) as socket:
        assert said(socket, type="hello", token=token["token"])["locked"]
        refused = said(socket, type="unlock", token=token["token"])
        assert refused["type"] == "problem"
        unlock = token_of(client, "unlock", session=token["session"])["token"]
        assert said(socket, type="unlock", token=unlock)["type"] == "unlocked"
    with connect(address(service)) as socket:
        assert not said(socket, type="hello", token=token["token"])["locked"]
    log = [entry["action"] for entry in client.get("/v1/users/ada/export").json()["audit"]]
    assert log.count("session.locked") == log.count("session.unlocked") == 1
    with service.database.reading() as connection:
        assert waiting(connection)["webhook"] == 1


def test_programs_watch_with_an_api_key(service, client):
    enrolled(client)
    headers = {"Authorization": client.headers["authorization"]}
    with connect(address(service), additional_headers=headers) as socket:
        welcome = said(socket, type="hello", text={"kind": "free"})
        assert welcome["type"] == "welcome"
        assert len(said(socket, type="keys", first=1, keys=keys_of(0, 6))["trust"]) == 60
    with connect(address(service, "nobody"), additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "hello"}))
        assert heard(socket)["status"] == 404
    key = service.key(scopes=["verify"])
    with connect(address(service), additional_headers={"Authorization": f"Bearer {key}"}) as socket:
        socket.send(json.dumps({"type": "hello"}))
        assert heard(socket)["status"] == 403


def test_a_session_is_logged_once_when_it_is_opened_however_often_it_is_taken_over(service, client):
    enrol(client, "ada", 0)
    headers = {"Authorization": client.headers["authorization"]}
    session, opened = None, []
    for _ in range(2):
        with connect(address(service), additional_headers=headers) as socket:
            session = said(socket, type="hello", session=session)["session"]
        opened.append(session)
    token = token_of(client, "watch")
    with connect(address(service)) as socket:
        assert said(socket, type="hello", token=token["token"])["session"] == token["session"]
    entries = client.get("/v1/audit", params={"action": "session.opened"}).json()["entries"]
    assert [one["details"]["session"] for one in entries[::-1]] == [opened[0], token["session"]]
    assert opened[0] == opened[1]
    assert client.get("/v1/decisions").json()["periods"][-1]["sessions"] == 2


@pytest.fixture
def watched(context, write):
    """Work for a tenant with ada, who has a watched session and no template."""

    def change(connection):
        profile = new_profile(connection, person_of(context, write), Text("fixed", "pin"), "keyboard", 0)
        row = {"id": SESSION, "profile_id": profile.id, "epoch": 1, "sequence": 9, "background": ""}
        connection.execute(insert(watch_sessions).values(**row, created_at=0, seen_at=0))

    context.database.write(change)
    return write


def admission(context):
    return Admission(context, Door(context, Rates(1e6), CountedNotes(context.database, context.clock)))


def happened(context, write, what, reason=None):
    ada = person_of(context, write)
    event = SessionEvent(what, write.tenant.id, ada.id, SESSION, context.clock(), 7, "key:k", ada.key, reason)
    context.database.write(lambda connection: admission(context).happened(connection, event))


@pytest.mark.parametrize("reason", [None, "copy"])
def test_what_happens_to_a_session_is_noted_and_a_lock_is_a_decision_and_a_failure(context, watched, reason):
    def hook(connection):
        webhooks.create(connection, watched.tenant, "https://example.org/", ["session.locked"], now=0)

    context.database.write(hook)
    happened(context, watched, "unlocked")
    entry = logged(context, watched)[-1]
    assert (entry["action"], entry["actor"], entry["at"]) == ("session.unlocked", "key:k", context.clock())
    assert entry["details"] == {"session": SESSION, "keystroke": 7}
    assert person_of(context, watched).failures == 0
    happened(context, watched, "locked", reason)
    why = {} if reason is None else {"reason": reason}
    details = {"session": SESSION, "keystroke": 7, **why, "decision": lock_id(SESSION, 7)}
    entry = logged(context, watched)[-1]
    assert (entry["action"], entry["details"]) == ("session.locked", details)
    ada = person_of(context, watched)
    assert ada.failures == 1
    with context.database.reading() as connection:
        kept = connection.execute(select(decisions)).one()
    assert (kept.id, kept.kind, kept.user_id, kept.answer) == (lock_id(SESSION, 7), "watch", ada.id, "reject")
    assert (kept.level, kept.judged_level, kept.text, kept.actor) == ("high", "high", "fixed:pin", "key:k")
    lease = context.database.write(lambda c: queue.take(c, "webhook", context.clock()))
    report = lease.opened(KEYS).payload["report"]
    assert (report["type"], report["data"]) == ("session.locked", {"user": "ada", **details})


@pytest.mark.parametrize("purpose", ["enrol", "verify"])
def test_tokens_for_samples_have_no_session(context, watched, purpose):
    body = TokenBody(purpose=purpose, session=SESSION)
    opening = session_for_token(context, watched, "ada", body)
    assert context.database.write(opening) == (None, 0)


def test_a_token_continues_a_session_of_its_person_or_opens_its_lock(context, watched):
    registry.create(context, watched, "bob")

    def opened(name, purpose, session=SESSION):
        body = TokenBody(purpose=purpose, session=session)
        return context.database.write(session_for_token(context, watched, name, body))

    assert opened("ada", "watch") == (SESSION, 0)
    for name, session in (("bob", SESSION), ("ada", "6" * 32)):
        for purpose in ("watch", "unlock"):
            with pytest.raises(Problem) as caught:
                opened(name, purpose, session)
            assert (caught.value.status, caught.value.kind) == (404, "no-such-session")
    with pytest.raises(Problem) as caught:
        opened("ada", "unlock")
    assert caught.value.kind == "not-locked"
    with pytest.raises(Problem) as caught:
        opened("ada", "unlock", None)
    assert (caught.value.status, caught.value.kind) == (422, "invalid-request")
    locked = update(watch_sessions).values(locked_at=5, locks=3)
    context.database.write(lambda connection: connection.execute(locked))
    assert opened("ada", "unlock") == (SESSION, 3)
    assert opened("ada", "watch") == (SESSION, 0)


@pytest.mark.parametrize("must_wait", [False, True])
def test_no_session_is_opened_for_someone_whose_next_attempt_must_wait(context, write, must_wait):
    for session in range(write.tenant.settings.samples_needed):
        enrolment.add_sample(context, write, "ada", typed_by(0, session))
    ada = person_of(context, write)
    for _ in range(attempts.FREE_FAILURES if must_wait else attempts.FREE_FAILURES - 1):
        context.database.write(lambda c: attempts.count_lock(c, write.tenant, ada.id, context.clock()))
    body = TokenBody(purpose="watch")
    key = accounts.new_key(context.database, KEYS, context.clock, "shop", "test", ["watch"])[1]
    headers = {"authorization": f"Bearer {key}"}
    if must_wait:
        for ask in (
            lambda: session_for_token(context, write, "ada", body),
            lambda: admission(context).admit("ada", headers, "192.0.2.1", Hello()),
        ):
            with pytest.raises(Problem) as caught:
                ask()
            assert (caught.value.status, caught.value.kind) == (429, "too-many-attempts")
        # A session that is there goes on.
        hello = Hello(session=SESSION)
        assert admission(context).admit("ada", headers, "192.0.2.1", hello).session_id == SESSION
        return
    session, lock = context.database.write(session_for_token(context, write, "ada", body))
    assert lock == 0
    entry = logged(context, write)[-1]
    assert (entry["action"], entry["details"]) == ("session.opened", {"session": session, "keystroke": 0})
    admitted = admission(context).admit("ada", headers, "192.0.2.1", Hello())
    assert (admitted.user_id, admitted.session_id, admitted.expires_at) == (ada.id, None, None)
    assert (admitted.may_unlock, admitted.coarse) == (True, False)
    assert admitted.actor == f"key:{admitted.key_id}"


@pytest.mark.parametrize(
    ("hello", "user", "status"),
    [
        (Hello(text={"kind": "nonsense"}), "ada", 422),
        (Hello(device="piano"), "ada", 422),
        (Hello(), "a b", 404),
        (Hello(), "nobody", 404),
        (Hello(), "ada", 409),
    ],
)
def test_what_cannot_be_watched_is_refused_with_a_reason(context, write, hello, user, status):
    key = accounts.new_key(context.database, KEYS, context.clock, "shop", "test", ["watch"])[1]
    headers = {"authorization": f"Bearer {key}"}
    with pytest.raises(Problem) as caught:
        admission(context).admit(user, headers, "192.0.2.1", hello)
    assert caught.value.status == status


def test_a_lock_opens_with_a_valid_key_or_a_token_for_this_session(context, watched):
    database, ada = context.database, person_of(context, watched)
    key_id, _ = accounts.new_key(database, KEYS, context.clock, "shop")
    until, bound = context.clock() + 1, ("free", "keyboard", "standard", 0)
    ids = watched.tenant.id, key_id
    right = TokenClaims(*ids, ada.id, "unlock", SESSION, until, "n", *bound, lock=3)
    admitted = SimpleNamespace(user_id=ada.id, key_id=key_id)

    def may(presented, session=SESSION):
        return admission(context).may_unlock(admitted, session, presented)

    assert may(None) is None
    assert may(right.signed(watched.tenant)) == 3
    with pytest.raises(Problem) as caught:
        may(right.signed(watched.tenant), "6" * 32)
    assert caught.value.status == 403
    another = TokenClaims(*ids, "bob", "unlock", SESSION, until, "n", *bound, lock=3)
    with pytest.raises(Problem) as caught:
        may(another.signed(watched.tenant))
    assert caught.value.status == 403
    database.write(lambda connection: accounts.revoke_key(connection, key_id, 0))
    for presented in (None, right.signed(watched.tenant)):
        with pytest.raises(Problem) as caught:
            may(presented)
        assert caught.value.status == 401
