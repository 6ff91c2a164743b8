"""How often a tenant's decisions go wrong: as the calibration in use states it, and as samples here show.

Every number is computed by `keydyn.decisions.calibration.error_rates`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import get_args

import numpy as np
from sqlalchemy import Connection, func, select

from keydyn.decisions import Targets
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.error_rates import (
    CountedRates,
    StatedRates,
    claims_among,
    counted_rates,
    stated_rates,
)
from keydyn.decisions.calibration.trials import spread
from keydyn.service.accounts import Tenant
from keydyn.service.people.backgrounds import background_for
from keydyn.service.people.context import Context
from keydyn.service.people.keystroke_payload import Typed, samples_of
from keydyn.service.people.populations import Population, list_populations
from keydyn.service.people.rows import person_row, profile_row, with_users
from keydyn.service.people.templates import stored_samples
from keydyn.service.people.texts import Text
from keydyn.service.problems import Problem
from keydyn.service.settings import Level
from keydyn.service.storage import audit
from keydyn.service.storage.tables import profiles, samples, users

LEVELS: tuple[Level, ...] = get_args(Level)
# So much is measured at most: people, samples of each, and keystrokes of all of them.
MOST_PEOPLE, MOST_SAMPLES, MOST_KEYSTROKES = 30, 10, 200_000
# One measurement at a time in each process.
_MEASURING = threading.Lock()


@dataclass(frozen=True)
class Stated:
    """What the calibration in use says.

    Attributes
    ----------
    population : the tenant's own; None for the one that comes with keydyn
    people : how many the calibration was learnt from
    rates : by level
    lockouts_supported : the lowest rate of lock-outs per hour that its hours of typing support
    """

    population: Population | None
    people: int
    rates: dict[Level, list[StatedRates]]
    hours: float
    lockouts_supported: float


@dataclass(frozen=True)
class Counted:
    """What became of claims among the tenant's own people; rates by level."""

    people: int
    samples: int
    rates: dict[Level, list[CountedRates]]


def stated(context: Context, tenant: Tenant, text: Text, device: str) -> Stated:
    """Of decisions about this kind of text and device, at the levels of the settings."""
    with context.database.reading() as connection:
        background = background_for(connection, context, tenant, text, device)
        own = _population(connection, tenant, text, device)
    calibration = background.calibration
    rates = {level: stated_rates(calibration, _targets(tenant, level)) for level in LEVELS}
    supported = calibration.supported_lockouts
    return Stated(own, calibration.n_people, rates, calibration.hours, supported)


def counted(context: Context, tenant: Tenant, text: Text, device: str, actor: str) -> Counted:
    """Let people whose samples are kept claim to be each other; a `Problem` if that is not wanted, or vain.

    Each is enrolled without the sample that asks. Nothing of it is kept but an entry in the audit log.
    """
    if not tenant.settings.learn_from_people:
        raise Problem(
            409,
            "not-allowed",
            "The settings do not allow it",
            "Set learn_from_people to let samples of people who are enrolled be compared with each other.",
        )
    if not _MEASURING.acquire(blocking=False):
        raise Problem(
            503,
            "busy",
            "Error rates are being measured",
            "Only one measurement can run at a time.",
            retry_after=5,
        )
    try:
        return _counted(context, tenant, text, device, actor)
    finally:
        _MEASURING.release()


def _counted(context: Context, tenant: Tenant, text: Text, device: str, actor: str) -> Counted:
    with context.database.reading() as connection:
        background = background_for(connection, context, tenant, text, device)
        own = _population(connection, tenant, text, device)
        if own is not None and own.learnt_here:
            raise Problem(
                409,
                "learnt-from-them",
                "The population was learnt from these people",
                "It knows them already. Its own calibration was measured among them, with each left out: "
                "see the rates that it states.",
            )
        kept = _kept_samples(connection, context, tenant, text, device)
    if len(kept) < 2:
        raise Problem(
            409,
            "too-few-people",
            "Too few people to measure with",
            "At least two people are needed who are enrolled and have at least two stored samples; "
            f"there {'is one' if kept else 'are none'}.",
        )
    owners = [name for name, typed in kept.items() for _ in typed]
    found = _judged(tenant, background, kept, owners, text)
    details = {"people": found.people, "samples": found.samples}
    context.database.write(
        lambda connection: audit.append(
            connection, tenant.id, context.clock(), actor, "errors.measured", "", details
        )
    )
    return found


def _judged(
    tenant: Tenant, background: Background, kept: dict[str, list[Typed]], owners: list[str], text: Text
) -> Counted:
    typed = samples_of([one for each in kept.values() for one in each], text, owners)
    trials = claims_among(background, typed)
    rates = {
        level: counted_rates(trials, background.calibration, _targets(tenant, level)) for level in LEVELS
    }
    return Counted(len(kept), len(owners), rates)


def _targets(tenant: Tenant, level: Level) -> Targets:
    return Targets(getattr(tenant.settings.levels, level))


def _population(connection: Connection, tenant: Tenant, text: Text, device: str) -> Population | None:
    place = device, text.vocabulary
    own = list_populations(connection, tenant)
    return next((one for one in own if (one.device, one.vocabulary) == place), None)


def _kept_samples(
    connection: Connection, context: Context, tenant: Tenant, text: Text, device: str
) -> dict[str, list[Typed]]:
    """The newest samples of people with two or more, of some of very many, evenly spread."""
    number = select(func.count()).select_from(samples).where(samples.c.profile_id == profiles.c.id)
    rows = connection.execute(
        with_users()
        .where(
            users.c.tenant_id == tenant.id,
            profiles.c.text == str(text),
            profiles.c.device == device,
            profiles.c.complete_at.is_not(None),
            number.scalar_subquery() >= 2,
        )
        .order_by(users.c.created_at, users.c.id)
    ).all()
    found: dict[str, list[Typed]] = {}
    keystrokes = 0
    for n in spread(np.arange(len(rows)), MOST_PEOPLE).tolist():
        person, profile = person_row(context, rows[n], "user_"), profile_row(rows[n])
        typed = stored_samples(connection, person, profile, MOST_SAMPLES)
        keystrokes += sum(map(len, typed))
        if keystrokes > MOST_KEYSTROKES:
            break
        found[person.id] = typed
    return found
