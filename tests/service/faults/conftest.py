"""Fixtures: a service in processes that can be killed, and clients that keep it busy."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

from keydyn.service import accounts
from keydyn.service.jobs import webhooks
from keydyn.service.storage.database import Database
from keydyn.service.wire.both_ways import encoded
from keydyn.service.wire.requests import TenantSettings
from tests.service.databases import make_tables
from tests.service.faults.lives import ENROLLED, Acknowledged, Life
from tests.service.faults.served import Loaded, Served
from tests.service.faults.whole import KEYS
from tests.service.running import STARTED
from tests.waiting import PATIENCE

LIVES = 3
RESULTS = Path("out/faults")


def prepared(url):
    """Prepare a database with a tenant, and return its key; no webhook is answered, so that its jobs stay."""
    database = Database(make_tables(url))

    def change(connection):
        owner = accounts.tenant_named(connection, KEYS, "default", STARTED)
        settings = encoded(TenantSettings(samples_needed=ENROLLED)).decode()
        accounts.change_tenant(connection, KEYS, owner, settings=settings)
        tenant = accounts.find_tenant(connection, KEYS, owner)
        events = ["enrolment.complete"]
        webhooks.create(connection, tenant, "https://127.0.0.1:9/", events, now=STARTED)
        return accounts.create_key(connection, KEYS, owner, "test", accounts.SCOPES, STARTED)[1]

    try:
        return database.write(change)
    finally:
        database.close()


@contextmanager
def busy(url, key, number=LIVES):
    """Run clients during the block; yields what was acknowledged, which is complete after the block."""
    acknowledged = Acknowledged()
    lives = [Life(url, key, n, acknowledged) for n in range(number)]
    for life in lives:
        life.start()
    try:
        yield acknowledged
    finally:
        for life in lives:
            life.stop()
        for life in lives:
            life.join(2 * PATIENCE)
    for life in lives:
        assert not life.is_alive()
        if life.error is not None:
            raise life.error


@pytest.fixture(scope="package")
def loaded():
    """The parent of all processes of the service, for all tests."""
    found = Loaded()
    yield found
    found.close()


@pytest.fixture
def served(loaded, database_url):
    """A service on each kind of database in turn."""
    found = Served(loaded, database_url)
    yield found
    found.close()


def note(name, title, **found):
    """Keep the counts of a long run that has passed, for the documentation."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = [[words.replace("_", " "), str(count)] for words, count in found.items()]
    about = {"title": title, "columns": ["", "count"], "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
