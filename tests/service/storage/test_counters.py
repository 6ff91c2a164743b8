"""Counters on both databases: everything is counted, even with several connections at once."""

from __future__ import annotations

import threading

from keydyn.service.storage import counters
from tests.service.jobs.conftest import START, new_tenant


def test_what_is_added_at_the_same_time_is_all_counted(database):
    tenant = new_tenant(database)
    seen = []

    def add(more):
        seen.append(
            database.write(lambda c: counters.add(c, tenant.id, "tries", more, START, tenant.user_id))
        )

    threads = [threading.Thread(target=add, args=(more,)) for more in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each saw those before it, and no two saw the same.
    assert len(set(seen)) == 8
    assert max(seen) == sum(range(1, 9))
    with database.reading() as connection:
        assert counters.amount(connection, tenant.id, "tries") == 36
        assert counters.amount(connection, tenant.id, "other") == 0
        assert counters.amount(connection, "nobody", "tries") == 0
