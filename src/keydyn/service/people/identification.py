"""Identification: who among a tenant's people typed a sample, if any of them did."""

from __future__ import annotations

from dataclasses import dataclass

from keydyn.decisions import Identification
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.service.accounts import Tenant
from keydyn.service.people.backgrounds import background_for
from keydyn.service.people.context import Context
from keydyn.service.people.keystroke_payload import Typed, samples_of
from keydyn.service.people.rows import Person, Profile, Stale, person_row, profile_row, with_users
from keydyn.service.people.templates import enrolled_from, fit, settled, verifier_for
from keydyn.service.people.texts import Text
from keydyn.service.problems import Problem
from keydyn.service.settings import Level
from keydyn.service.storage import audit
from keydyn.service.storage.tables import profiles, users

# People who are compared with one sample at most; beyond, ask whether it is somebody in particular.
MOST_PEOPLE = 20_000


@dataclass(frozen=True)
class Identified:
    """The answer, and what the tenant calls the people in it."""

    found: Identification
    names: dict[str, str]


def identify(
    context: Context,
    tenant: Tenant,
    typed: Typed,
    text: Text,
    device: str,
    level: Level,
    actor: str,
) -> Identified:
    """Rank everybody whose enrolment in this kind of text is complete."""
    sample = samples_of([typed], text)
    background, people, names = settled(lambda: _everybody(context, tenant, text, device))
    if not people:
        raise Problem(
            409,
            "nobody-enrolled",
            "Nobody is enrolled",
            "Nobody's enrolment in this kind of text is complete.",
        )
    done = Identified(verifier_for(tenant, background, people, level).identify(sample), names)
    now, details = context.clock(), {"nobody": done.found.nobody}
    context.database.write(
        lambda connection: audit.append(connection, tenant.id, now, actor, "identified", "", details)
    )
    return done


def _everybody(
    context: Context, tenant: Tenant, text: Text, device: str
) -> tuple[Background, dict[str, Enrolled], dict[str, str]]:
    """All of one moment; whoever's template has to be learnt first is, and everybody is read again."""
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
