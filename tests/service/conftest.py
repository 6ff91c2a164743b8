"""Fixtures: databases, SQLite always and PostgreSQL if it is installed, and a running service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from keydyn.service.storage.database import Database
from tests.left_out import leave_out
from tests.service.databases import make_tables
from tests.service.postgres import PostgresServer, binary
from tests.service.running import Service, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process."""
    if binary("pg_ctl") is None or binary("initdb") is None:
        leave_out("PostgreSQL")
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'service.db'}"


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty database, or of one with all tables if the test uses `database`."""
    template = postgres.with_tables() if "database" in request.fixturenames else None
    with postgres.new_database(template=template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database of each kind in turn."""
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database of each kind in turn, with all tables."""
    yield from opened(database_url)


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    """A SQLite database with all tables, for tests that do not depend on the kind."""
    yield from opened(sqlite_url)


def opened(url: str) -> Iterator[Database]:
    database = Database(make_tables(url))
    yield database
    database.close()


@pytest.fixture
def service(request: pytest.FixtureRequest, sqlite_url: str) -> Iterator[Service]:
    """A running service on SQLite, with the settings that a test requests."""
    with running(sqlite_url, **getattr(request, "param", {})) as found:
        yield found


@pytest.fixture
def client(service: Service) -> httpx.Client:
    """A client with all scopes."""
    return service.client()
