"""Samples are deleted at once if their retention is shortened, not when they would have expired."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from keydyn.service.storage.tables import samples
from keydyn.service.wall_clock import DAY
from tests.service.typists import enrol, keystrokes_of


def stored(service):
    with service.database.reading() as connection:
        return connection.execute(select(func.count()).select_from(samples)).scalar_one()


@pytest.mark.parametrize(("days", "left"), [(2, 1), (4, 6), (0, 0)])
def test_what_is_now_too_old_is_deleted(service, client, days, left):
    client.put("/v1/settings", json={"samples_needed": 6})
    enrol(client, "ada", 0)
    service.clock.now += 3 * DAY
    client.post("/v1/users/ada/samples", json={"keystrokes": keystrokes_of(0, 5)})
    service.idle()
    another = service.client(service.key("another"))
    enrol(another, "bob", 1, samples=1)
    service.idle()
    kept = client.put("/v1/settings", json={"samples_needed": 6, "retention_days": days})
    assert kept.status_code == 200
    service.idle()
    # Those of the other tenant stay.
    assert stored(service) == left + 1
