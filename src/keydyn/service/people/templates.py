"""What decisions rest on: a population, and templates, which are learnt again when their samples change."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import SystemRandom
from typing import TypeVar

from sqlalchemy import Connection, bindparam, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from keydyn.decisions import Targets, Verifier
from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.enrolled_bytes import background_of, enrolled_of, template_bytes
from keydyn.decisions.liveness.copies import MOST_SAMPLES, Fingerprints, fingerprints_of
from keydyn.detectors import Detector
from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Context, Known, Write
from keydyn.service.people.keystroke_payload import Typed, samples_of
from keydyn.service.people.rows import NOTHING, Person, Profile, Stale, unchanged
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import fingerprints, members, populations, profiles, samples, users
from keydyn.service.wire.both_ways import KEYBOARD, KEYS, PHONE, Level, Text

_POPULATION = select(populations.c.id, populations.c.background).where(
    populations.c.tenant_id == bindparam("tenant"),
    populations.c.device == bindparam("on"),
    populations.c.vocabulary == bindparam("keys"),
)
_MEMBERS = select(func.count()).select_from(members).where(members.c.population_id == bindparam("population"))
# How often a request is computed again because another one changed the same profile meanwhile.
TRIES = 20
Result = TypeVar("Result")


def find_background(
    connection: Connection, context: Context, tenant: Tenant, text: Text, device: str
) -> Background | None:
    """The tenant's own background, the shipped one where it serves, or None."""
    own = {"tenant": tenant.id, "on": device, "keys": text.vocabulary}
    row = connection.execute(_POPULATION, own).first()
    if row is None:
        return shipped_background() if (device, text.vocabulary) == (KEYBOARD, KEYS) else None
    # Members only ever leave, when they are erased: their number tells versions of the cohort apart.
    count = connection.execute(_MEMBERS, {"population": row.id}).scalar_one()
    cached = context.backgrounds.get(f"{row.id}/{count}", 0)
    if cached is None:
        cached = _read(connection, context, tenant, row.id)
        context.backgrounds.put(f"{row.id}/{count}", 0, cached)
    return cached


def background_for(
    connection: Connection, context: Context, tenant: Tenant, text: Text, device: str
) -> Background:
    """The background for this text and device; a `Problem` says why there is none."""
    found = find_background(connection, context, tenant, text, device)
    if found is not None:
        return found
    if device == PHONE:
        detail = (
            "The population that comes with keydyn was learnt on keyboards. Learn one from typing on phones "
            "(keydyn population fit) and install it (keydyn service population install)."
        )
    else:
        detail = (
            "Only positions are sent for this text, which mean something only in comparison with other "
            "people who typed it: install a population for it, or let one be learnt from the people enrolled."
        )
    raise Problem(422, "no-population", "There is no population to compare with", detail)


def _read(connection: Connection, context: Context, tenant: Tenant, population_id: str) -> Background:
    contents = connection.execute(
        select(populations.c.contents).where(populations.c.id == population_id)
    ).scalar_one()
    background = background_of(tenant.key.open(contents, f"populations/{population_id}/contents"))
    rows = connection.execute(
        select(members.c.user_id, members.c.template, users.c.wrapped_key)
        .join(users, users.c.id == members.c.user_id)
        .where(members.c.population_id == population_id, members.c.template.is_not(None))
        .order_by(members.c.user_id)
    )
    cohort: dict[str, Detector] = {}
    for row in rows:
        key = context.keys.unwrap(row.wrapped_key, f"users/{row.user_id}")
        template = key.open(row.template, f"members/{population_id}/{row.user_id}/template")
        cohort[row.user_id] = enrolled_of(template, background.pattern, Fingerprints.none()).template
    return background.with_cohort(cohort)


def settled(attempt: Callable[[], Result]) -> Result:
    """The result of an attempt that was not overtaken by another change."""
    for tried in range(TRIES):
        try:
            return attempt()
        except (Stale, IntegrityError):
            # Two that made the same row at the same time: the one whose row was refused finds the other's.
            time.sleep(SystemRandom().uniform(0.0, 0.01) * tried)
    detail = "Other requests are changing the same user; try again."
    raise Problem(409, "busy", "This user is being changed", detail, retry_after=1)


def verifier_for(
    tenant: Tenant, background: Background, people: dict[str, Enrolled], level: Level = "standard"
) -> Verifier:
    """A verifier of these people, with the tenant's settings."""
    settings = tenant.settings
    at = Targets(getattr(settings.levels, level), lockouts_per_hour=settings.lockouts_per_hour)
    return Verifier.of(background, at, secret=secret_of(tenant), people=people)


def secret_of(tenant: Tenant) -> bytes:
    """The secret that keys the tenant's fingerprints."""
    return tenant.key.derived("fingerprints")


def enrolled_from(
    connection: Connection, context: Context, person: Person, profile: Profile, background: Background
) -> Known | None:
    """A person's template in this version; None if it has to be learnt first."""
    if profile.fitted_samples < profile.samples or profile.background != background.sha256:
        return None
    cached = context.people.get(profile.id, profile.version)
    if cached is None:
        contents = connection.execute(
            select(profiles.c.template).where(profiles.c.id == profile.id)
        ).scalar_one()
        known, rows, last = known_fingerprints(connection, person, profile, context.people.latest(profile.id))
        place = f"profiles/{profile.id}/template"
        one = enrolled_of(person.key.open(contents, place), background.pattern, known)
        cached = Known(one, rows, last)
        context.people.put(profile.id, profile.version, cached)
    return cached


def known_fingerprints(
    connection: Connection, person: Person, profile: Profile, before: Known | None = None
) -> tuple[Fingerprints, int, int]:
    """Fingerprints of the latest samples, the oldest first, with their number and that of the last row.

    Only rows after `before` are opened, or all if some have gone meanwhile, with a reset for instance.
    """
    rows = connection.execute(_LATEST, {"profile": profile.id, "after": before.last if before else 0}).all()
    place = f"fingerprints/{profile.id}/contents"
    new = [fingerprints_of(person.key.open(row.contents, place)) for row in reversed(rows)]
    last = rows[0].number if rows else before.last if before else 0
    if before is None:
        return Fingerprints.joined(new), len(new), last
    there = connection.execute(_ROWS, {"profile": profile.id}).scalar_one()
    if there != min(before.rows + len(new), MOST_SAMPLES):
        return known_fingerprints(connection, person, profile)
    return Fingerprints.joined([before.enrolled.fingerprints, *new]), there, last


_OWN = fingerprints.c.profile_id == bindparam("profile")
_ROWS = select(func.count()).select_from(fingerprints).where(_OWN)
_LATEST = (
    select(fingerprints.c.number, fingerprints.c.contents)
    .where(_OWN, fingerprints.c.number > bindparam("after"))
    .order_by(fingerprints.c.number.desc())
    .limit(MOST_SAMPLES)
)


def stored_samples(
    connection: Connection, person: Person, profile: Profile, newest: int | None = None
) -> list[Typed]:
    """The samples that have not expired, in order, or only the `newest`."""
    rows = connection.execute(
        select(samples.c.id, samples.c.contents)
        .where(samples.c.profile_id == profile.id)
        .order_by(samples.c.number.desc())
        .limit(newest)
    ).all()
    place = "samples/{}/contents"
    return [Typed.from_bytes(person.key.open(row.contents, place.format(row.id))) for row in rows[::-1]]


def fit(context: Context, tenant: Tenant, person: Person, profile: Profile, background: Background) -> None:
    """Learn a profile's template from its samples; `Stale` if it changes meanwhile.

    If the population was replaced and too few samples are kept, enrolment starts again, and the audit log
    says so.
    """
    with context.database.reading() as connection:
        kept = stored_samples(connection, person, profile)
    migrated = profile.background not in (None, background.sha256)
    now = context.clock()
    if not kept or (len(kept) < profile.samples and len(kept) < tenant.settings.samples_needed):
        context.database.write(lambda connection: _ask_again(connection, tenant, person, profile, now))
        return
    one = verifier_for(tenant, background, {}).enrolled(samples_of(kept, profile.text))
    sealed = person.key.seal(template_bytes(one), f"profiles/{profile.id}/template")

    def change(connection: Connection) -> None:
        unchanged(connection, profile)
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
            Write(tenant, "service").note(connection, now, "template.migrated", person.key)

    context.database.write(change)


def _ask_again(connection: Connection, tenant: Tenant, person: Person, profile: Profile, now: int) -> None:
    unchanged(connection, profile)
    start_again(connection, profile)
    Write(tenant, "service").note(connection, now, "enrolment.needed", person.key)


def start_again(connection: Connection, profile: Profile) -> None:
    """Forget the samples and the template of a profile; copies of its samples are still recognised."""
    connection.execute(delete(samples).where(samples.c.profile_id == profile.id))
    connection.execute(
        update(profiles)
        .where(profiles.c.id == profile.id)
        .values(**NOTHING, template=None, version=profiles.c.version + 1)
    )
