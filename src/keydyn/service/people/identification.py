"""Identification: who among a tenant's people typed a sample, if any of them did."""

from __future__ import annotations

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.service.accounts import Tenant
from keydyn.service.people.backgrounds import background_for
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedSample, samples_of
from keydyn.service.people.rows import Person, Profile, Stale, person_row, profile_row, with_users
from keydyn.service.people.templates import enrolled_from, fit, settled, verifier_for
from keydyn.service.people.verification import evidence_answer, finite
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.tables import profiles, users
from keydyn.service.wire.answers import Candidate, Identification
from keydyn.service.wire.both_ways import Device, Level, Text

# People who are compared with one sample at most; with more, a claim can still be verified.
MOST_PEOPLE = 20_000


def identify(context: Context, write: Write, typed: TypedSample, level: Level, most: int) -> Identification:
    """Rank everybody whose enrolment in this kind of text is complete."""
    tenant = write.tenant
    sample = samples_of([typed.typed], typed.text)
    background, people, names = settled(lambda: _everybody(context, tenant, typed.text, typed.device))
    if not people:
        raise Problem(
            409,
            "nobody-enrolled",
            "Nobody is enrolled",
            "Nobody's enrolment in this kind of text is complete.",
        )
    found = verifier_for(tenant, background, people, level).identify(sample)
    now, details = context.clock(), {"nobody": found.nobody}
    context.database.write(
        lambda connection: audit.append(connection, tenant.id, now, write.actor, "identified", "", details)
    )
    return Identification(
        candidates=tuple(
            Candidate(names[one.user], one.probability, finite(one.llr), one.false_match_rate)
            for one in found.candidates[:most]
        ),
        nobody=found.nobody,
        nobody_probability=found.nobody_probability,
        evidence=evidence_answer(found.evidence),
        reasons=tuple(found.reasons),
    )


def _everybody(
    context: Context, tenant: Tenant, text: Text, device: Device
) -> tuple[Background, dict[str, Enrolled], dict[str, str]]:
    """Everybody at one moment. If templates have to be learnt first, they are, and `Stale` is raised."""
    people: dict[str, Enrolled] = {}
    names: dict[str, str] = {}
    behind: list[tuple[Person, Profile]] = []
    with context.database.reading() as connection:
        background = background_for(connection, context, tenant, text, device)
        rows = connection.execute(
            with_users()
            .where(
                users.c.tenant_id == tenant.id,
                profiles.c.text == str(text),
                profiles.c.device == device,
                profiles.c.complete_at.is_not(None),
            )
            .order_by(users.c.created_at, users.c.id)
            .limit(MOST_PEOPLE + 1)
        ).all()
        if len(rows) > MOST_PEOPLE:
            raise Problem(
                409,
                "too-many-people",
                "Too many people to identify among",
                f"Up to {MOST_PEOPLE:,} people are compared with one sample; verify a claim instead.",
            )
        for row in rows:
            profile = profile_row(row)
            names[row.user_id] = row.user_name
            one = context.people.get(profile.id, profile.version) if _fitted(profile, background) else None
            if one is None:
                person = person_row(context, row, "user_")
                one = enrolled_from(connection, context, person, profile, background)
                if one is None:
                    behind.append((person, profile))
                    continue
            people[row.user_id] = one.enrolled
    if behind:
        for person, profile in behind:
            fit(context, tenant, person, profile, background)
        raise Stale
    return background, people, names


def _fitted(profile: Profile, background: Background) -> bool:
    return profile.fitted_samples == profile.samples and profile.background == background.sha256
