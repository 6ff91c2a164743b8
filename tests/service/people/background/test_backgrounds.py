"""Backgrounds stored by an earlier version of keydyn: treated as absent, noted once, and learnt again."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sqlalchemy import select, update

from keydyn import files
from keydyn.decisions import shipped_background
from keydyn.decisions.folder.enrolled_bytes import background_bytes, background_of
from keydyn.service.people.background import populations as own_populations
from keydyn.service.people.background.backgrounds import find_background
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.background.populations import PopulationKind
from keydyn.service.people.context import Context, Write
from keydyn.service.storage.tables import populations
from keydyn.service.wire.both_ways import Text
from tests.fuzz.fuzzed_models import unpacked
from tests.service.people.background.test_own_people import enrol, tenant_of, verified
from tests.service.running import KEYS

KIND = PopulationKind("keyboard", "keys")


def of_an_earlier_version():
    """A background whose calibration is for one amount of typing, as in earlier versions."""
    header, tensors = unpacked(background_bytes(shipped_background()))
    about, arrays = unpacked(tensors["calibration"].tobytes())
    amounts = ("enrolled", "n_people", "hours")
    one = {
        name: array if name == "lengths" else array[0]
        for name, array in arrays.items()
        if name not in amounts
    }
    values = {name: value for name, value in about.items() if name not in ("unsure", "sha256")}
    counts = {"n_people": int(arrays["n_people"][0]), "hours": float(arrays["hours"][0])}
    old = files.packed({**values, **counts, "class": "Calibration"}, one)
    tensors["calibration"] = np.frombuffer(old, dtype=np.uint8)
    return files.packed({name: value for name, value in header.items() if name != "sha256"}, tensors)


def stored(service, learnt_here):
    """Store a population of the tenant as an earlier version did, and return its id."""
    tenant = tenant_of(service)
    shipped = shipped_background()
    background = shipped.with_cohort({})
    own_populations.install(service.app.state.context, Write(tenant, "operator"), KIND, background)
    service.idle()

    def change(connection):
        found = connection.execute(select(populations.c.id)).scalar_one()
        sealed = tenant.key.seal(of_an_earlier_version(), f"populations/{found}/contents")
        values = {"contents": sealed, "learnt_here": learnt_here}
        connection.execute(update(populations).where(populations.c.id == found).values(values))
        return found

    return service.database.write(change)


def test_such_a_background_is_of_another_kind():
    with pytest.raises(ValueError, match="the calibration holds a Calibration, not a Calibrations"):
        background_of(of_an_earlier_version())


@pytest.mark.parametrize("learnt_here", [True, False])
def test_what_cannot_be_read_is_absent_and_noted_once(service, client, caplog, learnt_here):
    enrol(service, client, 0)
    population = stored(service, learnt_here)
    # A process that starts with this version.
    context = Context(service.database, KEYS, service.clock)
    caplog.set_level(logging.WARNING, "keydyn.service.people.background.backgrounds")
    for _ in range(2):
        with service.database.reading() as connection:
            place = TenantPlace(tenant_of(service), Text(), "keyboard")
            found = find_background(connection, context, place)
        assert found is shipped_background()
    (noted,) = [one.getMessage() for one in caplog.records if population in one.getMessage()]
    assert ("learnt again" if learnt_here else "install it again") in noted
    # Changes are made in turn: after this one, the job is there.
    service.database.write(lambda connection: None)
    service.idle()
    left = client.get("/v1/populations").json()["populations"]
    # There are too few people to learn it again: it goes. One that was installed stays until another comes.
    assert len(left) == (0 if learnt_here else 1)


def test_requests_are_answered_meanwhile(service, client):
    enrol(service, client, 0)
    population = stored(service, learnt_here=False)
    service.app.state.context.backgrounds.drop(f"{tenant_of(service).id}/{population}/0")
    assert verified(client, 0)["answer"] == "accept"
    assert client.get("/v1/error-rates").status_code == 200
    on_phones = client.get("/v1/error-rates", params={"device": "phone"})
    assert on_phones.json()["type"].endswith("no-population")
