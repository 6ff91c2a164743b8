"""The databases of the service's own tests."""

from tests.service.conftest import database_url, postgres, postgres_url, sqlite_url

__all__ = ["database_url", "postgres", "postgres_url", "sqlite_url"]
