"""Fixtures for attacks: a service for each file."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count

import pytest

from tests.service.running import running
from tests.service.typists import enrol

NAMES = (f"tenant-{n}" for n in count())


@contextmanager
def serving(tmp_path_factory, **settings):
    """Run a service with these settings on a new SQLite database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('attacks') / 'service.db'}"
    with running(url, **settings) as found:
        yield found


@pytest.fixture(scope="module")
def attacked(request, tmp_path_factory):
    """A service for all tests of a file, with the `SETTINGS` of the file."""
    with serving(tmp_path_factory, **getattr(request.module, "SETTINGS", {})) as found:
        yield found


def with_ada(service):
    """A client of a new tenant, in which ada is enrolled."""
    found = service.client(service.key(next(NAMES)))
    enrol(found, "ada", 0)
    return found
