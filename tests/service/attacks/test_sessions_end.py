"""A watched session ends with its token, its key and its person, even if another worker ends these."""

from __future__ import annotations

import pytest

from keydyn.service import accounts
from tests.service.attacks.watching import connected, ended, rows_of, said
from tests.service.running import running
from tests.service.typists import enrol

PEOPLE = ("ada", "bob", "cleo", "dan")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('ending')}/service.db"


@pytest.fixture(scope="module")
def service(url):
    with running(url) as found:
        client = found.client()
        for user, name in enumerate(PEOPLE):
            enrol(client, name, user)
        yield found


@pytest.fixture(scope="module")
def other(service, url):
    """Another worker on the same database, with the same clock."""
    with running(url, service.clock) as found:
        yield found


def revoke(service, key):
    now = service.clock()
    assert service.database.write(lambda connection: accounts.revoke_key(connection, key.split("_")[1], now))


def test_with_its_token(service):
    client = service.client()
    token = client.post("/v1/users/ada/token", json={"purpose": "watch", "seconds": 60}).json()
    with connected(service) as short, connected(service, "bob", service.key()) as kept:
        assert said(short, type="hello", token=token["token"])["type"] == "welcome"
        assert said(kept, type="hello")["type"] == "welcome"
        service.clock.now += 60_000
        assert ended(short) == (4401, "the token has expired")
        # A key does not expire.
        assert said(kept, type="keys", first=1, keys=rows_of(1, 6))["type"] == "trust"
    # Another token continues the session.
    body = {"purpose": "watch", "session": token["session"]}
    again = client.post("/v1/users/ada/token", json=body).json()["token"]
    with connected(service) as socket:
        assert said(socket, type="hello", token=again)["session"] == token["session"]


def test_with_its_key_on_any_worker(service, other):
    key = service.key()
    token = service.client(key).post("/v1/users/ada/token", json={"purpose": "watch"}).json()["token"]
    with connected(other, "bob", key) as program, connected(other) as browser:
        assert said(program, type="hello")["type"] == "welcome"
        assert said(browser, type="hello", token=token)["type"] == "welcome"
        revoke(service, key)
        for socket in (program, browser):
            assert ended(socket) == (4401, "the API key is no longer valid")


def test_with_its_person_on_any_worker(service, other):
    client, key = service.client(), service.key()
    for name, change in (("dan", lambda: client.post("/v1/users/dan/reset")),
                         ("cleo", lambda: client.delete("/v1/users/cleo"))):  # fmt: skip
        with connected(other, name, key) as socket:
            assert said(socket, type="hello")["type"] == "welcome"
            assert change().status_code == 200
            assert ended(socket) == (4404, "the session no longer exists")
