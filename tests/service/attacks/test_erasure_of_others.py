"""Erasing one person of a tenant's own population does not end the enrolment of the others."""

from __future__ import annotations

from sqlalchemy import select

from keydyn.datasets import make_typists
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.periodic import expire
from keydyn.service.people.stored_templates import drop_unneeded
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import populations, profiles
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.requests import TenantSettings
from tests.service.people.background.test_populations import TEXT, enrol_everybody, positions_of, verify
from tests.service.storage.rows import add_tenant, add_user

PEOPLE = 12


def test_the_others_still_verify_after_their_samples_have_expired(service, client):
    typed = positions_of(make_typists(n_users=PEOPLE, n_samples=6, text="fixed", random_state=3))
    client.put("/v1/settings", json={"learn_from_people": True})
    enrol_everybody(client, typed)
    client.post("/v1/populations", json={"text": TEXT})
    service.idle()
    service.clock.now += 31 * DAY
    expire(service.database, service.clock())
    assert client.delete("/v1/users/user-0").json()["population"] == "being learnt again without them"
    service.idle()
    own, others = (
        [verify(client, f"user-{n}", typed[(n + k) % PEOPLE][5]) for n in range(1, PEOPLE)] for k in (0, 1)
    )
    assert [one.status_code for one in (*own, *others)] == [200] * 2 * (PEOPLE - 1)
    # Not only answered: each still resembles their own template more than another person does.
    better = [one.json()["llr"] > other.json()["llr"] for one, other in zip(own, others, strict=True)]
    assert sum(better) >= PEOPLE - 2
    ranked = service.page().post("/v1/identify", json={"keystrokes": typed[1][5], "text": TEXT}).json()
    assert len(ranked["candidates"]) > 0


def test_an_earlier_population_is_kept_while_a_template_rests_on_it(database):
    """On both kinds of database, and for each tenant by itself."""
    tenants = "t", "other"

    def change(connection):
        for tenant in tenants:
            add_tenant(connection, tenant)
            add_user(connection, f"user of {tenant}", tenant)
            for name, replaced_at in (("used", 1), ("unused", 1), ("in use", None)):
                row = {"id": f"{name} by {tenant}", "tenant_id": tenant, "device": "keyboard"}
                row |= {"vocabulary": "keys", "background": name, "created_at": 0, "learnt_here": True}
                connection.execute(populations.insert().values(**row, contents=b"", replaced_at=replaced_at))
        plain = dict.fromkeys(("samples", "keystrokes", "known_keystrokes", "fitted_samples", "version"), 0)
        row = {"id": "p", "user_id": "user of t", "text": "free", "device": "keyboard", "created_at": 0}
        connection.execute(profiles.insert().values(**row, **plain, clock_tick=0, drift=0, background="used"))

    def left():
        with database.reading() as connection:
            return set(connection.execute(select(populations.c.id)).scalars())

    database.write(change)
    tenant = Tenant("t", "t", TenantSettings(), DataKey.new())
    database.write(lambda connection: drop_unneeded(connection, tenant))
    of_the_other = {f"{name} by other" for name in ("used", "unused", "in use")}
    assert left() == {"used by t", "in use by t"} | of_the_other
    database.write(lambda connection: connection.execute(profiles.update().values(background="in use")))
    database.write(lambda connection: drop_unneeded(connection, tenant))
    assert left() == {"in use by t"} | of_the_other
