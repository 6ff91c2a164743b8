"""Slow work requested many times at once: only a little is done for each tenant at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

from keydyn.service.http.limits import OF_A_TENANT, WAITING
from keydyn.service.http.routes import recognition
from keydyn.service.problems import Problem
from tests.service.running import http_get
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

ASKED = 48
SAMPLE = {"keystrokes": keystrokes_of(0, 9)}


def test_identifications_of_one_tenant_leave_the_service_to_others(attacked, monkeypatch):
    """As long as none of them comes to an end, health, and another tenant, are answered all the same."""
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    changing, go_on = threading.Condition(), threading.Event()

    def slow(context, write, *_):
        tenant = write.tenant.name
        with changing:
            running[tenant] = running.get(tenant, 0) + 1
            most[tenant] = max(most.get(tenant, 0), running[tenant])
            changing.notify_all()
        assert go_on.wait(PATIENCE)
        with changing:
            running[tenant] -= 1
        raise Problem(409, "nobody-enrolled", "Nobody is enrolled")

    monkeypatch.setattr(recognition, "identify", slow)
    greedy, other = attacked.key("greedy"), attacked.client(attacked.key("other"))
    clients = [attacked.client(greedy) for _ in range(ASKED)]
    with ThreadPoolExecutor(ASKED + 1) as pool:
        asked = [pool.submit(client.post, "/v1/identify", json=SAMPLE) for client in clients]
        refused = [
            answer.result()
            for _, answer in zip(range(ASKED - OF_A_TENANT - WAITING), as_completed(asked), strict=False)
        ]
        for answer in refused:
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) >= 1
        assert http_get(f"{attacked.url}/healthz").status_code == 200
        enrol(other, "ada", 0)
        assert other.post("/v1/users/ada/verify", json=SAMPLE).status_code == 200
        theirs = pool.submit(other.post, "/v1/identify", json=SAMPLE)
        with changing:
            assert changing.wait_for(lambda: running.get("other"), PATIENCE)
        go_on.set()
        answers = [answer.result() for answer in asked]
        assert theirs.result().status_code == 409
    assert sorted(answer.status_code for answer in answers) == (
        [409] * (OF_A_TENANT + WAITING) + [429] * len(refused)
    )
    assert most == {"greedy": OF_A_TENANT, "other": 1}
