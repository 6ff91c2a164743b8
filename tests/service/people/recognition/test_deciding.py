"""Two processes that verify the same person: each uses what the other has accepted, copies included."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions.liveness import copies
from keydyn.service.accounts import find_tenant, tenant_named
from keydyn.service.people import registry, stored_templates
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedKeys, TypedSample
from keydyn.service.people.recognition import deciding, enrolment
from keydyn.service.people.rows import person_named
from keydyn.service.wall_clock import wall_clock
from keydyn.service.wire.both_ways import Text
from tests.service.running import KEYS

ENROLLED, TEXT = 5, Text()


@pytest.fixture
def typed():
    """Samples of one person."""
    frame = make_typists(1, 20, text="free", n_keys=60, random_state=2)
    columns = ("keyname", "timepress", "timerelease")
    typed = [
        TypedKeys(*(tuple(part[name].tolist()) for name in columns)) for _, part in frame.groupby("session")
    ]
    return [TypedSample(one, TEXT, "keyboard") for one in typed]


def verified(context, tenant, sample):
    return deciding.verify(context, Write(tenant, "service"), "ada", sample, "low")


def known(context, tenant):
    """Check that a process keeps those fingerprints of ada that are stored; return their rows."""
    kept = deciding.subject_of(context, TenantPlace(tenant, TEXT, "keyboard"), "ada").known
    with context.database.reading() as connection:
        person = person_named(connection, context, tenant, "ada")
        stored = stored_templates.remembered(connection, Context(context.database, KEYS, wall_clock), person)
    assert (kept.remembered.rows, kept.remembered.last) == (stored.rows, stored.last)
    assert kept.enrolled.fingerprints is kept.remembered.fingerprints
    np.testing.assert_array_equal(kept.enrolled.fingerprints.hashes, stored.fingerprints.hashes)
    np.testing.assert_array_equal(kept.enrolled.fingerprints.offsets, stored.fingerprints.offsets)
    return stored.rows


def test_fingerprints_are_read_on_from_where_a_process_was(database, typed, monkeypatch):
    monkeypatch.setattr(copies, "MOST_SAMPLES", 10)
    tenant_id = database.write(lambda connection: tenant_named(connection, KEYS, "t", 0))
    with database.reading() as connection:
        tenant = find_tenant(connection, KEYS, tenant_id)
    one, other = (Context(database, KEYS, wall_clock) for _ in range(2))
    registry.create(one, Write(tenant, "service"), "ada")
    for sample in typed[:ENROLLED]:
        enrolment.add_sample(one, Write(tenant, "service"), "ada", sample)
    accepted = 0
    for n, sample in enumerate(typed[ENROLLED:]):
        here, there = (one, other) if n % 3 else (other, one)
        if verified(here, tenant, sample).accepted:
            accepted += 1
            # The other process has not seen it, and recognises it all the same.
            copied = verified(there, tenant, sample)
            assert any("a copy" in reason for reason in copied.reasons)
            registry.unblock(one, Write(tenant, "service"), "ada", budget=True)
        assert known(one, tenant) == known(other, tenant) == min(ENROLLED + accepted, 10)
    assert accepted > 6
    registry.unblock(one, Write(tenant, "service"), "ada", reset=True)
    for sample in typed[:ENROLLED]:
        enrolment.add_sample(other, Write(tenant, "service"), "ada", sample)
    assert known(one, tenant) == known(other, tenant)
