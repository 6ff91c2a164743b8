"""Fixtures for databases, which are those of the service's tests."""

from tests.service.conftest import database_url, postgres, postgres_url, sqlite_url

__all__ = ["database_url", "postgres", "postgres_url", "sqlite_url"]
