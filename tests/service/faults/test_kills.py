"""The service killed at random moments: nothing acknowledged is lost, nothing is half-written."""

from __future__ import annotations

import random
import time

import pytest

from tests.service.faults.conftest import busy, note, prepared
from tests.service.faults.whole import assert_whole
from tests.waiting import wait_until

TIMES = [2, pytest.param(100, marks=pytest.mark.slow)]


@pytest.mark.parametrize("times", TIMES)
def test_the_service_is_killed(served, database_url, times):
    chance = random.Random(times)
    key = prepared(database_url)
    restarts = []
    with busy(served.url, key) as acknowledged:
        for _ in range(times):
            began = time.monotonic()
            served.start()
            restarts.append(time.monotonic() - began)
            before = acknowledged.total()
            wait_until(lambda before=before: acknowledged.total() > before)
            time.sleep(chance.uniform(0.0, 0.5))
            served.kill()
            assert_whole(database_url, acknowledged)
        served.start()
    served.kill()
    assert_whole(database_url, acknowledged, settled=True)
    if times == 100:
        kind = database_url.partition(":")[0]
        note(
            f"killed-{kind}",
            f"The service killed, on {kind}",
            kills=times,
            users_acknowledged=len(acknowledged.users),
            samples_acknowledged=len(acknowledged.samples),
            verifications_acknowledged=acknowledged.verified.total(),
            watched_sessions=len(acknowledged.durable),
            keystrokes_reported_durable=sum(acknowledged.durable.values()),
            longest_restart_in_seconds=round(max(restarts), 2),
        )
