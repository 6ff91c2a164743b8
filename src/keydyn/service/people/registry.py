"""Managing the people of a tenant: create, list, reset, unblock, export and erase them."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.background.own_people import StoredScores, forget
from keydyn.service.people.context import Context, Write
from keydyn.service.people.recognition.attempts import UNIT, counts_of, forgive
from keydyn.service.people.rows import (
    PersonRow,
    ProfileRow,
    person_named,
    person_row,
    profile_answer,
    profiles_of,
)
from keydyn.service.people.stored_templates import drop_unneeded, start_again, stored_samples
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import (
    comparisons,
    counters,
    decisions,
    fingerprints,
    members,
    populations,
    profiles,
    tenants,
    users,
    watch_sessions,
)
from keydyn.service.wall_clock import whole_seconds
from keydyn.service.wire.answers import Erased, User
from keydyn.service.wire.both_ways import Moment


def create(context: Context, write: Write, name: str | None) -> User:
    """Create a person under the tenant's id for them, or a random one; raise a `Problem` if it is taken."""
    tenant = write.tenant
    now, new, key = context.clock(), secrets.token_hex(16), DataKey.new()
    person = PersonRow(new, tenant.id, name or secrets.token_hex(12), now, 0, 0, key)

    def change(connection: Connection) -> User:
        row = {name: value for name, value in vars(person).items() if name != "key"}
        row["wrapped_key"] = context.keys.wrap(key, f"users/{new}")
        connection.execute(insert(users).values(row))
        write.note(connection, now, "user.created", key)
        done = _user(connection, context, tenant, person)
        write.finish(connection, done, new)
        return done

    try:
        return context.database.write(change)
    except IntegrityError:
        detail = "A user with this id exists already."
        raise Problem(409, "user-exists", "This id is taken", detail) from None


def find_user(context: Context, tenant: Tenant, name: str) -> User:
    """A person's current state; raises a `Problem` if there is none with this id."""
    with context.database.reading() as connection:
        return _user(connection, context, tenant, person_named(connection, context, tenant, name))


def listed(
    context: Context, tenant: Tenant, limit: int, after: tuple[int, str] | None, search: str | None = None
) -> tuple[list[User], tuple[int, str] | None]:
    """Up to `limit` people, the oldest first, and the place where the next page begins, None after the last.

    With `search`, only people whose ids contain that text, ignoring case.
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
        found = [_user(connection, context, tenant, person) for person in people]
    more = len(rows) > limit
    return found, (people[-1].created_at, people[-1].id) if more else None


def unblock(
    context: Context,
    write: Write,
    name: str,
    *,
    action: str = "user.unblocked",
    reset: bool = False,
    budget: bool = False,
) -> User:
    """End a person's delay; with `reset`, also start their enrolment again.

    Copies of earlier samples are still recognised after a reset. With `budget`, the cost of failed attempts
    is forgotten too.
    """
    tenant = write.tenant

    def change(connection: Connection) -> User:
        person = person_named(connection, context, tenant, name)
        # Rows are locked in the same order everywhere: the person's before those of profiles.
        forgive(connection, person.id, budget=budget)
        if reset:
            for profile in profiles_of(connection, person):
                start_again(connection, tenant, profile, context.clock())
        details = {"budget": True} if budget else {}
        write.note(connection, context.clock(), action, person.key, **details)
        again = person_named(connection, context, tenant, name)
        done = _user(connection, context, tenant, again)
        write.finish(connection, done, person.id)
        return done

    return context.database.write(change)


def _user(connection: Connection, context: Context, tenant: Tenant, person: PersonRow) -> User:
    now = context.clock()
    counts = counts_of(connection, tenant, person.id, now)
    return User(
        id=person.name,
        created_at=Moment.at(person.created_at),
        profiles=tuple(profile_answer(one, tenant, now) for one in profiles_of(connection, person)),
        failed_attempts=person.failures,
        wait_s=whole_seconds(counts.waiting_time(tenant.settings, now)),
        takeover_chance_spent=sum(one.amount for one in counts.spent) / UNIT,
    )


def erase(context: Context, write: Write, name: str) -> Erased:
    """Destroy a person's key and everything that is stored about them.

    They leave cohorts at once, and their comparisons with others are deleted. A population that was learnt
    from them, among others, is learnt again without them; the earlier one is kept for templates of others
    that cannot be learnt again because their samples have expired.
    """
    tenant, log = write.tenant, ("log",) if context.database.is_sqlite else ()

    def change(connection: Connection) -> tuple[Erased, list[str]]:
        person = person_named(connection, context, tenant, name)
        held = profiles_of(connection, person)
        for profile in held:
            forget(connection, tenant, profile, context.clock())
        learnt = connection.execute(
            select(populations.c.id, populations.c.device, populations.c.vocabulary)
            .join(members, members.c.population_id == populations.c.id)
            .where(members.c.user_id == person.id, populations.c.replaced_at.is_(None))
        ).all()
        write.note(connection, context.clock(), "user.erased", person.key)
        connection.execute(delete(users).where(users.c.id == person.id))
        erased = update(tenants).where(tenants.c.id == tenant.id)
        connection.execute(erased.values(erasures=tenants.c.erasures + 1))
        drop_unneeded(connection, tenant)
        if log:
            enqueue(connection, tenant, "truncate-log", {}, now=context.clock())
        for row in learnt:
            payload = {"device": row.device, "vocabulary": row.vocabulary, "without": True}
            enqueue(connection, tenant, "learn-population", payload, now=context.clock())
        again = "being learnt again without them" if learnt else "unchanged"
        done = Erased(population=again, pending=log)  # type: ignore[arg-type]
        # The answer is stored without a person, because the person's row is gone.
        write.finish(connection, done, None)
        return done, [person.id, *(profile.id for profile in held)]

    done, held = context.database.write(change)
    for erased in held:
        context.people.drop(erased)
        context.remembered.drop(erased)
    context.crowds.drop_of([tenant.id])
    # SQLite's log still holds the pages as they were. If it cannot be truncated now, the job does it later.
    if log and context.database.truncate_log():
        done = structs.replace(done, pending=())
        write.amend(done)
    return done


def export(context: Context, tenant: Tenant, name: str) -> dict[str, Any]:
    """Export everything that is stored about a person."""
    with context.database.reading() as connection:
        person = person_named(connection, context, tenant, name)
        held = [_exported(connection, person, profile) for profile in profiles_of(connection, person)]
        entries = audit.entries(connection, tenant.id, audit.pseudonym(person.key))
        of_attempts = counters.c.expires_at, counters.c.amount
        spent = connection.execute(select(*of_attempts).where(counters.c.user_id == person.id)).all()
        decided = connection.execute(
            select(decisions).where(decisions.c.user_id == person.id).order_by(decisions.c.created_at)
        ).all()
        in_populations = connection.execute(
            select(populations.c.device, populations.c.vocabulary, members.c.template.is_not(None))
            .join(members, members.c.population_id == populations.c.id)
            .where(members.c.user_id == person.id)
        ).all()
    return {
        "id": person.name,
        "created_at": person.created_at,
        "failed_attempts": person.failures,
        "failed_attempts_cost": [dict(row._mapping) for row in spent],
        "decisions": [
            {name: value for name, value in row._mapping.items() if name not in ("tenant_id", "user_id")}
            for row in decided
        ],
        "profiles": held,
        "populations": [
            {"device": device, "vocabulary": vocabulary, "in_cohort": bool(cohort)}
            for device, vocabulary, cohort in in_populations
        ],
        "audit": entries,
    }


def _exported(connection: Connection, person: PersonRow, profile: ProfileRow) -> dict[str, Any]:
    template = connection.execute(select(profiles.c.template).where(profiles.c.id == profile.id)).scalar_one()
    if template is not None:
        template = person.key.open(template, f"profiles/{profile.id}/template").hex()
    of = watch_sessions.c
    shown = of.id, of.created_at, of.seen_at, of.sequence.label("keystrokes"), of.locked_at
    sessions = connection.execute(select(*shown).where(of.profile_id == profile.id))
    place = f"fingerprints/{profile.id}/contents"
    known = connection.execute(
        select(fingerprints.c.created_at, fingerprints.c.contents)
        .where(fingerprints.c.profile_id == profile.id)
        .order_by(fingerprints.c.number)
    )
    of_scores = comparisons.c
    compared = connection.execute(
        select(of_scores.profile_id, of_scores.claimed_id, of_scores.contents)
        .where(of_scores.profile_id == profile.id)
        .order_by(of_scores.claimed_id)
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
        # These samples were claimed to be others', who are not named here.
        "comparisons": [msgspec.to_builtins(StoredScores.opened(person.key, *row)) for row in compared],
        "watch_sessions": [dict(row._mapping) for row in sessions],
    }
