"""Stored templates, samples and fingerprints; templates are learnt again when their samples change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import SystemRandom
from typing import TypeVar

from sqlalchemy import Connection, Integer, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from keydyn.decisions import Targets, Verifier
from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.enrolled_bytes import enrolled_of, template_bytes
from keydyn.decisions.liveness import copies
from keydyn.decisions.liveness.copies import Fingerprints, fingerprints_bytes, fingerprints_of
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.background.own_people import forget
from keydyn.service.people.context import Context, Known, Remembered, Write
from keydyn.service.people.keystroke_payload import TypedKeys, samples_of
from keydyn.service.people.rows import NOTHING, PersonRow, ProfileRow, Stale, unchanged
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import (
    fingerprints,
    populations,
    profiles,
    samples,
    users,
    watch_sessions,
)
from keydyn.service.wall_clock import DAY
from keydyn.service.wire.both_ways import Level

# How often a request is attempted, if others keep changing the same profile meanwhile.
TRIES = 20
# A sample is cut at this multiple of the keystrokes of the median one, so that none outweighs the others.
OF_MIDDLE = 2
Result = TypeVar("Result")


def settled(attempt: Callable[[], Result]) -> Result:
    """Repeat an attempt until no other change has interfered, and return its result."""
    for tried in range(TRIES):
        try:
            return attempt()
        except (Stale, IntegrityError):
            # If two made the same row at the same time, the one whose row was refused now finds the other's.
            time.sleep(SystemRandom().uniform(0.0, 0.01) * tried)
    detail = "Other requests are changing the same user; try again."
    raise Problem(409, "busy", "This user is being changed", detail, retry_after=1)


def verifier_for(
    tenant: Tenant, background: Background, people: dict[str, Enrolled], level: Level = "standard"
) -> Verifier:
    """A verifier of these people with the given background and the tenant's settings."""
    at = operating_point(tenant, level)
    return Verifier.of(background, at, secret=secret_of(tenant), people=people, learning=False)


def operating_point(tenant: Tenant, level: Level) -> Targets:
    """The targets by which scores become answers at this level, according to the tenant's settings."""
    settings = tenant.settings
    rates = {"lockouts_per_hour": settings.lockouts_per_hour, "alarms": settings.alarms}
    return Targets(getattr(settings.levels, level), **rates)


def secret_of(tenant: Tenant) -> bytes:
    """The secret that keys the tenant's fingerprints."""
    return tenant.lasting_secret("fingerprints")


def enrolled_from(
    connection: Connection, context: Context, person: PersonRow, profile: ProfileRow, background: Background
) -> Known:
    """A person's template in the profile's version, which was learnt with this background."""
    one = context.people.get(profile.id, profile.version)
    if one is None:
        contents = _TEMPLATE.value(connection, profile=profile.id)
        template = person.key.open(contents, f"profiles/{profile.id}/template")
        one = enrolled_of(template, background.pattern, Fingerprints.none())
        context.people.put(profile.id, profile.version, one)
    seen = remembered(connection, context, person)
    return Known(replace(one, fingerprints=seen.fingerprints), seen)


def remembered(connection: Connection, context: Context, person: PersonRow) -> Remembered:
    """Fingerprints of a person's latest samples in all profiles, the oldest first.

    All profiles count, because a sample of one kind of text could be sent again as another kind.
    """
    known = context.remembered.get(person.id, person.remembered)
    if known is None:
        # Only rows that were added since the last time are decrypted.
        before = context.remembered.latest(person.id) or Remembered(Fingerprints.none())
        which = {"user": person.id, "after": before.last, "most": copies.MOST_SAMPLES}
        rows = _LATEST.all(connection, **which)[::-1]
        new = [fingerprints_of(person.key.open(row.contents, _place(row.profile_id))) for row in rows]
        number = min(before.rows + len(new), copies.MOST_SAMPLES)
        last = rows[-1].number if rows else before.last
        known = Remembered(Fingerprints.joined([before.fingerprints, *new]), number, last)
        context.remembered.put(person.id, person.remembered, known)
    return known


def remember(
    connection: Connection, person: PersonRow, profile_id: str, seen: Fingerprints, known: int, now: int
) -> int:
    """Store the fingerprints by which copies of a sample are recognised; return the number of their row.

    Call `count_remembered` first. If `known`, the number of rows so far, has reached the limit, the oldest
    are deleted.
    """
    sealed = person.key.seal(fingerprints_bytes(seen), _place(profile_id))
    number: int = _REMEMBER.value(connection, profile_id=profile_id, created_at=now, contents=sealed)
    if known >= copies.MOST_SAMPLES:
        _FORGET.run(connection, user=person.id, others=copies.MOST_SAMPLES - 1)
    return number


def count_remembered(connection: Connection, person: PersonRow) -> None:
    """Count a sample that will be remembered; raise `Stale` if another one, maybe its copy, came first.

    Rows are locked in the same order everywhere: the person's before those of profiles.
    """
    if _COUNT.run(connection, user=person.id, known=person.remembered) != 1:
        raise Stale


def _place(profile_id: str) -> str:
    return f"fingerprints/{profile_id}/contents"


_TEMPLATE = Prepared(select(profiles.c.template).where(profiles.c.id == bindparam("profile")))
_COUNT = Prepared(
    update(users)
    .where(users.c.id == bindparam("user"), users.c.remembered == bindparam("known"))
    .values(remembered=users.c.remembered + 1)
)
_OWN = fingerprints.c.profile_id.in_(select(profiles.c.id).where(profiles.c.user_id == bindparam("user")))
_LATEST = Prepared(
    select(fingerprints.c.number, fingerprints.c.profile_id, fingerprints.c.contents)
    .where(_OWN, fingerprints.c.number > bindparam("after"))
    .order_by(fingerprints.c.number.desc())
    .limit(bindparam("most", type_=Integer))
)
_REMEMBER = Prepared(
    insert(fingerprints).returning(fingerprints.c.number), "profile_id", "created_at", "contents"
)
_OLDEST_KEPT = (
    select(fingerprints.c.number)
    .where(_OWN)
    .order_by(fingerprints.c.number.desc())
    .limit(1)
    .offset(bindparam("others", type_=Integer))
)
_FORGET = Prepared(delete(fingerprints).where(_OWN, fingerprints.c.number < _OLDEST_KEPT.scalar_subquery()))


def stored_samples(
    connection: Connection, person: PersonRow, profile: ProfileRow, newest: int | None = None
) -> list[TypedKeys]:
    """The samples that have not expired, in order; only the last `newest` of them if that is given."""
    rows = connection.execute(
        select(samples.c.id, samples.c.contents)
        .where(samples.c.profile_id == profile.id)
        .order_by(samples.c.number.desc())
        .limit(newest)
    ).all()
    place = "samples/{}/contents"
    return [TypedKeys.from_bytes(person.key.open(row.contents, place.format(row.id))) for row in rows[::-1]]


def keep_shorter(connection: Connection, tenant: Tenant, days: int, now: int) -> None:
    """Let stored samples expire after at most this many days; a job deletes those that are now too old.

    With 0 days, samples expire as soon as they have been learnt from.
    """
    own = select(profiles.c.id).join(users, users.c.id == profiles.c.user_id)
    own = own.where(users.c.tenant_id == tenant.id)
    latest = samples.c.created_at + max(days, 1) * DAY
    longer = update(samples).where(samples.c.profile_id.in_(own), samples.c.expires_at > latest)
    connection.execute(longer.values(expires_at=latest))
    if days == 0:
        learnt = profiles.c.complete_at.is_not(None), profiles.c.fitted_samples == profiles.c.samples
        known = update(samples).where(samples.c.profile_id.in_(own.where(*learnt)))
        connection.execute(known.values(expires_at=0))
    enqueue(connection, tenant, "expire", {}, now=now)


def fit(
    context: Context,
    tenant: Tenant,
    person: PersonRow,
    profile: ProfileRow,
    background: Background,
    still_valid: bool = False,
) -> None:
    """Learn a profile's template from its samples; raise `Stale` if the profile changes meanwhile.

    If too few samples are kept, a template that is `still_valid` with the population that it rests on stays
    as it is. Otherwise enrolment starts again, which is noted in the audit log.
    """
    with context.database.reading() as connection:
        kept = stored_samples(connection, person, profile)
    migrated = profile.background not in (None, background.sha256)
    now = context.clock()
    if not kept or (len(kept) < profile.samples and len(kept) < tenant.settings.samples_needed):
        if not still_valid:
            context.database.write(lambda connection: _ask_again(connection, tenant, person, profile, now))
        return
    one = verifier_for(tenant, background, {}).enrolled(samples_of(even(kept), profile.text))
    sealed = person.key.seal(template_bytes(one), f"profiles/{profile.id}/template")

    def change(connection: Connection) -> None:
        unchanged(connection, profile)
        if not _is_kept(connection, tenant, background):
            # The background was replaced meanwhile, and deleted.
            raise Stale
        connection.execute(
            update(profiles)
            .where(profiles.c.id == profile.id)
            .values(
                template=sealed,
                background=background.sha256,
                fitted_samples=profile.samples,
                fitted_at=now,
                drift=0.0,
                version=profile.version + 1,
            )
        )
        if tenant.settings.retention_days == 0 and profile.complete_at is not None:
            connection.execute(delete(samples).where(samples.c.profile_id == profile.id))
        if migrated:
            drop_unneeded(connection, tenant)
            Write(tenant, "service").note(connection, now, "template.migrated", person.key)
            # If a request came before the job, it is still the job that compares the samples with others'.
            enqueue(connection, tenant, "fit", {"profile": profile.id}, user_id=person.id, now=now)

    context.database.write(change)


def even(typed: Sequence[TypedKeys]) -> list[TypedKeys]:
    """Cut samples that are much longer than the median one, so that none outweighs the others."""
    middle = sorted(map(len, typed))[(len(typed) - 1) // 2]
    return [one.first(OF_MIDDLE * middle) for one in typed]


def _ask_again(
    connection: Connection, tenant: Tenant, person: PersonRow, profile: ProfileRow, now: int
) -> None:
    unchanged(connection, profile)
    start_again(connection, tenant, profile, now)
    Write(tenant, "service").note(connection, now, "enrolment.needed", person.key)


def start_again(connection: Connection, tenant: Tenant, profile: ProfileRow, now: int) -> None:
    """Delete the samples and the template of a profile, and the sessions that are watched with it.

    Copies of its samples are still recognised.
    """
    forget(connection, tenant, profile, now)
    for table in (samples, watch_sessions):
        connection.execute(delete(table).where(table.c.profile_id == profile.id))
    connection.execute(
        update(profiles)
        .where(profiles.c.id == profile.id)
        .values(**NOTHING, template=None, version=profiles.c.version + 1)
    )
    drop_unneeded(connection, tenant)


def drop_unneeded(connection: Connection, tenant: Tenant) -> None:
    """Delete the tenant's earlier populations on which no template rests any more."""
    earlier = populations.c.tenant_id == tenant.id, populations.c.replaced_at.is_not(None)
    # Locked first, so that a template that is being stored with one of them is seen below.
    locked = select(populations.c.id).where(*earlier).with_for_update()
    found = connection.execute(locked).scalars().all()
    if found:
        used = (
            select(profiles.c.background)
            .join(users, users.c.id == profiles.c.user_id)
            .where(users.c.tenant_id == tenant.id, profiles.c.background.is_not(None))
        )
        unneeded = populations.c.id.in_(found), populations.c.background.not_in(used)
        connection.execute(delete(populations).where(*unneeded))


def _is_kept(connection: Connection, tenant: Tenant, background: Background) -> bool:
    """Whether a background comes with keydyn or is stored; a stored one is locked until this change ends."""
    own = populations.c.tenant_id == tenant.id, populations.c.background == background.sha256
    found = connection.execute(select(populations.c.id).where(*own).with_for_update(read=True)).first()
    return found is not None or background.sha256 == shipped_background().sha256
