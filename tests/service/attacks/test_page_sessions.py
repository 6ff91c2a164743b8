"""Stolen sessions of the service's own pages: what they allow, and for how long."""

from __future__ import annotations

import pytest

from keydyn.service import accounts
from keydyn.service.wall_clock import HOUR
from tests.service.running import KEYS, http_post


def session_of(service, **by):
    answer = http_post(f"{service.url}/v1/session", json=by, headers={"origin": service.url})
    assert answer.status_code == 201, answer.text
    return answer.json()


def link_of(service):
    link = accounts.new_link(service.database, KEYS, service.clock, "page", service.url)
    return link.partition("#link=")[2]


def test_a_session_works_only_for_a_browser_on_an_own_page(attacked):
    token = session_of(attacked, link=link_of(attacked))["token"]
    own = {"origin": attacked.url}, {"sec-fetch-site": "same-origin"}
    others = {}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "none"}, {"origin": "https://x.example"}
    mixed = {"origin": "https://x.example", "sec-fetch-site": "same-origin"}
    for headers in own:
        assert attacked.client(token, **headers).get("/v1/users").status_code == 200
    for headers in (*others, mixed):
        assert attacked.client(token, **headers).get("/v1/users").status_code == 403
    for headers in ({}, {"sec-fetch-site": "cross-site"}):
        body = {"link": link_of(attacked)}
        assert http_post(f"{attacked.url}/v1/session", json=body, headers=headers).status_code == 403


def test_a_session_that_a_key_opened_can_administer_and_nothing_else(attacked):
    found = session_of(attacked, key=attacked.key())
    assert found["scopes"] == ["admin"]
    page = attacked.client(found["token"], origin=attacked.url)
    for path in ("/v1/users", "/v1/settings", "/v1/audit", "/v1/standing", "/v1/webhooks"):
        assert page.get(path).status_code == 200, path
    for path, body in (
        ("/v1/users", {"id": "eve"}),
        ("/v1/users/eve/samples", {}),
        ("/v1/users/eve/verify", {}),
        ("/v1/identify", {}),
        ("/v1/users/eve/token", {"purpose": "verify"}),
    ):
        assert page.post(path, json=body).status_code == 403, path


@pytest.mark.parametrize(("by", "hours"), [("link", 2), ("key", 1)])
def test_a_session_ends_soon(attacked, by, hours):
    value = link_of(attacked) if by == "link" else attacked.key()
    page = attacked.client(session_of(attacked, **{by: value})["token"], origin=attacked.url)
    attacked.clock.now += hours * HOUR - 1
    assert page.get("/v1/users").status_code == 200
    attacked.clock.now += 1
    assert page.get("/v1/users").status_code == 401


def test_sessions_are_listed_and_can_be_revoked(attacked):
    token = session_of(attacked, link=link_of(attacked))["token"]
    page = attacked.client(token, origin=attacked.url)
    with attacked.database.reading() as connection:
        listed = {row.id: row for row in accounts.list_keys(connection)}
    row = listed[token.split("_")[1]]
    assert (row.kind, row.tenant) == ("session", "page")
    assert row.expires_at == attacked.clock() + 2 * HOUR
    assert not [one for one in listed.values() if one.kind == "link"]
    attacked.database.write(lambda connection: accounts.revoke_key(connection, row.id, attacked.clock()))
    assert page.get("/v1/users").status_code == 401


def test_a_session_that_was_ended_stays_ended(attacked):
    page = attacked.client(session_of(attacked, link=link_of(attacked))["token"], origin=attacked.url)
    assert page.delete("/v1/session").status_code == 204
    assert page.get("/v1/users").status_code == 401
