"""Access to routes: a table lists what each route requires, and a route that is not in it fails."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus

from keydyn.service import accounts
from keydyn.service.http.access import Caller, Door, check_own_page, identified, token_holder
from keydyn.service.http.counted_notes import CountedNotes
from keydyn.service.http.limits import Rates
from keydyn.service.people import registry
from keydyn.service.people.context import Context, Write
from keydyn.service.people.rows import person_named
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.tokens import TokenClaims
from keydyn.service.wire.answers import Erased
from tests.service.running import (
    KEYS,
    UNENCRYPTED,
    MovedClock,
    connect,
    http_options,
    http_post,
    running,
)
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


class Hall:
    """A tenant with one key and ada, and a door that lets ten requests per second in; nothing is served."""

    def __init__(self, database):
        self.context = Context(database, KEYS, MovedClock())
        self.key_id, self.key = accounts.new_key(database, KEYS, self.context.clock, "shop", "test")
        with database.reading() as connection:
            tenant_id = accounts.tenant_of_key(connection, self.key_id)
            self.tenant = accounts.find_tenant(connection, KEYS, tenant_id)
        registry.create(self.context, Write(self.tenant, "service"), "ada")
        self.notes = CountedNotes(database, self.context.clock)
        self.door = Door(self.context, Rates(10.0, lambda: 0.0), self.notes)

    def token(self, nonce="n", purpose="verify", user="ada", uses=5, **more):
        """A token for a person, with which a number of samples can be sent."""
        bound = "free", "keyboard", "standard", uses
        claims = TokenClaims(
            self.tenant.id, self.key_id, user, purpose, "", self.context.clock() + 1, nonce, *bound
        )
        return replace_claims(claims, **more).signed(self.tenant)

    def admitted(self, presented, number, address="192.0.2.1", **options):
        """How many of a number of requests with a key or token are admitted; the others are too many."""
        refused = []
        for _ in range(number):
            try:
                self.door.enter({"authorization": f"Bearer {presented}"}, address, **options)
            except Problem as problem:
                refused.append(problem.kind)
        assert set(refused) <= {"too-many-requests"}
        return number - len(refused)

    def logged(self):
        """The refusals in the audit log: who was refused, why, and how often."""
        self.notes.flush(everything=True)
        self.context.database.write(lambda connection: None)
        with self.context.database.reading() as connection:
            entries = audit.newest(connection, self.tenant.id, 100, "request.refused")
        return {(one["actor"], one["details"]["kind"]) for one in entries}


def replace_claims(claims, **changed):
    return type(claims)(*(changed.get(name, getattr(claims, name)) for name in claims.__struct_fields__))


@pytest.fixture
def hall(sqlite_database):
    return Hall(sqlite_database)


def refused(call, *args):
    with pytest.raises(Problem) as caught:
        call(*args)
    return caught.value.status, caught.value.kind


def test_a_browser_and_all_browsers_together_have_a_share_and_the_key_has_its_own(hall):
    # A token has a tenth of the rate: two at once, as everybody has two seconds' worth.
    assert hall.admitted(hall.token("first"), 5, purpose="verify") == 2
    assert hall.logged() == {(f"token:{hall.key_id}", "too-many-requests")}
    # The tokens of a key have the rate of one key together.
    others = [hall.admitted(hall.token(f"{n}"), 2, purpose="verify") for n in range(12)]
    assert sum(others) == 20 - 2
    # What browsers use up is not the key's.
    assert hall.admitted(hall.key, 25) == 20
    assert hall.logged() == {(f"{who}:{hall.key_id}", "too-many-requests") for who in ("token", "key")}


def test_requests_without_a_valid_key_count_for_their_address(hall):
    wrong = {"authorization": f"Bearer kdk_{hall.key_id}_{'A' * 43}"}
    for address in ("192.0.2.1", "192.0.2.2"):
        answers = [refused(hall.door.enter, wrong, address) for _ in range(22)]
        assert answers == [(401, "not-authenticated")] * 20 + [(429, "too-many-requests")] * 2
    assert hall.logged() == {(f"key:{hall.key_id}", "not-authenticated")}
    # A valid key may be used from there all the same.
    assert hall.admitted(hall.key, 1) == 1


def test_a_token_may_be_presented_in_place_of_a_header(hall):
    entered = hall.door.enter({}, "192.0.2.1", "watch", hall.token(purpose="watch"))
    assert (entered.tenant.id, entered.token.purpose) == (hall.tenant.id, "watch")
    assert refused(hall.door.enter, {}, "192.0.2.1", "verify", hall.token()[:-1]) == (
        401,
        "not-authenticated",
    )
    assert refused(hall.door.enter, {}, "192.0.2.1", "enrol", hall.token()) == (403, "forbidden")
    assert hall.logged() == {(f"token:{hall.key_id}", "forbidden")}


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "https://Shop.Example", "host": "shop.example"}, True),
        ({"origin": "http://shop.example:8000", "host": "SHOP.example:8000"}, True),
        ({"origin": "ftp://shop.example", "host": "shop.example"}, False),
        ({"origin": "https://shop.example", "host": "shop.example:1"}, False),
        ({"origin": "https://shop.example"}, False),
        ({"origin": "https://x.example", "host": "a", "sec-fetch-site": "same-origin"}, False),
    ],
)
def test_browsers_say_whether_a_page_is_the_service_s_own(headers, is_own):
    if is_own:
        check_own_page(headers)
    else:
        assert refused(check_own_page, headers) == (403, "forbidden")


def test_a_key_is_for_programs_and_a_session_for_pages(hall):
    database, clock = hall.context.database, hall.context.clock
    used, link = (
        accounts.new_link(database, KEYS, clock, "shop", "http://localhost").partition("#link=")[2]
        for _ in range(2)
    )
    session = accounts.open_page(database, KEYS, clock, link=used).token
    other, own = {"origin": "http://x.example"}, {"origin": "http://localhost", "host": "localhost"}

    def with_(presented, **headers):
        return hall.context, {"authorization": presented, **headers}

    assert identified(*with_(f"bEARER {hall.key}")).kind == "key"
    assert refused(identified, *with_(f"Bearer {hall.key}", **own)) == (403, "forbidden")
    assert identified(*with_(f"Bearer {session}", **own)).kind == "session"
    for headers in ({}, other):
        assert refused(identified, *with_(f"Bearer {session}", **headers)) == (403, "forbidden")
    assert refused(identified, *with_(f"Bearer {link}")) == (401, "not-authenticated")
    assert refused(identified, *with_("Bearer ")) == (401, "not-authenticated")
    # A token does what it is for, and nothing where no token is taken.
    assert refused(identified, *with_(f"Bearer {hall.token()}")) == (403, "forbidden")
    assert identified(*with_(f"Bearer {hall.token()}"), "verify").token.nonce == "n"


def test_a_token_is_valid_until_it_expires_its_key_is_revoked_or_it_is_used_up(hall):
    context = hall.context
    assert token_holder(context, {}, hall.token(), "verify").key_id == hall.key_id
    assert refused(token_holder, context, {}, hall.token(tenant_id="0" * 32), "verify")[0] == 401
    late = hall.token(expires_at=context.clock())
    assert refused(token_holder, context, {}, late, "verify") == (401, "not-authenticated")
    # Each write of its holder counts as a use.
    caller, one = (
        token_holder(context, {}, hall.token(uses=1), "verify"),
        Erased(population="unchanged", pending=()),
    )
    context.database.write(lambda connection: caller.write().finish(connection, one, None))
    assert refused(token_holder, context, {}, hall.token(uses=1), "verify") == (403, "token-used-up")
    with pytest.raises(Problem) as caught:
        context.database.write(lambda connection: caller.write().finish(connection, one, None))
    assert caught.value.kind == "token-used-up"
    context.database.write(lambda connection: accounts.revoke_key(connection, hall.key_id, 0))
    assert refused(token_holder, context, {}, hall.token("another"), "verify") == (401, "not-authenticated")


def test_what_callers_are_told_and_how_they_are_named(hall):
    key = Caller(hall.tenant, "k", frozenset({"enrol"}))
    page = replace(key, kind="session")
    token = token_holder(hall.context, {}, hall.token(), "verify")
    of_a_page = token_holder(hall.context, {}, hall.token(everything=True), "verify")
    told = [one.write().told for one in (key, page, token, of_a_page)]
    assert told == ["scores", "everything", "answer", "everything"]
    named = [(one.name, one.actor, one.counted_as) for one in (key, page, token)]
    own = hall.key_id
    assert named == [
        ("k", "key:k", "key k"),
        ("k", "session:k", "key k"),
        (f"{own}/n", f"token:{own}", "token n"),
    ]
    key.need("admin", "enrol")
    assert refused(key.need, "admin") == (403, "forbidden")


def test_a_token_is_for_one_user_and_a_key_for_all(hall):
    registry.create(hall.context, Write(hall.tenant, "service"), "bob")
    with hall.context.database.reading() as connection:
        ada = person_named(connection, hall.context, hall.tenant, "ada")
    token = token_holder(hall.context, {}, hall.token(user=ada.id), "verify")
    token.check_user(hall.context, "ada")
    for name in ("bob", "nobody"):
        assert refused(token.check_user, hall.context, name) == (403, "forbidden")
    Caller(hall.tenant, "k").check_user(hall.context, "nobody")
