"""Access to routes: a table lists what each route requires, and a route that is not in it fails."""

from __future__ import annotations

from itertools import count

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus

from keydyn.service import accounts
from tests.service.running import KEYS, UNENCRYPTED, connect, http_options, http_post, running
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

NOBODY = "not a secret"
NAMES = (f"tenant-{n}" for n in count())
SAMPLE = {"keystrokes": keystrokes_of(0, 9)}
# Headers that differ from answer to answer.
CHANGING = {"x-request-id", "date"}
WEBHOOK = {"url": "https://example.org/hook", "events": ["session.locked"]}
# Method and route: the scopes of which a key needs one (None: no key), and a request of it about "ada".
ROUTES = {
    ("POST", "/v1/users"): ("enrol", {"id": "eve"}),
    ("GET", "/v1/users"): ("enrol admin", None),
    ("GET", "/v1/users/{id}"): ("enrol admin", None),
    ("DELETE", "/v1/users/{id}"): ("admin", None),
    ("GET", "/v1/users/{id}/export"): ("admin", None),
    ("GET", "/v1/users/{id}/densities"): ("admin", None),
    ("POST", "/v1/users/{id}/reset"): ("admin", None),
    ("POST", "/v1/users/{id}/unblock"): ("admin", None),
    ("POST", "/v1/users/{id}/samples"): ("enrol", SAMPLE),
    ("POST", "/v1/users/{id}/verify"): ("verify", SAMPLE),
    ("POST", "/v1/users/{id}/token"): ("verify", {"purpose": "verify"}),
    ("POST", "/v1/users/{id}/second-factor"): ("verify", None),
    ("POST", "/v1/identify"): ("identify", SAMPLE),
    ("GET", "/v1/settings"): ("admin", None),
    ("PUT", "/v1/settings"): ("admin", {"samples_needed": 5}),
    ("POST", "/v1/webhooks"): ("admin", WEBHOOK),
    ("GET", "/v1/webhooks"): ("admin", None),
    ("DELETE", "/v1/webhooks/{webhook}"): ("admin", None),
    ("GET", "/v1/populations"): ("admin", None),
    ("POST", "/v1/populations"): ("admin", {}),
    ("GET", "/v1/standing"): ("admin", None),
    ("GET", "/v1/decisions"): ("admin", None),
    ("GET", "/v1/decisions/{decision}"): ("verify", None),
    ("GET", "/v1/receipts/key"): ("verify", None),
    ("GET", "/v1/error-rates"): ("admin", None),
    ("POST", "/v1/error-rates/measure"): ("admin", {}),
    ("GET", "/v1/audit"): ("admin", None),
    ("GET", "/v1/audit/check"): ("admin", None),
    ("POST", "/v1/session"): (None, {"link": "kdl_"}),
    ("DELETE", "/v1/session"): (None, None),
    ("GET", "/healthz"): (None, None),
    ("GET", "/readyz"): (None, None),
    ("GET", "/metrics"): (None, None),
    ("GET", "/docs"): (None, None),
    ("GET", "/docs/start.js"): (None, None),
    ("GET", "/openapi.json"): (None, None),
    ("GET", "/recorder.js"): (None, None),
    ("GET", "/recorder.d.ts"): (None, None),
    ("GET", "/recorder-{version}.js"): (None, None),
    ("GET", "/"): (None, None),
    ("GET", "/admin"): (None, None),
    ("GET", "/pages/{name}"): (None, None),
    ("WS", "/v1/users/{user}/watch"): ("watch", None),
}
GUARDED = [place for place, (scope, _) in ROUTES.items() if scope is not None and place[0] != "WS"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service for all tests of this file, each of which has tenants of its own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('access') / 'service.db'}"
    with running(url) as found:
        yield found


@pytest.fixture
def client(service):
    """A client of a new tenant, with all scopes."""
    return service.client(service.key(next(NAMES)))


def send(client, place, user="ada", webhook="0" * 32):
    method, path = place
    body = ROUTES[place][1]
    return client.request(method, path.format(id=user, webhook=webhook, decision=webhook), json=body)


def test_every_route_is_in_the_table(service):
    found, routes = set(), list(service.app.routes)
    while routes:
        route = routes.pop()
        included = getattr(route, "original_router", None)
        if included is not None:
            routes += included.routes
        elif isinstance(route, APIWebSocketRoute):
            found.add(("WS", route.path))
        elif isinstance(route, APIRoute) or hasattr(route, "methods"):
            found |= {(method, route.path) for method in route.methods - {"HEAD"}}
        else:
            # The files of the reference.
            assert route.path == "/docs/assets"
    assert found == set(ROUTES)


@pytest.mark.parametrize("place", GUARDED, ids=str)
def test_nobody_gets_in_without_a_valid_key(service, place):
    revoked = service.key(next(NAMES))
    with service.database.reading() as connection:
        key_id = accounts.key_holder(connection, KEYS, revoked, 0).key_id
    service.database.write(lambda connection: accounts.revoke_key(connection, key_id, 0))
    valid = service.key(next(NAMES))
    for value in (None, "Bearer", "Bearer x", f"Basic {valid}", f"Bearer {revoked}", f"Bearer {NOBODY}"):
        headers = {} if value is None else {"authorization": value}
        with httpx.Client(
            base_url=service.url, headers=headers, timeout=PATIENCE, verify=UNENCRYPTED
        ) as client:
            answer = send(client, place)
        assert answer.status_code == 401, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("place", GUARDED, ids=str)
def test_a_key_needs_the_scope(service, place):
    enough = ROUTES[place][0].split()
    others = [one for one in accounts.SCOPES if one not in enough]
    answer = send(service.client(service.key(next(NAMES), scopes=others)), place)
    assert answer.status_code == 403, answer.text
    for scope in enough:
        allowed = send(service.client(service.key(next(NAMES), scopes=[scope])), place)
        assert allowed.status_code not in (401, 403), allowed.text


@pytest.mark.parametrize("place", GUARDED, ids=str)
def test_no_tenant_sees_another(service, place):
    """What a stranger is answered does not depend on whether another tenant has such a person."""
    client = service.client(service.key(next(NAMES)))
    enrol(client, "ada", 0)
    made = client.post("/v1/webhooks", json=WEBHOOK).json()["id"]
    before = about(client, "ada")
    settings = client.get("/v1/settings").json()
    stranger = service.client(service.key(next(NAMES)))
    about_her = send(stranger, place, "ada", made)
    if place == ("POST", "/v1/users"):
        stranger.delete("/v1/users/eve")
    about_nobody = send(stranger, place, "zoe", "f" * 32)
    assert about_her.status_code == about_nobody.status_code
    different = {"instance", "created_at"}
    pair = [
        {name: value for name, value in answer.json().items() if name not in different}
        for answer in (about_her, about_nobody)
    ]
    if place not in (("POST", "/v1/users"), ("POST", "/v1/webhooks")):
        assert pair[0] == pair[1]
    assert '"ada"' not in about_her.text
    assert about(client, "ada") == before
    assert client.get("/v1/settings").json() == settings
    assert [one["id"] for one in client.get("/v1/webhooks").json()["webhooks"]] == [made]


def about(client, name):
    """The service's answer about a person, except for the template, which is learnt meanwhile."""
    found = client.get(f"/v1/users/{name}").json()
    for profile in found["profiles"]:
        del profile["template_at"], profile["template_age_s"]
    return found


def test_two_tenants_may_have_people_of_one_name(service):
    one, two = service.client(service.key(next(NAMES))), service.client(service.key(next(NAMES)))
    enrol(one, "ada", 0)
    enrol(two, "ada", 1)
    found = [
        client.post("/v1/identify", json={"keystrokes": keystrokes_of(0, 9)}).json()["nobody"]
        for client in (one, two)
    ]
    assert found == [False, True]
    assert two.delete("/v1/users/ada").status_code == 200
    assert len(one.get("/v1/users").json()["users"]) == 1


def token_of(client, purpose, user="ada", **more):
    answer = client.post(f"/v1/users/{user}/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_token_is_good_for_one_person_and_one_purpose_for_a_short_time(service, client):
    enrol(client, "ada", 0)
    enrol(client, "bob", 1)
    browser = service.client(token_of(client, "verify", seconds=60)["token"])
    place = ("POST", "/v1/users/{id}/verify")
    assert send(browser, place).json()["answer"] == "accept"
    assert send(browser, place, "bob").status_code == 403
    for other in GUARDED:
        if other != place:
            assert send(browser, other).status_code == 403, other
    service.clock.now += 60_000
    assert send(browser, place).status_code == 401


def test_a_token_that_was_changed_or_whose_key_was_revoked_is_void(service, client):
    enrol(client, "ada", 0)
    token = token_of(client, "verify")["token"]
    place = ("POST", "/v1/users/{id}/verify")
    claims, signature = token.split(".")
    for wrong in (claims + ".", claims[:-1] + "A." + signature, f"{claims}.{signature[::-1]}", "kdt_."):
        assert send(service.client(wrong), place).status_code == 401
    # This token signed by another tenant's key.
    other = service.client(service.key(next(NAMES)))
    enrol(other, "ada", 0)
    theirs = token_of(other, "verify")["token"].split(".")[1]
    assert send(service.client(f"{claims}.{theirs}"), place).status_code == 401
    key_id = client.headers["authorization"].split("_")[1]
    service.database.write(lambda connection: accounts.revoke_key(connection, key_id, 0))
    assert send(service.client(token), place).status_code == 401


def test_a_token_for_someone_who_was_erased_and_created_again_is_void(service, client):
    enrol(client, "ada", 0)
    token = token_of(client, "verify")["token"]
    client.delete("/v1/users/ada")
    enrol(client, "ada", 0)
    assert send(service.client(token), ("POST", "/v1/users/{id}/verify")).status_code == 403


def test_pages_of_other_origins_are_refused_unless_the_settings_name_them(service, client):
    enrol(client, "ada", 0)
    token = token_of(client, "verify")["token"]
    place, page = ("POST", "/v1/users/{id}/verify"), "https://shop.example"
    assert send(service.client(token, origin=service.url), place).status_code == 200
    for origin in (page, "null", "https://127.0.0.1", "http://evil.example"):
        assert send(service.client(token, origin=origin), place).status_code == 403
    settings = client.get("/v1/settings").json() | {"origins": [page]}
    assert client.put("/v1/settings", json=settings).status_code == 200
    assert send(service.client(token, origin=page), place).status_code == 200
    # An API key is nothing for a browser, wherever its page comes from.
    assert send(service.client(service.key(), origin=service.url), place).status_code == 403


def test_preflight_requests_do_not_tell_which_origins_a_tenant_has_named(service, client):
    settings = client.get("/v1/settings").json() | {"origins": ["https://shop.example"]}
    client.put("/v1/settings", json=settings)
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    told = []
    for origin in ("https://shop.example", "https://x.example"):
        place, headers = f"{service.url}/v1/users/ada/verify", {"origin": origin}
        before = http_options(place, headers=headers | asked)
        refused = http_post(place, json=SAMPLE, headers=headers)
        assert (before.status_code, refused.status_code) == (204, 401)
        told += [
            {name: value for name, value in answer.headers.items() if name not in CHANGING}
            for answer in (before, refused)
        ]
    assert told[:2] == told[2:]
    assert all(headers["access-control-allow-origin"] == "*" for headers in told)
    # Only what takes tokens can be reached from other pages.
    other = http_options(f"{service.url}/v1/settings", headers={"origin": "https://shop.example", **asked})
    assert "access-control-allow-origin" not in other.headers


def test_the_service_answers_only_to_its_own_names(service, client):
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 421
    address = service.url.replace("http", "ws") + "/v1/users/ada/watch"
    with pytest.raises(InvalidStatus):
        connect(address, additional_headers={"Host": "evil.example"})


def test_metrics_are_for_the_operator_of_the_service(service, client):
    assert "keydyn_requests_total" in client.get("/metrics").text
    assert client.get("/metrics", headers={"origin": "https://x.example"}).status_code == 403
