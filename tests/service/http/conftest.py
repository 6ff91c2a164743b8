"""A running service for each test."""

from __future__ import annotations

import pytest

from tests.service.conftest import opened
from tests.service.running import running


@pytest.fixture
def service(sqlite_url):
    """A running service on SQLite."""
    for database in opened(sqlite_url):
        database.close()
    with running(sqlite_url) as found:
        yield found


@pytest.fixture
def client(service):
    """A client with all scopes."""
    return service.client()
