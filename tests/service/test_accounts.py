"""Links and sessions of pages, on both databases."""

from __future__ import annotations

import base64
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from msgspec import structs
from sqlalchemy import func, select, text

from keydyn.service import accounts
from keydyn.service.problems import Problem
from keydyn.service.storage import audit, upgrading
from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import EARLIER_PROOF, VARIABLE, open_master_keys
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import api_keys, members
from keydyn.service.wall_clock import HOUR
from keydyn.service.wire.both_ways import encoded
from tests.service.running import KEYS, MovedClock

URL = "http://127.0.0.1:8421"


@pytest.fixture
def clock():
    return MovedClock()


def link_of(database, clock, tenant="page"):
    return accounts.new_link(database, KEYS, clock, tenant, URL).partition("#link=")[2]


def holder_of(database, presented, now):
    with database.reading() as connection:
        return accounts.key_holder(connection, KEYS, presented, now)


def new_key(database, clock, scopes=accounts.SCOPES):
    return accounts.new_key(database, KEYS, clock, "page", scopes=scopes)


def test_a_link_opens_one_session_with_all_scopes(database, clock):
    link = link_of(database, clock)
    opened = accounts.open_page(database, KEYS, clock, link=link)
    assert holder_of(database, opened.token, clock()).scopes == set(accounts.SCOPES)
    with pytest.raises(Problem, match="cannot be used"):
        accounts.open_page(database, KEYS, clock, link=link)
    # The first time was not undone by the second.
    assert holder_of(database, opened.token, clock()) is not None
    with database.reading() as connection:
        written = [entry["action"] for entry in audit.entries(connection, opened.tenant_id, "")]
    assert written == ["tenant.created", "link.created", "page.opened"]


def test_of_many_that_use_a_link_at_once_one_succeeds(database, clock):
    link, together = link_of(database, clock), threading.Barrier(8)

    def use(_):
        together.wait()
        try:
            return accounts.open_page(database, KEYS, clock, link=link)
        except Problem as problem:
            return problem.kind

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, range(8)))
    assert found.count("link-not-valid") == 7
    with database.reading() as connection:
        count = select(func.count()).select_from(api_keys).where(api_keys.c.kind == "session")
        assert connection.execute(count).scalar_one() == 1


def test_links_and_sessions_end_by_themselves(database, clock):
    late = link_of(database, clock)
    opened = accounts.open_page(database, KEYS, clock, link=link_of(database, clock))
    clock.now += HOUR
    with pytest.raises(Problem, match="cannot be used"):
        accounts.open_page(database, KEYS, clock, link=late)
    clock.now += HOUR - 1
    assert holder_of(database, opened.token, clock()) is not None
    assert holder_of(database, opened.token, clock() + 1) is None
    key_id = opened.token.split("_")[1]
    with database.reading() as connection:
        assert accounts.key_is_valid(connection, KEYS, key_id, clock())
        assert not accounts.key_is_valid(connection, KEYS, key_id, clock() + 1)


def test_a_session_that_a_key_opened_ends_with_it_or_after_an_hour(database, clock):
    key_id, key = new_key(database, clock)
    opened = [accounts.open_page(database, KEYS, clock, key=key) for _ in range(2)]
    first, second = opened[0].token, opened[1].token
    assert holder_of(database, first, clock() + HOUR - 1) is not None
    assert holder_of(database, first, clock() + HOUR) is None
    accounts.end_session(database, clock, first.split("_")[1], opened[0].tenant_id)
    assert holder_of(database, first, clock()) is None
    assert database.write(lambda connection: accounts.revoke_key(connection, key_id, clock()))
    assert holder_of(database, second, clock()) is None
    with pytest.raises(Problem, match="not valid"):
        accounts.open_page(database, KEYS, clock, key=key)


def test_only_a_key_with_the_scope_admin_opens_a_session(database, clock):
    _, key = new_key(database, clock, ["enrol", "verify", "watch"])
    with pytest.raises(Problem, match="not allowed"):
        accounts.open_page(database, KEYS, clock, key=key)
    session = accounts.open_page(database, KEYS, clock, link=link_of(database, clock)).token
    for wrong in (session, link_of(database, clock), "kdk_", ""):
        with pytest.raises(Problem, match="not valid"):
            accounts.open_page(database, KEYS, clock, key=wrong)


def test_one_kind_is_not_taken_for_another(database, clock):
    """The secret of a link does not open the door as a key, nor the other way round."""
    link = link_of(database, clock)
    _, key = new_key(database, clock)
    for presented in (link.replace("kdl_", "kdk_"), link.replace("kdl_", "kds_"), f"kds{key[3:]}"):
        assert holder_of(database, presented, clock()) is None
    with pytest.raises(Problem, match="cannot be used"):
        accounts.open_page(database, KEYS, clock, link=f"kdl{key[3:]}")
    with database.reading() as connection:
        assert [one.id for one in accounts.list_keys(connection)] == [key.split("_")[1]]


def test_the_page_s_tenant_needs_fewer_samples_unless_it_says_otherwise(database, clock):
    session = accounts.open_page(database, KEYS, clock, link=link_of(database, clock))

    def needed():
        with database.reading() as connection:
            return accounts.find_tenant(connection, KEYS, session.tenant_id).settings.samples_needed

    assert needed() == 3
    settings = encoded(structs.replace(accounts.PAGE_SETTINGS, samples_needed=7)).decode()
    database.write(lambda c: accounts.change_tenant(c, KEYS, session.tenant_id, settings=settings))
    link_of(database, clock)
    assert needed() == 7


def test_keys_of_the_first_version_are_keys(database_url):
    """A database of that version, brought up to date: its keys are valid, and nothing of it is lost."""
    database = Database(database_url)
    config = upgrading._config()
    with upgrading._upgrading(database) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    (name,), secret = KEYS.ids, "s" * 43
    proof = KEYS.key(name).seal(EARLIER_PROOF, f"master_keys/{name}")
    rows = {
        "master_keys": {"id": name, "proof": proof, "retired": False},
        "tenants": {
            "id": "t", "name": "shop", "created_at": 0, "settings": "{}", "audit_number": 0,
            "audit_hash": b"", "wrapped_key": KEYS.wrap(DataKey.new(), "tenants/t"),
        },
        "api_keys": {
            "id": "0" * 16, "tenant_id": "t", "name": "", "scopes": "verify", "created_at": 0,
            "hash": hashlib.sha256(secret.encode()).digest(),
        },
        "users": {
            "id": "u", "tenant_id": "t", "name": "ada", "created_at": 0, "wrapped_key": b"", "failures": 0,
            "failed_at": 0,
        },
        "populations": {
            "id": "p", "tenant_id": "t", "device": "keyboard", "vocabulary": "keys", "background": "",
            "created_at": 0, "learnt_here": True, "contents": b"",
        },
        "members": {"population_id": "p", "user_id": "u"},
    }  # fmt: skip

    def fill(connection):
        for table, row in rows.items():
            values = ", ".join(f":{column}" for column in row)
            connection.execute(text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"), row)

    database.write(fill)
    upgrading.upgrade(database)
    assert upgrading.check(database).problems == ()
    key = f"kdk_{'0' * 16}_{secret}"
    assert holder_of(database, key, 0) is None
    open_master_keys(database, None, {VARIABLE: base64.b64encode(b"k" * 32).decode()})
    assert holder_of(database, key, 0).kind == "key"
    with database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(members)).scalar_one() == 1
    database.close()
