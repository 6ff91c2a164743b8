"""Stored templates, learnt again from the samples that are still kept."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs
from sqlalchemy import delete, insert, select, update

from keydyn.decisions import shipped_background
from keydyn.decisions.liveness import copies
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.service.jobs import queue
from keydyn.service.people import registry, stored_templates
from keydyn.service.people.context import Write
from keydyn.service.people.keystroke_payload import TypedKeys
from keydyn.service.people.recognition import enrolment
from keydyn.service.people.rows import Stale, new_profile, person_and_profile, profile_answer
from keydyn.service.people.stored_templates import fit, settled
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import fingerprints, populations, profiles, samples
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.both_ways import Text
from tests.service.people.conftest import logged, person_of, tenant_of, typed_by
from tests.service.running import KEYS


@pytest.mark.parametrize(("kept", "is_learnt"), [(2, True), (1, False)])
def test_as_many_samples_as_are_needed_suffice_even_if_others_have_expired(context, write, kept, is_learnt):
    for session in range(3):
        enrolment.add_sample(context, write, "ada", typed_by(0, session))
    expired = delete(samples).where(samples.c.number > kept)
    context.database.write(lambda connection: connection.execute(expired))
    tenant = replace(write.tenant, settings=structs.replace(write.tenant.settings, samples_needed=2))

    def ada():
        with context.database.reading() as connection:
            return person_and_profile(connection, context, tenant, "ada", (Text(), "keyboard"))

    fit(context, tenant, *ada(), shipped_background())
    # Otherwise enrolment starts again.
    assert ada()[1].samples == (3 if is_learnt else 0)


def stored(context, write, name="ada"):
    """A person and their profile of free text as they are now."""
    with context.database.reading() as connection:
        return person_and_profile(connection, context, write.tenant, name, (Text(), "keyboard"))


def with_settings(write, **settings):
    return replace(write.tenant, settings=structs.replace(write.tenant.settings, **settings))


def number_of(context, table):
    with context.database.reading() as connection:
        return len(connection.execute(select(table)).all())


def test_what_others_interfere_with_is_tried_again_and_given_up_in_the_end(monkeypatch):
    pauses, tries = [], []
    monkeypatch.setattr(stored_templates.time, "sleep", pauses.append)

    def attempt(successful):
        tries.append(None)
        if len(tries) < successful:
            raise Stale
        return "done"

    assert settled(lambda: attempt(stored_templates.TRIES)) == "done"
    assert len(tries) == stored_templates.TRIES
    assert pauses[0] == 0.0
    assert all(0.0 <= pause <= 0.01 * n for n, pause in enumerate(pauses))
    tries.clear()
    with pytest.raises(Problem) as caught:
        settled(lambda: attempt(stored_templates.TRIES + 1))
    assert (caught.value.status, caught.value.kind, caught.value.more) == (409, "busy", {"retry_after": 1})


def test_no_template_is_stored_for_samples_that_are_no_longer_all(context, write):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    ada, before = stored(context, write)
    enrolment.add_sample(context, write, "ada", typed_by(0, 1))
    with pytest.raises(Stale):
        fit(context, write.tenant, ada, before, shipped_background())
    assert stored(context, write)[1].fitted_at is None
    # Nor does an enrolment start again whose samples have expired meanwhile.
    context.database.write(lambda connection: connection.execute(delete(samples)))
    with pytest.raises(Stale):
        fit(context, write.tenant, ada, before, shipped_background())
    assert stored(context, write)[1].samples == 2


def test_no_template_is_stored_beside_a_background_that_is_not_kept(context, write, monkeypatch):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    background = shipped_background()
    monkeypatch.setattr(stored_templates, "shipped_background", lambda: SimpleNamespace(sha256="newer"))
    with pytest.raises(Stale):
        fit(context, write.tenant, *stored(context, write), background)


def test_a_fitted_profile_says_when_and_with_what(context, write):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    background, (ada, before) = shipped_background(), stored(context, write)
    change = update(profiles).values(drift=2.0)
    context.database.write(lambda connection: connection.execute(change))
    fit(context, write.tenant, ada, before, background)
    after = stored(context, write)[1]
    assert (after.version, after.drift) == (before.version + 1, 0.0)
    assert (after.fitted_samples, after.fitted_at) == (1, context.clock())
    assert not before.is_fitted(background)
    assert after.is_fitted(background)
    assert not replace(after, background="other").is_fitted(background)
    assert not replace(after, samples=2).is_fitted(background)
    assert "template.migrated" not in [one["action"] for one in logged(context, write)]
    told = profile_answer(after, write.tenant, context.clock() + 2500)
    assert (told.template_age_s, told.samples, told.samples_needed) == (2.5, 1, 5)
    assert (told.complete, told.known_keystrokes) == (False, after.known_keystrokes)
    # Whatever the clock was set to.
    assert profile_answer(after, write.tenant, context.clock() - 1).template_age_s == 0.0
    assert profile_answer(before, write.tenant, 5).template_at is None


def test_a_template_of_another_population_is_learnt_again_and_compared_later(context, write):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    ada, profile = stored(context, write)
    context.database.write(lambda connection: queue.take(connection, "fit", context.clock()))
    fit(context, write.tenant, ada, replace(profile, background="another"), shipped_background())
    entry = logged(context, write)[-1]
    assert (entry["action"], entry["actor"]) == ("template.migrated", "service")
    lease = context.database.write(lambda connection: queue.take(connection, "fit", context.clock()))
    assert lease.opened(KEYS).payload == {"profile": profile.id}


@pytest.mark.parametrize(
    ("days", "is_complete", "kept"), [(0, True, 0), (0, False, 1), (1, True, 1), (1, False, 1)]
)
def test_samples_of_a_complete_enrolment_go_once_learnt_if_none_are_kept(
    context, write, days, is_complete, kept
):
    tenant = with_settings(write, retention_days=days, samples_needed=1 if is_complete else 2)
    enrolment.add_sample(context, replace(write, tenant=tenant), "ada", typed_by(0, 0))
    fit(context, tenant, *stored(context, write), shipped_background())
    assert number_of(context, samples) == kept


def test_a_template_stays_while_the_population_that_it_rests_on_is_kept(context, write):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    context.database.write(lambda connection: connection.execute(delete(samples)))
    fit(context, write.tenant, *stored(context, write), shipped_background(), still_valid=True)
    assert stored(context, write)[1].samples == 1
    fit(context, write.tenant, *stored(context, write), shipped_background())
    after = stored(context, write)[1]
    assert (after.samples, after.keystrokes, after.complete_at, after.background) == (0, 0, None, None)
    entry = logged(context, write)[-1]
    assert (entry["action"], entry["at"], entry["actor"]) == ("enrolment.needed", context.clock(), "service")


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ((4, 9), (4, 8)),
        ((9, 4), (8, 4)),
        ((3, 5, 99), (3, 5, 10)),
        ((2, 2, 5, 9), (2, 2, 4, 4)),
        ((7,), (7,)),
    ],
)
def test_long_samples_are_cut_at_twice_the_median(lengths, kept):
    typed = [TypedKeys(("a",) * n, tuple(range(n)), (None,) * n) for n in lengths]
    assert tuple(map(len, stored_templates.even(typed))) == kept


@pytest.mark.parametrize(
    ("days", "expected"), [(30, (31, 5)), (7, (8, 5)), (1, (2, 2)), (0, (2, 2))], ids=str
)
def test_samples_expire_earlier_if_they_are_kept_shorter(context, write, days, expected):
    """One was made on the first day and expires on the 31st, one on the first and expires on the fifth."""
    registry.create(context, Write(tenant_of(context, "another"), "service"), "bob")
    tenants = {"ada": write, "bob": Write(tenant_of(context, "another"), "service")}

    def fill(connection):
        for name, own in tenants.items():
            person = person_of(context, own, name)
            profile = new_profile(connection, person, Text(), "keyboard", 0)
            for number, day in ((1, 31), (2, 5)):
                row = {"id": f"{name} {number}", "profile_id": profile.id, "number": number}
                times = {"created_at": DAY, "expires_at": day * DAY}
                connection.execute(insert(samples).values(**row, **times, keystrokes=1, contents=b""))
        stored_templates.keep_shorter(connection, write.tenant, days, 7)
        rows = connection.execute(select(samples.c.id, samples.c.expires_at)).all()
        return {row.id: row.expires_at / DAY for row in rows}, queue.due_kinds(connection, 7)

    found, jobs = context.database.write(fill)
    assert (found["ada 1"], found["ada 2"]) == expected
    assert (found["bob 1"], found["bob 2"]) == (31, 5)
    assert jobs == {"expire"}


def test_samples_that_have_been_learnt_from_expire_at_once_if_none_are_kept(context, write):
    now = context.clock()
    times = []
    for fitted, complete_at in ((1, 5), (0, 5), (1, None)):

        def fill(connection, fitted=fitted, complete_at=complete_at):
            person = person_of(context, write)
            text = Text("fixed", f"text {fitted} {complete_at}".replace(" ", "-"))
            profile = new_profile(connection, person, text, "keyboard", 0)
            known = {"samples": 1, "fitted_samples": fitted, "complete_at": complete_at}
            connection.execute(update(profiles).where(profiles.c.id == profile.id).values(known))
            row = {"id": profile.id, "profile_id": profile.id, "number": 1, "created_at": now}
            connection.execute(
                insert(samples).values(**row, expires_at=now + 9 * DAY, keystrokes=1, contents=b"")
            )
            stored_templates.keep_shorter(connection, write.tenant, 0, now)
            one = select(samples.c.expires_at).where(samples.c.id == profile.id)
            times.append(connection.execute(one).scalar_one())

        context.database.write(fill)
    assert times == [0, now + DAY, now + DAY]


def test_only_the_first_of_two_samples_at_the_same_time_is_remembered(context, write):
    ada = person_of(context, write)
    context.database.write(lambda c: stored_templates.count_remembered(c, ada))
    assert person_of(context, write).remembered == 1
    with pytest.raises(Stale):
        context.database.write(lambda c: stored_templates.count_remembered(c, ada))
    assert person_of(context, write).remembered == 1


@pytest.mark.parametrize(("known", "left"), [(2, 4), (3, 3), (4, 3)])
def test_the_oldest_fingerprints_go_when_there_are_too_many(context, write, monkeypatch, known, left):
    monkeypatch.setattr(copies, "MOST_SAMPLES", 3)
    ada, nothing = person_of(context, write), Fingerprints.none()

    def change(connection):
        profile = new_profile(connection, ada, Text(), "keyboard", 0)
        numbers = [
            stored_templates.remember(connection, ada, profile.id, nothing, n, 5 + at)
            for at, n in enumerate((0, 0, 0, known))
        ]
        rows = connection.execute(select(fingerprints).order_by(fingerprints.c.number)).all()
        return numbers, [(row.number, row.created_at) for row in rows]

    numbers, rows = context.database.write(change)
    assert rows == list(zip(numbers, range(5, 9), strict=True))[-left:]


def test_earlier_populations_are_kept_while_templates_rest_on_them(context, write):
    another = tenant_of(context, "another")

    def change(connection):
        for tenant in (write.tenant, another):
            for name, replaced_at in (("in use", None), ("needed", 5), ("unneeded", 5)):
                row = {"id": f"{tenant.name} {name}", "tenant_id": tenant.id, "background": name}
                more = {"vocabulary": name, "created_at": 1, "learnt_here": True, "contents": b""}
                connection.execute(
                    insert(populations).values(**row, device="phone", **more, replaced_at=replaced_at)
                )
        profile = new_profile(connection, person_of(context, write), Text(), "phone", 0)
        connection.execute(update(profiles).where(profiles.c.id == profile.id).values(background="needed"))
        stored_templates.drop_unneeded(connection, write.tenant)
        return set(connection.execute(select(populations.c.id)).scalars())

    found = context.database.write(change)
    theirs = {f"another {name}" for name in ("in use", "needed", "unneeded")}
    assert found == {"shop in use", "shop needed"} | theirs
