"""Receivers that never answer delay the reports of their own tenant only."""

from __future__ import annotations

import threading

from keydyn.service.accounts import find_tenant, tenant_of_key
from keydyn.service.jobs.delivery import WebhookDelivery
from keydyn.service.jobs.webhooks import announce
from tests.service.running import KEYS
from tests.waiting import PATIENCE

SETTINGS = {"private_webhooks": True}


def tenant_of(service, client):
    key_id = client.headers["authorization"].split("_")[1]
    with service.database.reading() as connection:
        return find_tenant(connection, KEYS, tenant_of_key(connection, key_id))


def test_slow_receivers_of_one_tenant_do_not_delay_those_of_another(attacked, monkeypatch):
    held, arrived, go_on = [], threading.Semaphore(0), threading.Event()
    answered = threading.Event()

    async def posted(self, url, headers, body):
        """Replace the network: slow receivers wait for `go_on`, others answer at once."""
        if url.host == "slow.example":
            held.append(url)
            arrived.release()
            assert go_on.wait(PATIENCE)
        else:
            answered.set()
        return 200

    monkeypatch.setattr(WebhookDelivery, "_post", posted)
    slow, quick = attacked.client(attacked.key("slow")), attacked.client(attacked.key("quick"))
    tenants = {}
    for client, name in ((slow, "slow"), (quick, "quick")):
        hook = {"url": f"https://{name}.example/hook", "events": ["session.locked"]}
        assert client.post("/v1/webhooks", json=hook).status_code == 201
        tenants[name] = tenant_of(attacked, client)

    def report(name):
        attacked.database.write(
            lambda connection: announce(connection, tenants[name], "session.locked", {}, now=attacked.clock())
        )

    try:
        for _ in range(40):
            report("slow")
        assert arrived.acquire(timeout=PATIENCE)
        report("quick")
        assert answered.wait(PATIENCE)
        # All the while the others could not be delivered.
        assert len(held) <= 2
    finally:
        go_on.set()
    attacked.idle()
