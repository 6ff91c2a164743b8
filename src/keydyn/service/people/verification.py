"""Verification: the decision of `keydyn.decisions`, whole, and what it changes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, update

from keydyn.decisions import Decision
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import DRIFTED, Enrolled
from keydyn.decisions.folder.enrolled_bytes import template_bytes
from keydyn.decisions.liveness.copies import MOST_SAMPLES, Fingerprints
from keydyn.keystrokes.samples import Samples
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.webhooks import announce
from keydyn.service.people import attempts
from keydyn.service.people.backgrounds import background_for
from keydyn.service.people.context import Context, Known
from keydyn.service.people.enrolment import remember
from keydyn.service.people.keystroke_payload import Typed, samples_of
from keydyn.service.people.rows import Person, Profile, person_named, profile_of, unchanged
from keydyn.service.people.templates import enrolled_from, fit, secret_of, settled, verifier_for
from keydyn.service.people.texts import Text
from keydyn.service.problems import Problem
from keydyn.service.settings import Level
from keydyn.service.storage import audit
from keydyn.service.storage.tables import profiles


@dataclass(frozen=True)
class Subject:
    """Somebody who is enrolled, and what claims to be them are judged by."""

    person: Person
    profile: Profile
    background: Background
    known: Known

    @property
    def enrolled(self) -> Enrolled:
        """Their template."""
        return self.known.enrolled


@dataclass(frozen=True)
class Verified:
    """A decision, by its own id, and whether the template followed the sample."""

    id: str
    person: Person
    decision: Decision
    level: Level
    target: float
    updated: bool


Finish = Callable[[Connection, Verified], None]
_PROFILE = update(profiles).where(profiles.c.id == bindparam("profile"))


def subject_of(context: Context, tenant: Tenant, name: str, text: Text, device: str) -> Subject:
    """Somebody as enrolled now: samples that were acknowledged are learnt from first."""

    def attempt() -> Subject:
        with context.database.reading() as connection:
            person = person_named(connection, context, tenant, name)
            background = background_for(connection, context, tenant, text, device)
            profile = profile_of(connection, person, text, device)
            if profile is None or profile.complete_at is None:
                raise not_enrolled(0 if profile is None else profile.samples, tenant)
            one = enrolled_from(connection, context, person, profile, background)
        if one is not None:
            return Subject(person, profile, background, one)
        fit(context, tenant, person, profile, background)
        return attempt()

    return settled(attempt)


def not_enrolled(samples: int, tenant: Tenant) -> Problem:
    """Somebody from whom more samples are needed."""
    needed = tenant.settings.samples_needed
    return Problem(
        409,
        "not-enrolled",
        "Enrolment is not complete",
        f"{samples} of {needed} samples of this text on this kind of device are enrolled.",
        samples=samples,
        samples_needed=needed,
    )


def verify(
    context: Context,
    tenant: Tenant,
    name: str,
    typed: Typed,
    text: Text,
    device: str,
    level: Level,
    actor: str,
    finish: Finish,
) -> Verified:
    """Decide whether a sample is somebody's; `finish` is called in the change that stores the outcome."""
    sample = samples_of([typed], text)

    def attempt() -> Verified:
        subject = subject_of(context, tenant, name, text, device)
        now = context.clock()
        if now < subject.person.failed_at:
            context.database.write(lambda c: attempts.clock_set_back(c, subject.person, now))
        attempts.check_allowed(subject.person, now)
        return _decided(context, tenant, subject, sample, level, actor, finish)

    return settled(attempt)


def _decided(
    context: Context,
    tenant: Tenant,
    subject: Subject,
    sample: Samples,
    level: Level,
    actor: str,
    finish: Finish,
) -> Verified:
    person, profile = subject.person, subject.profile
    verifier = verifier_for(tenant, subject.background, {person.id: subject.enrolled}, level)
    decision = verifier.verify(person.id, sample)
    follows = verifier.updated(person.id, sample, decision) if tenant.settings.updating else None
    done = Verified(
        secrets.token_hex(16), person, decision, level, verifier.at.false_match, follows is not None
    )
    now, after = context.clock(), subject.enrolled
    seen = sealed = None
    if follows is not None:
        # Updates are not undone here: the template before this one is not kept.
        after = replace(follows, previous=None)
        seen = after.fingerprints.latest()
        sealed = person.key.seal(template_bytes(after), f"profiles/{profile.id}/template")
    elif decision.accepted:
        seen = Fingerprints.of(sample, secret_of(tenant))
        after = after.remembering(seen)
    drift = after.drift if sealed is not None else profile.drift
    drifted = drift >= DRIFTED and profile.drift_reported_at is None

    def change(connection: Connection) -> Known | None:
        attempts.count(connection, person, decision.accepted, now)
        known = None
        if seen is not None:
            # Copies sent at the same time: the second is decided anew, and finds the first.
            unchanged(connection, profile)
            number = remember(connection, person, profile, seen, subject.known.rows, now)
            known = Known(after, min(subject.known.rows + 1, MOST_SAMPLES), number)
            values: dict[str, object] = {"version": profile.version + 1}
            if sealed is not None:
                values |= {"template": sealed, "drift": drift}
            if drifted:
                values |= {"drift_reported_at": now}
                body = {"user": person.name, "text": str(profile.text), "device": profile.device}
                announce(
                    connection, tenant.id, "template.drifted", body, tenant.key, now=now, user_id=person.id
                )
            connection.execute(_PROFILE, {"profile": profile.id, **values})
        audit.append(
            connection,
            tenant.id,
            now,
            actor,
            "verified",
            audit.pseudonym(person.key),
            {"answer": decision.answer, "level": level},
        )
        finish(connection, done)
        return known

    known = context.database.write(change)
    if known is not None:
        context.people.put(profile.id, profile.version + 1, known)
    return done
