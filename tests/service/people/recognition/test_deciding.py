"""Two processes that verify the same person: each uses what the other has accepted, copies included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from sqlalchemy import select, update

from keydyn.datasets import make_typists
from keydyn.decisions.enrolled import DRIFTED, Enrolled
from keydyn.decisions.liveness import copies
from keydyn.service.accounts import find_tenant, tenant_named
from keydyn.service.jobs import queue, webhooks
from keydyn.service.people import registry, stored_templates
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedKeys, TypedSample
from keydyn.service.people.recognition import deciding, enrolment
from keydyn.service.people.recognition.decision_rows import ADVICE
from keydyn.service.people.rows import person_named
from keydyn.service.storage.tables import decisions, profiles, users
from keydyn.service.wall_clock import wall_clock
from keydyn.service.wire.both_ways import Text
from tests.service.people.conftest import logged, person_of, typed_by
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


@pytest.fixture
def enrolled(context, write):
    """Work for a tenant with one person, ada, whose enrolment is complete and learnt."""
    settings = structs.replace(write.tenant.settings, samples_needed=3)
    write = replace(write, tenant=replace(write.tenant, settings=settings))
    for session in range(3):
        enrolment.add_sample(context, write, "ada", typed_by(0, session))
    deciding.subject_of(context, TenantPlace(write.tenant, TEXT, "keyboard"), "ada")
    return write


def without_updating(write):
    settings = structs.replace(write.tenant.settings, updating=False)
    return replace(write, tenant=replace(write.tenant, settings=settings))


def profile_row(context):
    with context.database.reading() as connection:
        return connection.execute(select(profiles)).one()


def decided(context):
    with context.database.reading() as connection:
        return connection.execute(select(decisions).order_by(decisions.c.created_at)).all()


def test_a_decision_is_kept_noted_and_belongs_to_the_person(context, enrolled):
    done, ada = [], person_of(context, enrolled)
    write = replace(enrolled, finish=lambda _, answer, user: done.append((answer, user)), actor="key:k")
    answers = []
    for user in (0, 1):
        context.clock.now += 1000
        answers.append(deciding.verify(context, write, "ada", typed_by(user, 6), "low"))
    assert [one.answer for one in answers] == ["accept", "unsure"]
    assert done == [(one, ada.id) for one in answers]
    now = context.clock()
    kept = [(one.id, one.user_id, one.created_at, one.answer, one.actor) for one in decided(context)]
    assert kept == [
        (one.id, ada.id, now - 1000 + 1000 * n, one.answer, "key:k") for n, one in enumerate(answers)
    ]
    # So low a level does not fit into the budget.
    assert [(one.level, one.judged_level) for one in decided(context)] == [("low", "standard")] * 2
    noted = [(one["at"], one["action"], one["details"]) for one in logged(context, enrolled)[-2:]]
    assert noted == [
        (one.created_at, "verified", {"answer": one.answer, "level": "low", "judged": "standard"})
        for one in decided(context)
    ]
    assert person_of(context, enrolled).failures == 1


def make_meanwhile(changes, context, monkeypatch):
    """Make each of these changes to the database while a decision is being made, one per decision."""
    usual = deciding.verifier_for

    def meanwhile(*arguments):
        if changes:
            change = changes.pop()
            context.database.write(lambda connection: connection.execute(change))
        return usual(*arguments)

    monkeypatch.setattr(deciding, "verifier_for", meanwhile)


@pytest.mark.parametrize("updating", [True, False])
def test_what_was_decided_about_a_profile_that_has_changed_since_is_decided_again(
    context, enrolled, monkeypatch, updating
):
    write, before = enrolled if updating else without_updating(enrolled), profile_row(context)
    others = [update(profiles).values(version=profiles.c.version + 1)]
    make_meanwhile(others, context, monkeypatch)
    found = deciding.verify(context, write, "ada", typed_by(0, 6), "standard")
    assert (found.answer, found.updated, others) == ("accept", updating, [])
    after = profile_row(context)
    assert after.version == before.version + 2
    assert (after.template != before.template) is updating
    # Nothing of the first time is kept.
    assert [one.id for one in decided(context)] == [found.id]
    assert person_of(context, enrolled).remembered == 4


def test_a_sample_that_another_one_overtakes_is_decided_again(context, enrolled, monkeypatch):
    """The other one could be its copy."""
    make_meanwhile([update(users).values(remembered=users.c.remembered + 1)], context, monkeypatch)
    assert deciding.verify(context, enrolled, "ada", typed_by(0, 6), "standard").answer == "accept"
    assert len(decided(context)) == 1
    assert person_of(context, enrolled).remembered == 5


def test_what_is_kept_in_memory_is_what_is_stored(context, enrolled):
    for session in (6, 7):
        deciding.verify(context, enrolled, "ada", typed_by(0, session), "standard")
        profile, ada = profile_row(context), person_of(context, enrolled)
        kept = context.people.get(profile.id, profile.version)
        fresh = Context(context.database, KEYS, context.clock)
        place = TenantPlace(enrolled.tenant, TEXT, "keyboard")
        stored = deciding.subject_of(fresh, place, "ada").known
        assert kept.drift == pytest.approx(stored.enrolled.drift, rel=1e-5)
        assert len(kept.fingerprints.offsets) == len(copies.Fingerprints.none().offsets)
        held = context.remembered.get(ada.id, ada.remembered)
        assert (held.rows, held.last) == (stored.remembered.rows, stored.remembered.last)


@pytest.mark.parametrize("reported_at", [None, 5])
def test_a_template_that_has_drifted_is_reported_once(context, enrolled, monkeypatch, reported_at):
    def prepare(connection):
        webhooks.create(connection, enrolled.tenant, "https://example.org/", ["template.drifted"], now=0)
        connection.execute(update(profiles).values(drift_reported_at=reported_at))

    context.database.write(prepare)
    monkeypatch.setattr(Enrolled, "drift", DRIFTED)
    assert deciding.verify(context, enrolled, "ada", typed_by(0, 6), "standard").updated
    row = profile_row(context)
    assert row.drift == DRIFTED
    assert row.drift_reported_at == (reported_at or context.clock())
    lease = context.database.write(lambda c: queue.take(c, "webhook", context.clock()))
    if reported_at is not None:
        assert lease is None
        return
    report = lease.opened(KEYS).payload["report"]
    told = {"user": "ada", "text": "free", "device": "keyboard"}
    assert (report["type"], report["data"]) == ("template.drifted", told)


def test_a_delay_that_lies_in_the_future_begins_when_the_next_attempt_is_made(context, enrolled):
    context.clock.now += 10_000
    deciding.verify(context, enrolled, "ada", typed_by(1, 6), "high")
    context.clock.now -= 10_000
    deciding.verify(context, enrolled, "ada", typed_by(1, 7), "high")
    found = person_of(context, enrolled)
    assert (found.failures, found.failed_at) == (2, context.clock())


def test_each_caller_is_told_as_much_as_they_may_know(context, enrolled):
    told = {}
    for n, much in enumerate(("answer", "scores", "everything")):
        write = replace(enrolled, told=much)
        told[much] = deciding.verify(context, write, "ada", typed_by(1, 6 + n), "high")
    assert not hasattr(told["answer"], "llr")
    assert told["scores"].llr % 0.5 == 0.0
    assert told["everything"].llr % 0.5 != 0.0
    assert told["everything"].target_false_match_rate == enrolled.tenant.settings.levels.high
    assert told["everything"].wait_s == 0
    assert told["answer"].advice == ADVICE[told["answer"].answer] != ""
