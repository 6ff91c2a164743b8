"""Sessions of the service's own pages, over HTTP."""

from __future__ import annotations

from itertools import count

import pytest

from keydyn.service import accounts
from keydyn.service.wall_clock import HOUR
from tests.service.running import KEYS, http_post, running
from tests.service.typists import enrol, keystrokes_of

NAMES = (f"page-{n}" for n in count())
ELSEWHERE = "https://elsewhere.example"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service for all tests of this file, each of which has a tenant of its own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('sessions') / 'service.db'}"
    with running(url) as found:
        yield found


def link_of(service, tenant=None):
    name = tenant or next(NAMES)
    link = accounts.new_link(service.database, KEYS, service.clock, name, service.url)
    assert link.startswith(f"{service.url}/#link=kdl_")
    return link.partition("#link=")[2]


def exchange(service, origin=None, **body):
    """Open a session, by default from one of the service's own pages."""
    return http_post(f"{service.url}/v1/session", json=body, headers={"origin": origin or service.url})


def test_a_page_opens_a_session_uses_it_and_ends_it(service):
    answer = exchange(service, service.url, link=link_of(service))
    assert answer.status_code == 201
    assert answer.json()["expires_at"] == service.clock() + 2 * HOUR
    page = service.client(answer.json()["token"], origin=service.url)
    enrol(page, "ada", 0)
    assert page.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 9)}).status_code == 200
    assert page.delete("/v1/session").status_code == 204
    assert page.get("/v1/users").status_code == 401
    assert page.delete("/v1/session").status_code == 401


def test_a_link_works_once(service):
    link = link_of(service)
    assert exchange(service, link=link).status_code == 201
    again = exchange(service, link=link)
    assert (again.status_code, again.json()["type"]) == (401, "urn:keydyn:problem:link-not-valid")
    wrong = link[:-1] + ("A" if link[-1] != "A" else "B")
    assert exchange(service, link=wrong).json()["detail"] == again.json()["detail"]


def test_a_link_is_no_key(service):
    client = service.client(link_of(service))
    assert client.get("/v1/users").status_code == 401


@pytest.mark.parametrize("origin", [ELSEWHERE, "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_no_other_page_can_use_a_link_or_a_session_even_if_the_settings_name_it(service, origin):
    tenant = next(NAMES)
    token = exchange(service, link=link_of(service, tenant)).json()["token"]
    own = service.client(token, origin=service.url)
    if origin == ELSEWHERE:
        settings = own.get("/v1/settings").json() | {"origins": [origin]}
        assert own.put("/v1/settings", json=settings).status_code == 200
    link = link_of(service, tenant)
    assert exchange(service, origin, link=link).status_code == 403
    assert service.client(token, origin=origin).get("/v1/users").status_code == 403
    assert service.client(token, origin=origin).delete("/v1/session").status_code == 403
    # It was not used up.
    assert exchange(service, service.url, link=link).status_code == 201


def test_an_api_key_opens_a_session_of_an_hour_that_ends_with_the_key(service):
    key = service.key(next(NAMES))
    answer = exchange(service, service.url, key=key)
    assert answer.json()["expires_at"] == service.clock() + HOUR
    page = service.client(answer.json()["token"], origin=service.url)
    assert page.get("/v1/settings").status_code == 200
    assert exchange(service, key=service.key(next(NAMES), scopes=["verify"])).status_code == 403
    assert service.client(key).delete("/v1/session").status_code == 403
    service.database.write(
        lambda connection: accounts.revoke_row(connection, page.headers["authorization"].split("_")[1], 0)
    )
    assert page.get("/v1/settings").status_code == 401


@pytest.mark.parametrize(
    "body", [{}, {"link": "a", "key": "b"}, {"link": 1}, {"link": "a" * 201}, {"x": "y"}]
)
def test_it_takes_one_of_the_two(service, body):
    assert exchange(service, **body).status_code == 422


def test_wrong_links_count_against_the_rate_of_their_sender(sqlite_url):
    # So few that none is added meanwhile, however slow the machine.
    with running(sqlite_url, requests_per_second=0.01) as service:
        answers = [exchange(service, link="kdl_wrong").status_code for _ in range(8)]
    assert answers == [401] + [429] * 7


def test_tokens_made_by_a_session_end_with_it(service):
    page = service.client(exchange(service, link=link_of(service)).json()["token"], origin=service.url)
    enrol(page, "ada", 0)
    token = page.post("/v1/users/ada/token", json={"purpose": "verify"}).json()["token"]
    browser, body = service.client(token), {"keystrokes": keystrokes_of(0, 9)}
    assert browser.post("/v1/users/ada/verify", json=body).status_code == 200
    page.delete("/v1/session")
    assert browser.post("/v1/users/ada/verify", json=body).status_code == 401
