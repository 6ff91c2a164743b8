"""A tenant's own populations, learnt from its people if the tenant allows it, or installed from a file."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from sqlalchemy import Connection, insert, select, update

from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.trials import LEAST_PEOPLE
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.enrolled_bytes import background_bytes, template_bytes
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.background.own_people import start_over
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedKeys, samples_of_people
from keydyn.service.people.rows import PersonRow, ProfileRow, everybody, person_row, profile_row
from keydyn.service.people.stored_templates import drop_unneeded, stored_samples
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import members, populations, users
from keydyn.service.wire.answers import PopulationAnswer
from keydyn.service.wire.both_ways import Device, Moment, Text


class PopulationKind(NamedTuple):
    """The kind of typing that a population is for: a kind of device, and a vocabulary of keys."""

    device: Device
    vocabulary: str


def list_populations(connection: Connection, tenant: Tenant) -> list[PopulationAnswer]:
    """The tenant's own populations that are in use, the oldest first."""
    rows = connection.execute(
        select(populations)
        .where(populations.c.tenant_id == tenant.id, populations.c.replaced_at.is_(None))
        .order_by(populations.c.created_at)
    ).all()
    found = []
    for row in rows:
        own = select(members.c.user_id).where(members.c.population_id == row.id)
        people = len(connection.execute(own).all())
        made = Moment.at(row.created_at)
        found.append(
            PopulationAnswer(row.device, row.vocabulary, row.background, made, row.learnt_here, people)
        )
    return found


def learn(context: Context, write: Write, kind: PopulationKind) -> PopulationAnswer:
    """Learn a population from the stored samples of everyone whose enrolment is complete.

    These people become its cohort. Raises a `Problem` if the tenant does not allow it or they are too few.
    """
    tenant = write.tenant
    if not tenant.settings.learn_from_people:
        detail = "Set learn_from_people to let people who are enrolled enter the tenant's own population."
        raise Problem(409, "not-allowed", "The settings do not allow it", detail)
    people, typed, text = _everybody(context, tenant, kind)
    several = sum(len(each) >= 2 for each in typed.values())
    if several < LEAST_PEOPLE:
        detail = (
            f"A population needs {LEAST_PEOPLE} people with at least two stored samples each; "
            f"there are {several}."
        )
        raise Problem(409, "too-few-people", "Too few people to learn from", detail)
    background = Verifier.learn(samples_of_people(typed, text)).background
    return _replace(context, write, kind, background, people)


def install(context: Context, write: Write, kind: PopulationKind, background: Background) -> PopulationAnswer:
    """Install a population that was learnt elsewhere, from people who are not the tenant's."""
    return _replace(context, write, kind, background, [])


def remove(context: Context, write: Write, kind: PopulationKind) -> None:
    """Return to the population that comes with keydyn, or to none where that one does not apply.

    Templates that cannot be learnt again stay valid with the population that they rest on.
    """
    now = context.clock()

    def change(connection: Connection) -> None:
        _put_aside(connection, write.tenant, kind, now)
        _after_replacing(connection, write, kind, "population.removed", now)

    context.database.write(change)


def learn_again(context: Context, write: Write, kind: PopulationKind) -> None:
    """Learn a population again after a person was erased; remove it if that is impossible or not allowed."""
    try:
        learn(context, write, kind)
    except Problem:
        remove(context, write, kind)


def _everybody(
    context: Context, tenant: Tenant, kind: PopulationKind
) -> tuple[list[PersonRow], dict[str, list[TypedKeys]], Text]:
    """Everyone with stored samples in this vocabulary, the samples by person, and one of their texts."""
    people: dict[str, PersonRow] = {}
    typed: dict[str, list[TypedKeys]] = {}
    text = Text()
    with context.database.reading() as connection:
        for row in connection.execute(everybody(tenant, kind.device)).all():
            profile: ProfileRow = profile_row(row)
            if profile.text.vocabulary != kind.vocabulary:
                continue
            person = people.setdefault(row.user_id, person_row(context, row, "user_"))
            typed.setdefault(person.id, []).extend(stored_samples(connection, person, profile))
            text = profile.text
    kept = {user: each for user, each in typed.items() if each}
    return [people[user] for user in kept], kept, text


def _replace(
    context: Context, write: Write, kind: PopulationKind, background: Background, people: list[PersonRow]
) -> PopulationAnswer:
    tenant = write.tenant
    new, now = secrets.token_hex(16), context.clock()
    contents = tenant.key.seal(background_bytes(background), f"populations/{new}/contents")
    cohort = dict(zip(background.members, background.cohort, strict=True))
    rows = []
    for person in people:
        sealed = None
        if person.id in cohort:
            template = template_bytes(Enrolled(cohort[person.id], 1, 1, Fingerprints.none()))
            sealed = person.key.seal(template, f"members/{new}/{person.id}/template")
        rows.append({"population_id": new, "user_id": person.id, "template": sealed})

    def change(connection: Connection) -> PopulationAnswer:
        there = set(connection.execute(select(users.c.id).where(users.c.tenant_id == tenant.id)).scalars())
        if not all(person.id in there for person in people):
            # A person was erased while the population was learnt, which must not be used then.
            raise Problem(409, "busy", "A user was erased in the meantime", "Learn the population again.")
        _put_aside(connection, tenant, kind, now)
        connection.execute(
            insert(populations).values(
                id=new,
                tenant_id=tenant.id,
                device=kind.device,
                vocabulary=kind.vocabulary,
                background=background.sha256,
                created_at=now,
                learnt_here=bool(people),
                contents=contents,
            )
        )
        if rows:
            connection.execute(insert(members), rows)
        _after_replacing(connection, write, kind, "population.replaced", now)
        return PopulationAnswer(*kind, background.sha256, Moment.at(now), bool(people), len(people))

    return context.database.write(change)


def _after_replacing(
    connection: Connection, write: Write, kind: PopulationKind, action: str, now: int
) -> None:
    """Note the action in the audit log, and have all templates learnt again and people compared again."""
    start_over(connection, write.tenant)
    details = kind._asdict()
    write.note(connection, now, action, **details)
    enqueue(connection, write.tenant, "migrate", details, now=now)


def _put_aside(connection: Connection, tenant: Tenant, kind: PopulationKind, now: int) -> None:
    """Take the population of this kind out of use; it is kept for as long as templates rest on it."""
    of = populations.c
    own = of.tenant_id == tenant.id, of.device == kind.device, of.vocabulary == kind.vocabulary
    in_use = update(populations).where(*own, of.replaced_at.is_(None))
    connection.execute(in_use.values(replaced_at=now))
    drop_unneeded(connection, tenant)
