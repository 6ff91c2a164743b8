"""Enrolment: samples are stored, and the template is learnt from them afterwards.

A complete enrolment is closed. From then on the template only follows samples that are recognised as the
owner's, and never far. To enrol again, an administrator has to reset the person.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Connection, func, insert, select, update

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import EnrolmentQuality, enrolment_quality
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.jobs.webhooks import announce
from keydyn.service.people.background.backgrounds import background_for, find_background
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Remembered, Write
from keydyn.service.people.keystroke_payload import TypedSample, samples_of
from keydyn.service.people.recognition.deciding import verify
from keydyn.service.people.rows import (
    ProfileRow,
    new_profile,
    person_named,
    profile_answer,
    profile_of,
    unchanged,
)
from keydyn.service.people.stored_templates import (
    count_remembered,
    remember,
    remembered,
    secret_of,
    settled,
)
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import profiles, samples
from keydyn.service.wall_clock import DAY
from keydyn.service.wire import answers
from keydyn.service.wire.both_ways import POSITIONS, Level

# The level at which a sample must be accepted to be added to a complete enrolment.
TO_ADD: Level = "high"


def add_sample(
    context: Context, write: Write, name: str, sample: TypedSample, to_complete: bool = False
) -> answers.Sample:
    """Store one sample of a person; raise a `Problem` that says why if it is refused.

    Once enrolment is complete, a sample is taken only with `to_complete`, and only if it is recognised as the
    owner's.
    """
    return settled(lambda: _attempt(context, write, name, sample, to_complete))


def _attempt(
    context: Context, write: Write, name: str, sample: TypedSample, to_complete: bool
) -> answers.Sample:
    tenant, typed, text, device = write.tenant, sample.typed, sample.text, sample.device
    with context.database.reading() as connection:
        person = person_named(connection, context, tenant, name)
        # A population of positions is learnt from samples that were collected before there was one.
        look = find_background if text.kind == POSITIONS else background_for
        background = look(connection, context, TenantPlace(tenant, text, device))
        before = profile_of(connection, person, text, device)
        closed = before is not None and before.complete_at is not None
        if closed and not to_complete:
            detail = "The template follows samples that are verified. To enrol again, reset the user first."
            raise Problem(409, "enrolment-complete", "Enrolment is complete", detail)
        known = remembered(connection, context, person)
        if before is not None and not closed:
            own = select(func.count()).select_from(samples).where(samples.c.profile_id == before.id)
            _check_kept(before, connection.execute(own).scalar_one())
    quality, seen = _checked(tenant, sample, background, known)
    told = answers.Quality(quality.keystrokes, quality.known, quality.tick, tuple(quality.remarks))
    if closed:
        return _followed(context, write, name, sample, told)
    now, sample_id = context.clock(), secrets.token_hex(16)
    sealed = person.key.seal(typed.to_bytes(), f"samples/{sample_id}/contents")

    def change(connection: Connection) -> answers.Sample:
        count_remembered(connection, person)
        if before is None:
            # If two requests create it at the same time, one violates a constraint and is attempted again.
            profile = new_profile(connection, person, text, device, now)
        else:
            unchanged(connection, before)
            profile = before
        number = profile.samples + 1
        complete = profile.complete_at is None and number >= tenant.settings.samples_needed
        changed: dict[str, Any] = {
            "samples": number,
            "keystrokes": profile.keystrokes + len(typed),
            "known_keystrokes": profile.known_keystrokes + quality.known,
            "clock_tick": max(profile.clock_tick, quality.tick),
            "version": profile.version + 1,
            "complete_at": now if complete else profile.complete_at,
        }
        connection.execute(
            insert(samples).values(
                id=sample_id,
                profile_id=profile.id,
                number=number,
                created_at=now,
                expires_at=now + max(tenant.settings.retention_days, 1) * DAY,
                keystrokes=len(typed),
                contents=sealed,
            )
        )
        remember(connection, person, profile.id, seen, known.rows, now)
        connection.execute(update(profiles).where(profiles.c.id == profile.id).values(changed))
        write.note(connection, now, "sample.stored", person.key, number=number)
        enqueue(connection, tenant, "fit", {"profile": profile.id}, user_id=person.id, now=now)
        if complete:
            write.note(connection, now, "enrolment.complete", person.key)
            body = {"user": person.name, "text": str(text), "device": device, "samples": number}
            announce(connection, tenant, "enrolment.complete", body, now=now, user_id=person.id)
        done = answers.Sample(sample_id, profile_answer(replace(profile, **changed), tenant, now), told)
        write.finish(connection, done, person.id)
        return done

    return context.database.write(change)


def _followed(
    context: Context, write: Write, name: str, sample: TypedSample, quality: answers.Quality
) -> answers.Sample:
    """Let a template follow a sample that is recognised as its owner's; raise a `Problem` if it is not.

    This is an attempt like any other, and counted as one.
    """
    # The caller wants the template to follow this sample, whatever the settings say about other samples.
    tenant = replace(write.tenant, settings=structs.replace(write.tenant.settings, updating=True))
    added: list[answers.Sample] = []

    def finish(connection: Connection, decision: Struct, user_id: str | None) -> None:
        if isinstance(decision, answers.Decision) and decision.updated:
            now, person = context.clock(), person_named(connection, context, tenant, name)
            profile = profile_of(connection, person, sample.text, sample.device)
            assert profile is not None
            write.note(connection, now, "sample.added", person.key)
            added.append(answers.Sample(decision.id, profile_answer(profile, tenant, now), quality))
            write.finish(connection, added[-1], user_id)

    verify(context, replace(write, tenant=tenant, finish=finish), name, sample, TO_ADD)
    if not added:
        detail = "It was not recognised as the user's with enough confidence."
        raise Problem(422, "not-recognised", "This sample was not added", detail)
    return added[-1]


def _check_kept(profile: ProfileRow, kept: int) -> None:
    if kept < profile.samples:
        detail = "A template cannot be learnt from the new sample alone; reset the user to enrol again."
        raise Problem(409, "samples-expired", "The samples of this enrolment have expired", detail)


def _checked(
    tenant: Tenant, typed: TypedSample, background: Background | None, known: Remembered
) -> tuple[EnrolmentQuality, Fingerprints]:
    """The sample's quality and fingerprints; raises a `Problem` if it was not typed by a person."""
    sample, secret = samples_of([typed.typed], typed.text), secret_of(tenant)
    quality = enrolment_quality(sample, background, known.fingerprints, secret)
    reasons = list(quality.reasons)
    if reasons:
        detail = "; ".join(reasons)
        raise Problem(422, "not-typing", "This sample cannot be enrolled", detail, reasons=reasons)
    return quality, Fingerprints.of(sample, secret)
