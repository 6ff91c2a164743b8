"""Webhooks: events are reported, signed, only to receivers that subscribed to them."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC
from msgspec import structs
from sqlalchemy import delete, select

from keydyn.service.jobs import webhooks
from keydyn.service.jobs.delivery import DeliveryError, WebhookDelivery
from keydyn.service.jobs.queue import Job, take
from keydyn.service.problems import Problem
from keydyn.service.storage.database import Database
from keydyn.service.storage.tables import jobs, users
from keydyn.service.storage.tables import webhooks as table
from keydyn.service.wall_clock import SECOND
from tests.service.jobs.certificates import certificate_for
from tests.service.jobs.conftest import START, MovableClock, Tenant, new_tenant
from tests.service.jobs.receiver import receiving


@pytest.fixture
def tenant(sqlite_database: Database) -> Tenant:
    return new_tenant(sqlite_database)


def create(
    database: Database, tenant: Tenant, url: str = "https://hooks.example.com/", events: Any = webhooks.EVENTS
) -> webhooks.NewWebhook:
    return database.write(lambda connection: webhooks.create(connection, tenant, url, events, now=START))


def announce(database: Database, tenant: Tenant, event: str = "session.locked", **data: Any) -> int:
    return database.write(
        lambda connection: webhooks.announce(
            connection, tenant, event, {"user": "yvonne", **data}, now=START, user_id=tenant.user_id
        )
    )


def next_job(database: Database, tenant: Tenant) -> Job:
    lease = database.write(lambda connection: take(connection, "webhook", START))
    assert lease
    return lease.opened(tenant.keys)


def deliver(database: Database, tenant: Tenant, clock: MovableClock, url: str, **options: Any) -> None:
    """Report one event to an address."""
    create(database, tenant, url)
    announce(database, tenant)
    WebhookDelivery(database, clock, allow_private=True, **options)(next_job(database, tenant))


def listed(database: Database, tenant: Tenant) -> list[webhooks.Webhook]:
    with database.reading() as connection:
        return webhooks.of_tenant(connection, tenant.id)


def test_webhooks_are_created_listed_and_removed(sqlite_database: Database, tenant: Tenant) -> None:
    webhook = create(sqlite_database, tenant, events=["session.locked", "enrolment.complete"])
    secret = webhook.secret
    assert webhook.events == ("enrolment.complete", "session.locked")
    (found,) = listed(sqlite_database, tenant)
    assert structs.asdict(webhook) == {**structs.asdict(found), "secret": secret}
    with sqlite_database.reading() as connection:
        (stored,) = connection.execute(select(table.c.secret)).scalars()
        assert secret.encode() not in stored
        destination = webhooks.destination(connection, tenant.id, webhook.id, tenant.key)
    assert destination == ("https://hooks.example.com/", secret)
    sqlite_database.write(lambda connection: webhooks.delete(connection, tenant.id, webhook.id))
    assert listed(sqlite_database, tenant) == []


def test_no_tenant_sees_or_removes_the_webhooks_of_another(sqlite_database: Database, tenant: Tenant) -> None:
    other = new_tenant(sqlite_database, "b")
    webhook = create(sqlite_database, other)
    assert listed(sqlite_database, tenant) == []
    with pytest.raises(Problem) as caught:
        sqlite_database.write(lambda connection: webhooks.delete(connection, tenant.id, webhook.id))
    assert caught.value.status == 404
    assert announce(sqlite_database, tenant) == 0
    assert [one.id for one in listed(sqlite_database, other)] == [webhook.id]


@pytest.mark.parametrize("events", [[], ["session.locked", "everything"]])
def test_events_that_do_not_exist_are_refused(
    sqlite_database: Database, tenant: Tenant, events: list[str]
) -> None:
    with pytest.raises(Problem) as caught:
        create(sqlite_database, tenant, events=events)
    assert (caught.value.status, caught.value.kind) == (422, "webhook-events")


def test_there_is_a_limit_for_each_tenant(sqlite_database: Database, tenant: Tenant) -> None:
    for _ in range(webhooks.MOST_WEBHOOKS):
        create(sqlite_database, tenant)
    with pytest.raises(Problem) as caught:
        create(sqlite_database, tenant)
    assert (caught.value.status, caught.value.kind) == (409, "too-many-webhooks")
    create(sqlite_database, new_tenant(sqlite_database, "b"))


def test_an_event_goes_to_every_webhook_that_wants_it(sqlite_database: Database, tenant: Tenant) -> None:
    one = create(sqlite_database, tenant, events=["session.locked"])
    create(sqlite_database, tenant, events=["template.drifted"])
    both = create(sqlite_database, tenant)
    assert announce(sqlite_database, tenant) == 2
    found = [next_job(sqlite_database, tenant).payload for _ in range(2)]
    assert {payload["webhook"] for payload in found} == {one.id, both.id}
    assert found[0]["report"] == found[1]["report"]
    assert sqlite_database.write(lambda connection: take(connection, "webhook", START)) is None


def test_erasing_a_person_takes_undelivered_reports_away(sqlite_database: Database, tenant: Tenant) -> None:
    create(sqlite_database, tenant)
    announce(sqlite_database, tenant)
    sqlite_database.write(lambda connection: connection.execute(delete(users)))
    with sqlite_database.reading() as connection:
        assert connection.execute(select(jobs)).all() == []


def test_a_report_is_signed_and_says_what_happened(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    with receiving() as server:
        url = f"http://127.0.0.1:{server.server_port}/hooks?from=keydyn"
        secret = create(sqlite_database, tenant, url).secret
        announce(sqlite_database, tenant, session="s1")
        clock.now = START + 90 * SECOND + 999
        WebhookDelivery(sqlite_database, clock, allow_private=True)(next_job(sqlite_database, tenant))
        (received,) = server.received
    assert received.path == "/hooks?from=keydyn"
    assert received.headers["host"] == f"127.0.0.1:{server.server_port}"
    assert received.headers["content-type"] == "application/json"
    body = json.loads(received.body)
    assert body.pop("id") == received.headers["keydyn-event-id"]
    assert body == {
        "type": "session.locked",
        "created_at": START,
        "data": {"user": "yvonne", "session": "s1"},
    }
    assert received.headers["keydyn-timestamp"] == str(START // 1000 + 90)
    # Computed by another implementation.
    mac = HMAC(secret.encode(), hashes.SHA256())
    mac.update(received.headers["keydyn-timestamp"].encode() + b"." + received.body)
    assert received.headers["keydyn-signature"] == f"v1={mac.finalize().hex()}"


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_success_is_a_delivery(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, status: int
) -> None:
    with receiving() as server:
        server.status = status
        deliver(sqlite_database, tenant, clock, server.url)
        assert len(server.received) == 1


@pytest.mark.parametrize("status", [300, 400, 404, 410, 429, 500, 503])
def test_any_other_answer_is_not(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, status: int
) -> None:
    with receiving() as server:
        server.status = status
        with pytest.raises(DeliveryError, match=str(status)):
            deliver(sqlite_database, tenant, clock, server.url)


def test_redirects_are_not_followed(sqlite_database: Database, tenant: Tenant, clock: MovableClock) -> None:
    with receiving() as server:
        server.mood = "redirect"
        with pytest.raises(DeliveryError, match="307"):
            deliver(sqlite_database, tenant, clock, server.url)
        assert [received.path for received in server.received] == ["/"]


def test_an_endless_answer_is_not_read(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    with receiving() as server:
        server.mood = "endless"
        deliver(sqlite_database, tenant, clock, server.url)


def test_an_answer_that_trickles_in_is_given_up(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    with receiving() as server:
        server.mood = "trickle"
        with pytest.raises(DeliveryError, match="TimeoutError"):
            deliver(sqlite_database, tenant, clock, server.url, whole_s=0.3)


@pytest.mark.parametrize(("rest_s", "asked"), [(3600, 1), (0, 3)])
def test_a_receiver_that_failed_is_left_alone_for_a_while_and_others_are_not(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, rest_s: float, asked: int
) -> None:
    with receiving() as broken, receiving() as good:
        broken.status = 500
        for server in (broken, good):
            create(sqlite_database, tenant, server.url)
        delivery = WebhookDelivery(sqlite_database, clock, allow_private=True, rest_s=rest_s)
        for _ in range(3):
            announce(sqlite_database, tenant)
        failed = 0
        for _ in range(6):
            try:
                delivery(next_job(sqlite_database, tenant))
            except DeliveryError:
                failed += 1
        assert failed == 3
        assert (len(broken.received), len(good.received)) == (asked, 3)


def test_nothing_is_sent_to_a_webhook_that_was_removed(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock
) -> None:
    with receiving() as server:
        webhook = create(sqlite_database, tenant, server.url)
        announce(sqlite_database, tenant)
        sqlite_database.write(lambda connection: webhooks.delete(connection, tenant.id, webhook.id))
        WebhookDelivery(sqlite_database, clock, allow_private=True)(next_job(sqlite_database, tenant))
        assert server.received == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_private_addresses_are_refused_at_delivery_too(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, scheme: str
) -> None:
    with receiving() as server:
        # Stored when private addresses were allowed, or a name that leads elsewhere now.
        create(sqlite_database, tenant, f"{scheme}://localhost:{server.server_port}/")
        announce(sqlite_database, tenant)
        with pytest.raises(DeliveryError, match="ForbiddenAddressError"):
            WebhookDelivery(sqlite_database, clock)(next_job(sqlite_database, tenant))
        assert server.received == []


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let hooks.example.com have these addresses; return the list of names looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> Any:
        asked.append(host)
        assert host == "hooks.example.com"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_the_connection_goes_to_the_address_that_was_checked_and_the_certificate_is_for_the_name(
    sqlite_database: Database,
    tenant: Tenant,
    clock: MovableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_server, of_client = certificate_for("hooks.example.com", tmp_path)
    asked = resolves_to(monkeypatch, "127.0.0.1")
    with receiving(of_server) as server:
        create(sqlite_database, tenant, f"https://hooks.example.com:{server.server_port}/")
        announce(sqlite_database, tenant)
        deliver = WebhookDelivery(sqlite_database, clock, allow_private=True, tls=of_client)
        deliver(next_job(sqlite_database, tenant))
        (received,) = server.received
        assert received.headers["host"] == f"hooks.example.com:{server.server_port}"
    assert asked == ["hooks.example.com"], "looked up once: nothing can change between the check and the use"


def test_a_certificate_for_another_name_is_refused(
    sqlite_database: Database,
    tenant: Tenant,
    clock: MovableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_server, of_client = certificate_for("elsewhere.example.com", tmp_path)
    resolves_to(monkeypatch, "127.0.0.1")
    with receiving(of_server) as server:
        create(sqlite_database, tenant, f"https://hooks.example.com:{server.server_port}/")
        announce(sqlite_database, tenant)
        with pytest.raises(DeliveryError, match="ConnectError"):
            WebhookDelivery(sqlite_database, clock, allow_private=True, tls=of_client)(
                next_job(sqlite_database, tenant)
            )
        assert server.received == []


def test_another_address_of_the_same_name_is_tried(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as server:
        # There is no listener at the first one.
        resolves_to(monkeypatch, "127.0.0.2", "127.0.0.1")
        create(sqlite_database, tenant, f"http://hooks.example.com:{server.server_port}/")
        announce(sqlite_database, tenant)
        WebhookDelivery(sqlite_database, clock, allow_private=True)(next_job(sqlite_database, tenant))
        assert len(server.received) == 1


def test_proxies_of_the_environment_are_not_used(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as server, receiving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        deliver(sqlite_database, tenant, clock, server.url)
        assert (len(server.received), len(proxy.received)) == (1, 0)


def test_logs_hold_neither_names_nor_addresses_nor_secrets(
    sqlite_database: Database, tenant: Tenant, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as server, caplog.at_level(logging.DEBUG):
        secret = create(sqlite_database, tenant, f"http://127.0.0.1:{server.server_port}/private-path").secret
        announce(sqlite_database, tenant)
        WebhookDelivery(sqlite_database, clock, allow_private=True)(next_job(sqlite_database, tenant))
    for word in ("yvonne", "private-path", secret, "v1="):
        assert word not in caplog.text
