"""Enrolment during other changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from sqlalchemy import delete, select, update

from keydyn.service.jobs import queue, webhooks
from keydyn.service.people import registry
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.recognition import enrolment
from keydyn.service.people.recognition.deciding import subject_of
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import jobs, profiles, samples
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.both_ways import Text
from tests.service.people.conftest import logged, person_of, typed_by
from tests.service.running import KEYS


def test_a_sample_that_comes_during_a_reset_is_the_first_of_the_new_enrolment(context, write, monkeypatch):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    checked, resets = enrolment._checked, [lambda: registry.unblock(context, write, "ada", reset=True)]

    def meanwhile(*arguments):
        if resets:
            resets.pop()()
        return checked(*arguments)

    monkeypatch.setattr(enrolment, "_checked", meanwhile)
    added = enrolment.add_sample(context, write, "ada", typed_by(0, 1))
    assert (added.profile.samples, resets) == (1, [])


def test_a_person_with_too_few_samples_is_not_enrolled_and_is_told_how_many_there_are(context, write):
    for there in range(2):
        with pytest.raises(Problem) as caught:
            subject_of(context, TenantPlace(write.tenant, Text(), "keyboard"), "ada")
        found = caught.value
        assert (found.status, found.kind, found.more["samples"]) == (409, "not-enrolled", there)
        enrolment.add_sample(context, write, "ada", typed_by(0, there))


def with_settings(write, **settings):
    tenant = write.tenant
    return replace(write, tenant=replace(tenant, settings=structs.replace(tenant.settings, **settings)))


def rows(context, table):
    with context.database.reading() as connection:
        return connection.execute(select(table)).all()


def test_each_sample_is_counted_noted_and_learnt_and_the_last_completes_the_enrolment(context, write):
    done = []
    write = with_settings(write, samples_needed=2, retention_days=7)
    write = replace(write, finish=lambda _, answer, user: done.append((answer, user)))
    ada, typed = person_of(context, write), [typed_by(0, session) for session in range(2)]

    def hook(connection):
        webhooks.create(connection, write.tenant, "https://example.org/", ["enrolment.complete"], now=0)

    context.database.write(hook)
    for sample in typed:
        context.clock.now += 1000
        added = enrolment.add_sample(context, write, "ada", sample)
    now, (profile,) = context.clock(), rows(context, profiles)
    keystrokes = sum(len(sample.typed) for sample in typed)
    assert (profile.samples, profile.keystrokes, profile.complete_at) == (2, keystrokes, now)
    assert 0 < profile.known_keystrokes <= keystrokes
    assert added.profile.complete
    assert [(one.number, one.created_at, one.keystrokes) for one in rows(context, samples)] == [
        (1, now - 1000, len(typed[0].typed)),
        (2, now, len(typed[1].typed)),
    ]
    assert {one.expires_at - one.created_at for one in rows(context, samples)} == {7 * DAY}
    entries = [(one["at"], one["action"], one["details"]) for one in logged(context, write)[-3:]]
    assert entries == [
        (now - 1000, "sample.stored", {"number": 1}),
        (now, "sample.stored", {"number": 2}),
        (now, "enrolment.complete", {}),
    ]
    assert [user for _, user in done] == [ada.id] * 2
    assert done[-1][0] == added
    waiting = [(one.kind, one.user_id) for one in rows(context, jobs)]
    assert waiting == [("fit", ada.id), ("fit", ada.id), ("webhook", ada.id)]
    lease = context.database.write(lambda c: queue.take(c, "webhook", now))
    told = {"user": "ada", "text": "free", "device": "keyboard", "samples": 2}
    assert lease.opened(KEYS).payload["report"]["data"] == told
    lease = context.database.write(lambda c: queue.take(c, "fit", now))
    assert lease.opened(KEYS).payload == {"profile": profile.id}


def test_a_complete_enrolment_takes_samples_only_from_those_who_ask_to_add_them(context, write):
    write = with_settings(write, samples_needed=1)
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    with pytest.raises(Problem) as caught:
        enrolment.add_sample(context, write, "ada", typed_by(0, 1))
    assert (caught.value.status, caught.value.kind) == (409, "enrolment-complete")
    with pytest.raises(Problem) as caught:
        enrolment.add_sample(context, write, "ada", typed_by(1, 1), to_complete=True)
    assert (caught.value.status, caught.value.kind) == (422, "not-recognised")
    assert "sample.added" not in [one["action"] for one in logged(context, write)]


def test_the_coarsest_clock_of_all_samples_is_kept(context, write):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    (before,) = rows(context, profiles)
    change = update(profiles).values(clock_tick=before.clock_tick + 50.0)
    context.database.write(lambda connection: connection.execute(change))
    enrolment.add_sample(context, write, "ada", typed_by(0, 1))
    assert rows(context, profiles)[0].clock_tick == before.clock_tick + 50.0


def test_an_enrolment_does_not_go_on_once_samples_have_expired(context, write):
    for session in range(2):
        enrolment.add_sample(context, write, "ada", typed_by(0, session))
    first = delete(samples).where(samples.c.number == 1)
    context.database.write(lambda connection: connection.execute(first))
    with pytest.raises(Problem) as caught:
        enrolment.add_sample(context, write, "ada", typed_by(0, 2))
    assert (caught.value.status, caught.value.kind) == (409, "samples-expired")


def test_samples_are_kept_for_a_day_where_none_are_until_they_have_been_learnt(context, write):
    enrolment.add_sample(context, with_settings(write, retention_days=0), "ada", typed_by(0, 0))
    (sample,) = rows(context, samples)
    assert sample.expires_at == context.clock() + DAY
