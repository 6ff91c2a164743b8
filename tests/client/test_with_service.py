"""The client and the service together: the same fields, one effect per write, no keystroke lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import func, select

from keydyn.client import Client, NotEnrolled, NotFound, ServiceProblem, Webhook, verify_signature
from keydyn.service.storage.tables import profiles, samples, users
from keydyn.service.wall_clock import wall_clock
from tests.client.flaky_proxy import ANSWER_CUT, ANSWER_LOST, LOST, PASS, flaky
from tests.service.conftest import opened
from tests.service.jobs.receiver import receiving
from tests.service.running import Service, running
from tests.service.typists import frame_of, keystrokes_of
from tests.waiting import PATIENCE

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]
# A busy machine is no reason to send anything again.
PATIENT = {"timeout_s": 120.0, "patience_s": 600.0}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests of this file."""
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'service.db'}"
    for database in opened(url):
        database.close()
    with running(url, wall_clock, private_webhooks=True) as found:
        yield found


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.key(tenant="a"), **PATIENT) as found:
        yield found


def enrol(client: Client, name: str, user: int) -> None:
    client.create_user(name)
    for session in range(5):
        client.enrol(name, frame_of(user, session))


def test_from_nothing_to_a_decision_and_back(client: Client) -> None:
    with pytest.raises(NotFound):
        client.user("ada")
    assert client.create_user("ada").id == "ada"
    with pytest.raises(NotEnrolled):
        client.verify("ada", keystrokes_of(0, 0))
    for session in range(5):
        done = client.enrol("ada", frame_of(0, session))
        assert done.profile.samples == session + 1
    assert done.profile.complete
    decision = client.verify("ada", keystrokes_of(0, 5), level="low")
    assert (decision.claimed, decision.level, decision.accepted) == ("ada", "low", True)
    assert not client.verify("ada", keystrokes_of(1, 5)).accepted
    found = client.identify(keystrokes_of(0, 6), most=1)
    assert [one.user for one in found.candidates] == ["ada"]
    assert [user.id for user in client.users()] == ["ada"]
    token = client.token("ada", "verify")
    assert token.expires_at > client.user("ada").created_at
    assert client.export("ada")
    assert not any(profile.samples for profile in client.reset("ada").profiles)
    assert client.unblock("ada").failed_attempts == 0
    assert client.erase("ada").population == "unchanged"
    assert list(client.users()) == []


def test_everybody_comes_once_however_many_pages_there_are(
    service: Service,
) -> None:
    with Client(service.url, service.key(tenant="many"), **PATIENT) as client:
        names = [client.create_user().id for _ in range(7)]
        # In any order if two were created in one millisecond.
        assert sorted(user.id for user in client.users(per_page=3)) == sorted(names)


def test_settings_are_changed_one_by_one(client: Client) -> None:
    before = client.settings()
    after = client.update_settings(samples_needed=7, levels={"high": 0.0005})
    assert after == structs.replace(
        before, samples_needed=7, levels=structs.replace(before.levels, high=0.0005)
    )
    assert client.settings() == after
    with pytest.raises(ServiceProblem, match="samples_needed"):
        client.update_settings(samples_needed=0)
    client.update_settings(samples_needed=5)


def fates(seed: int) -> Any:
    chance = random.Random(seed)
    return lambda: chance.choice([PASS] * 6 + [LOST, ANSWER_LOST, ANSWER_CUT])


@pytest.mark.parametrize("seed", SEEDS)
def test_over_a_bad_connection_every_write_has_one_effect(service: Service, seed: int) -> None:
    key = service.key(tenant=f"flaky-{seed}")
    port = int(service.url.rpartition(":")[2])
    with flaky(port, fates(seed)) as proxy, Client(proxy.url, key, **PATIENT) as client:
        for number in range(6):
            client.create_user(f"u{seed}-{number}")
        for session in range(5):
            client.enrol(f"u{seed}-0", keystrokes_of(0, session))
        sessions = client.user(f"u{seed}-0").profiles[0].samples
        names = [user.id for user in client.users()]
    assert sorted(names) == [f"u{seed}-{number}" for number in range(6)]
    assert sessions == 5
    with service.database.reading() as connection:
        own = users.c.name.startswith(f"u{seed}-")
        assert connection.execute(select(func.count(users.c.id)).where(own)).scalar() == 6
        stored = (
            select(func.count())
            .select_from(samples.join(profiles).join(users, users.c.id == profiles.c.user_id))
            .where(own)
        )
        assert connection.execute(stored).scalar() == 5


@pytest.mark.parametrize("seed", SEEDS)
def test_over_a_bad_connection_no_keystroke_of_a_session_is_lost(service: Service, seed: int) -> None:
    key = service.key(tenant=f"watching-{seed}")
    port = int(service.url.rpartition(":")[2])
    with Client(service.url, key, **PATIENT) as client:
        # A simulated typist is a program, and would be noticed as such.
        client.update_settings(alarms=0.0)
        enrol(client, "ada", 0)
        rows: list[dict[str, Any]] = []
        for session in range(6, 11):
            later = rows[-1]["timepress"] + 200.0 if rows else 0.0
            for row in keystrokes_of(0, session):
                times = {name: row[name] + later for name in ("timepress", "timerelease")}
                rows.append(row | times)
        with client.watch("ada") as watch:
            expected = watch.send(rows)
        with (
            flaky(port, fates(seed)) as proxy,
            Client(proxy.url, key, **PATIENT) as other,
            other.watch("ada") as again,
        ):
            found = [one for begin in range(0, len(rows), 7) for one in again.send(rows[begin : begin + 7])]
        assert again.durable == len(rows)
    # Whatever was sent again was judged as if nothing had happened.
    by_number = {one.keystroke: one for one in expected}
    assert all(one == by_number[one.keystroke] for one in found)
    assert found


def test_reports_arrive_signed(service: Service) -> None:
    with Client(service.url, service.key(tenant="hooks"), **PATIENT) as client, receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.server_port}/keydyn"
        hook = client.create_webhook(url, ["enrolment.complete"])
        assert client.webhooks() == (Webhook(hook.id, hook.url, hook.events, hook.created_at),)
        enrol(client, "ada", 0)
        assert receiver.arrived.acquire(timeout=PATIENCE)
        (received,) = receiver.received
        report = json.loads(received.body)
        assert (report["type"], report["data"]["user"]) == ("enrolment.complete", "ada")
        headers = received.headers
        stamp, signature = headers["keydyn-timestamp"], headers["keydyn-signature"]
        assert verify_signature(hook.secret, stamp, received.body, signature)
        client.delete_webhook(hook.id)
        assert client.webhooks() == ()
        with pytest.raises(NotFound):
            client.delete_webhook(hook.id)
