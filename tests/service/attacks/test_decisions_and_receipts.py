"""Forged decisions: those that a server looks up, and receipts from a page, cannot be made up."""

from __future__ import annotations

import pytest
from msgspec import structs

from keydyn.client import ReceiptError, check_receipt
from keydyn.service.jobs.periodic import expire
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.receipts import parts, url_safe
from tests.service.attacks.conftest import NAMES, with_ada
from tests.service.typists import enrol, keystrokes_of


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture
def client(service):
    return with_ada(service)


@pytest.fixture
def browser(service, client):
    """A page with a token to verify."""
    return service.client(client.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"])


def verify(asker, user, session):
    return asker.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(user, session)}).json()


def test_a_server_asks_what_was_decided(service, client, browser):
    for user, session in ((0, 6), (1, 6)):
        told = verify(browser, user, session)
        found = client.get(f"/v1/decisions/{told['id']}").json()
        for name in ("id", "answer", "level", "judged_level"):
            assert found[name] == told[name]
        assert (found["user"], found["kind"], found["at"]) == ("ada", "verify", service.clock())
        assert (found["text"]["kind"], found["device"]) == ("free", "keyboard")
        assert found["actor"].startswith("token:")
        # Neither a page nor another tenant can ask.
        assert browser.get(f"/v1/decisions/{told['id']}").status_code == 403
        stranger = service.client(service.key(next(NAMES)))
        assert stranger.get(f"/v1/decisions/{told['id']}").status_code == 404


def test_an_identification_is_a_decision_too(client):
    sent = {"keystrokes": keystrokes_of(0, 6)}
    found = client.post("/v1/identify", json=sent).json()
    record = client.get(f"/v1/decisions/{found['id']}").json()
    assert (record["kind"], record["user"], record["answer"]) == ("identify", "ada", "accept")
    nobody = client.post("/v1/identify", json={"keystrokes": keystrokes_of(1, 6)}).json()
    record = client.get(f"/v1/decisions/{nobody['id']}").json()
    assert (record["user"], record["answer"]) == (None, "reject")


def test_decisions_go_after_30_days_and_with_the_person(service, client):
    first = verify(client, 0, 6)["id"]
    service.clock.now += 30 * DAY
    expire(service.database, service.clock())
    assert client.get(f"/v1/decisions/{first}").status_code == 200
    second = verify(client, 0, 7)["id"]
    service.clock.now += 1
    expire(service.database, service.clock())
    assert client.get(f"/v1/decisions/{first}").json()["type"].endswith("no-such-decision")
    exported = client.get("/v1/users/ada/export").json()["decisions"]
    assert [one["id"] for one in exported] == [second]
    client.delete("/v1/users/ada")
    assert client.get(f"/v1/decisions/{second}").status_code == 404


def test_a_receipt_says_what_was_decided(service, client, browser):
    key = client.get("/v1/receipts/key").json()["key"]
    for user, session, accepted in ((0, 6, True), (1, 6, False)):
        told = verify(browser, user, session)
        found = check_receipt(told["receipt"], key, user="ada", now=service.clock() / 1000)
        assert (found.decision, found.answer, found.accepted) == (told["id"], told["answer"], accepted)
        assert (found.level, found.text, found.device) == ("standard", "free", "keyboard")


def test_receipts_that_must_not_be_trusted(service, client, browser):
    key, now = client.get("/v1/receipts/key").json()["key"], service.clock() / 1000
    good, refused = verify(browser, 0, 6)["receipt"], verify(browser, 1, 6)["receipt"]
    claims, _, signature = parts(refused)
    forged = structs.replace(claims, answer="accept").claims()
    other = service.client(service.key(next(NAMES)))
    enrol(other, "ada", 0)
    theirs = verify(other, 0, 6)["receipt"]
    identified = client.post("/v1/identify", json={"keystrokes": keystrokes_of(0, 7)}).json()["receipt"]
    cases = [
        (f"{forged}.{url_safe(signature)}", {}, "not signed"),
        (f"{good.partition('.')[0]}.{refused.partition('.')[2]}", {}, "not signed"),
        (f"{good[:-86]}{'A' * 86}", {}, "not signed"),
        (theirs, {}, "not signed"),
        (good, {"user": "bob"}, "another user"),
        (identified, {}, "kind identify"),
        (good, {"kind": "identify"}, "kind verify"),
        (good, {"now": now + 301}, "too old"),
        (good, {"now": now - 31}, "not valid yet"),
        ("", {}, "not a receipt"),
        (good[:-1], {}, "not a receipt"),
        (f"kdr_{url_safe(b'[]')}.{'A' * 86}", {}, "not a receipt"),
    ]
    for receipt, changed, why in cases:
        with pytest.raises(ReceiptError, match=why):
            check_receipt(receipt, key, **({"user": "ada", "now": now} | changed))
    assert check_receipt(good, key, user="ada", now=now + 299).accepted
