"""Who there is: people are created, listed, reset, unblocked, exported and erased."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.context import Context
from keydyn.service.people.rows import Person, Profile, person_named, person_row, profiles_of
from keydyn.service.people.templates import start_anew, stored_samples
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import (
    fingerprints,
    members,
    populations,
    profiles,
    users,
    watch_sessions,
)


@dataclass(frozen=True)
class Overview:
    """Somebody, and what they type."""

    person: Person
    profiles: tuple[Profile, ...]


@dataclass(frozen=True)
class Erased:
    """Somebody who is gone; whether the tenant's population is learnt again without them."""

    learnt_again: bool


Finish = Callable[[Connection, Overview], None]


def create(context: Context, tenant: Tenant, name: str | None, actor: str, finish: Finish) -> Overview:
    """A new person, under a name of the tenant's or a random one; a `Problem` if the name is taken."""
    now, new, key = context.clock(), secrets.token_hex(16), DataKey.new()
    person = Person(new, tenant.id, name or secrets.token_hex(12), now, 0, 0, key)

    def change(connection: Connection) -> Overview:
        taken = connection.execute(
            select(users.c.id).where(users.c.tenant_id == tenant.id, users.c.name == person.name)
        ).first()
        if taken is not None:
            raise _taken()
        connection.execute(
            insert(users).values(
                id=new,
                tenant_id=tenant.id,
                name=person.name,
                created_at=now,
                wrapped_key=context.keys.wrap(key, f"users/{new}"),
                failures=0,
                failed_at=0,
            )
        )
        audit.append(connection, tenant.id, now, actor, "user.created", audit.pseudonym(key), {})
        done = Overview(person, ())
        finish(connection, done)
        return done

    try:
        return context.database.write(change)
    except IntegrityError:
        # Another process created the same name at the same time.
        raise _taken() from None


def overview(context: Context, tenant: Tenant, name: str) -> Overview:
    """Somebody as they are now."""
    with context.database.reading() as connection:
        person = person_named(connection, context, tenant, name)
        return Overview(person, tuple(profiles_of(connection, person)))


def listed(
    context: Context, tenant: Tenant, limit: int, after: tuple[int, str] | None, search: str | None = None
) -> tuple[list[Overview], tuple[int, str] | None]:
    """So many people, the oldest first, and where the next page begins; None if there is none.

    Of those with this text in their names, in upper or lower case, if one is given.
    """
    query = select(users).where(users.c.tenant_id == tenant.id).order_by(users.c.created_at, users.c.id)
    if after is not None:
        at, last = after
        query = query.where((users.c.created_at > at) | ((users.c.created_at == at) & (users.c.id > last)))
    if search:
        query = query.where(func.lower(users.c.name).contains(search.lower(), autoescape=True))
    with context.database.reading() as connection:
        rows = connection.execute(query.limit(limit + 1)).all()
        people = [person_row(context, row) for row in rows[:limit]]
        found = [Overview(person, tuple(profiles_of(connection, person))) for person in people]
    more = len(rows) > limit
    return found, (people[-1].created_at, people[-1].id) if more else None


def reset(context: Context, tenant: Tenant, name: str, actor: str, finish: Finish) -> Overview:
    """Begin enrolment anew; failed attempts are forgiven. Copies of earlier samples are still recognised."""

    def change(connection: Connection) -> Overview:
        person = person_named(connection, context, tenant, name)
        for profile in profiles_of(connection, person):
            start_anew(connection, profile)
        return _forgiven(connection, context, tenant, person, actor, "user.reset", finish)

    return context.database.write(change)


def unblock(context: Context, tenant: Tenant, name: str, actor: str, finish: Finish) -> Overview:
    """Forgive failed attempts."""

    def change(connection: Connection) -> Overview:
        person = person_named(connection, context, tenant, name)
        return _forgiven(connection, context, tenant, person, actor, "user.unblocked", finish)

    return context.database.write(change)


def _forgiven(
    connection: Connection,
    context: Context,
    tenant: Tenant,
    person: Person,
    actor: str,
    action: str,
    finish: Finish,
) -> Overview:
    connection.execute(update(users).where(users.c.id == person.id).values(failures=0, failed_at=0))
    audit.append(connection, tenant.id, context.clock(), actor, action, audit.pseudonym(person.key), {})
    again = person_named(connection, context, tenant, person.name)
    done = Overview(again, tuple(profiles_of(connection, again)))
    finish(connection, done)
    return done


def erase(
    context: Context, tenant: Tenant, name: str, actor: str, finish: Callable[[Connection, Erased], None]
) -> Erased:
    """Destroy somebody's key and everything that is stored about them.

    They leave the cohort at once. A population that was learnt from them too is learnt again without them.
    """

    def change(connection: Connection) -> tuple[Erased, list[str]]:
        person = person_named(connection, context, tenant, name)
        held = [profile.id for profile in profiles_of(connection, person)]
        learnt = connection.execute(
            select(populations.c.id, populations.c.device, populations.c.vocabulary)
            .join(members, members.c.population_id == populations.c.id)
            .where(members.c.user_id == person.id)
        ).all()
        audit.append(
            connection, tenant.id, context.clock(), actor, "user.erased", audit.pseudonym(person.key), {}
        )
        connection.execute(delete(users).where(users.c.id == person.id))
        for row in learnt:
            payload = {"device": row.device, "vocabulary": row.vocabulary, "without": True}
            enqueue(connection, tenant.id, "learn-population", payload, tenant.key, now=context.clock())
        done = Erased(bool(learnt))
        finish(connection, done)
        return done, held

    done, held = context.database.write(change)
    for profile_id in held:
        context.people.drop(profile_id)
    if context.database.is_sqlite:
        _empty_log(context)
    return done


def export(context: Context, tenant: Tenant, name: str) -> dict[str, Any]:
    """Everything that is stored about somebody."""
    with context.database.reading() as connection:
        person = person_named(connection, context, tenant, name)
        held = [_exported(connection, person, profile) for profile in profiles_of(connection, person)]
        entries = audit.entries(connection, tenant.id, audit.pseudonym(person.key))
        in_populations = connection.execute(
            select(populations.c.device, populations.c.vocabulary, members.c.template.is_not(None))
            .join(members, members.c.population_id == populations.c.id)
            .where(members.c.user_id == person.id)
        ).all()
    return {
        "id": person.name,
        "created_at": person.created_at,
        "failed_attempts": person.failures,
        "profiles": held,
        "populations": [
            {"device": device, "vocabulary": vocabulary, "in_cohort": bool(cohort)}
            for device, vocabulary, cohort in in_populations
        ],
        "audit": entries,
    }


def _exported(connection: Connection, person: Person, profile: Profile) -> dict[str, Any]:
    template = connection.execute(select(profiles.c.template).where(profiles.c.id == profile.id)).scalar_one()
    if template is not None:
        template = person.key.open(template, f"profiles/{profile.id}/template").hex()
    sessions = connection.execute(
        select(
            watch_sessions.c.id,
            watch_sessions.c.created_at,
            watch_sessions.c.seen_at,
            watch_sessions.c.sequence.label("keystrokes"),
            watch_sessions.c.locked_at,
        ).where(watch_sessions.c.profile_id == profile.id)
    )
    place = f"fingerprints/{profile.id}/contents"
    known = connection.execute(
        select(fingerprints.c.created_at, fingerprints.c.contents)
        .where(fingerprints.c.profile_id == profile.id)
        .order_by(fingerprints.c.number)
    )
    return {
        "text": str(profile.text),
        "device": profile.device,
        "samples": [one.rows() for one in stored_samples(connection, person, profile)],
        "samples_enrolled": profile.samples,
        "keystrokes_enrolled": profile.keystrokes,
        "complete_at": profile.complete_at,
        "template_at": profile.fitted_at,
        "template": template,
        "fingerprints": [
            {"created_at": row.created_at, "contents": person.key.open(row.contents, place).hex()}
            for row in known
        ],
        "watch_sessions": [dict(row._mapping) for row in sessions],
    }


def _empty_log(context: Context) -> None:
    """SQLite's log still holds the pages as they were: write it into the database, and cut it off."""
    with context.database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(
            text("PRAGMA wal_checkpoint(TRUNCATE)")
        )


def _taken() -> Problem:
    return Problem(409, "user-exists", "This id is taken", "A user with this id exists already.")
