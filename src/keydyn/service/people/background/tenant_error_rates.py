"""A tenant's error rates, as the calibration in use states them and as counted among its stored samples.

Every number is computed by `keydyn.decisions.calibration.error_rates`.
"""

from __future__ import annotations

import threading
from typing import get_args

import numpy as np
from sqlalchemy import Connection, func, select

from keydyn.decisions import Targets
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.comparisons import own_rate
from keydyn.decisions.calibration.error_rates import (
    CountedRates,
    StatedRates,
    claims_among,
    counted_rates,
    stated_rates,
)
from keydyn.decisions.calibration.trials import spread
from keydyn.evaluation.rates.confidence import Rate
from keydyn.service.accounts import Tenant
from keydyn.service.people.background.backgrounds import background_for
from keydyn.service.people.background.own_people import (
    TenantPlace,
    comparisons_among,
    is_learning,
    own_people,
)
from keydyn.service.people.background.populations import list_populations
from keydyn.service.people.context import Context, Write
from keydyn.service.people.keystroke_payload import TypedKeys, samples_of_people
from keydyn.service.people.rows import everybody, person_row, profile_row
from keydyn.service.people.stored_templates import stored_samples
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import profiles, samples
from keydyn.service.wire.answers import PopulationAnswer
from keydyn.service.wire.both_ways import Device, Level, Text
from keydyn.service.wire.report_answers import (
    CountedAnswer,
    CountedRateAnswer,
    CountedRatesAnswer,
    OwnPeopleAnswer,
    RateAnswer,
    StatedAnswer,
    StatedLevelAnswer,
    StatedRatesAnswer,
)

LEVELS: tuple[Level, ...] = get_args(Level)
# The limits of a measurement: people, samples of each person, and keystrokes altogether.
MOST_PEOPLE, MOST_SAMPLES, MOST_KEYSTROKES = 30, 10, 200_000
# One measurement at a time in each process.
_MEASURING = threading.Lock()


def stated(context: Context, tenant: Tenant, text: Text, device: Device) -> StatedAnswer:
    """The error rates that the calibration in use states for the levels of the settings."""
    with context.database.reading() as connection:
        place = TenantPlace(tenant, text, device)
        background = background_for(connection, context, place)
        own = _population(connection, place)
        compared = _compared(connection, context, place, background)
    calibration = background.calibrations.typical

    def at(level: Level) -> StatedLevelAnswer:
        rates = stated_rates(calibration, _targets(tenant, level))
        return StatedLevelAnswer(getattr(tenant.settings.levels, level), tuple(map(_stated, rates)))

    return StatedAnswer(
        population=own,
        people=calibration.n_people,
        **{level: at(level) for level in LEVELS},
        hours=calibration.hours,
        lockouts_per_hour=tenant.settings.lockouts_per_hour,
        lockouts_supported=calibration.supported_lockouts,
        own=compared,
    )


def _compared(
    connection: Connection, context: Context, place: TenantPlace, background: Background
) -> OwnPeopleAnswer | None:
    """The results of comparisons among a place's own people, if they adjust this background; or None."""
    if not is_learning(place.tenant, background):
        return None
    people = own_people(connection, context, place, background)
    scores = comparisons_among(connection, people, background)

    def at(level: Level) -> CountedRateAnswer | None:
        return _share(own_rate(background.calibrations, scores, getattr(place.tenant.settings.levels, level)))

    low, standard, high = map(at, LEVELS)
    if low is None or standard is None or high is None:
        return None
    there = {name for user, own in scores.items() if len(own) for name in (user, *own.claimed)}
    return OwnPeopleAnswer(len(there), sum(map(len, scores.values())), low, standard, high)


def counted(context: Context, write: Write, text: Text, device: Device) -> CountedAnswer:
    """Count the outcomes of claims in which people whose samples are stored claim to be each other.

    A sample that is judged is left out of its typist's enrolment. Only an entry in the audit log is stored.
    Raises a `Problem` that says why if this cannot be done.
    """
    tenant = write.tenant
    if not tenant.settings.learn_from_people:
        raise Problem(
            409,
            "not-allowed",
            "The settings do not allow it",
            "Set learn_from_people to let samples of people who are enrolled be compared with each other.",
        )
    if not _MEASURING.acquire(blocking=False):
        detail = "Only one measurement can run at a time."
        raise Problem(503, "busy", "Error rates are being measured", detail, retry_after=5)
    try:
        return _counted(context, write, text, device)
    finally:
        _MEASURING.release()


def _counted(context: Context, write: Write, text: Text, device: Device) -> CountedAnswer:
    tenant = write.tenant
    with context.database.reading() as connection:
        place = TenantPlace(tenant, text, device)
        background = background_for(connection, context, place)
        own = _population(connection, place)
        if own is not None and own.learnt_here:
            detail = (
                "Its calibration was measured among these people already, with each left out: see the rates "
                "that it states."
            )
            raise Problem(409, "learnt-from-them", "The population was learnt from these people", detail)
        kept = _kept_samples(connection, context, place)
    if len(kept) < 2:
        detail = (
            "At least two people are needed who are enrolled and have at least two stored samples; "
            f"there {'is one' if kept else 'are none'}."
        )
        raise Problem(409, "too-few-people", "Too few people to measure with", detail)
    typed = samples_of_people(kept, text)
    trials = claims_among(background, typed)
    calibration = background.calibrations.at(typed.sequences.n_events // len(kept))
    rates = {
        level: tuple(map(_shares, counted_rates(trials, calibration, _targets(tenant, level))))
        for level in LEVELS
    }
    now, people, samples = context.clock(), len(kept), len(typed)
    context.database.write(lambda c: write.note(c, now, "errors.measured", people=people, samples=samples))
    return CountedAnswer(people=people, samples=samples, **rates)


def _stated(rates: StatedRates) -> StatedRatesAnswer:
    strangers = rates.accepted_strangers
    shown = None if strangers is None else RateAnswer(strangers.value, strangers.low, strangers.high)
    return StatedRatesAnswer(rates.keys, shown, rates.refused_genuine)


def _shares(rates: CountedRates) -> CountedRatesAnswer:
    return CountedRatesAnswer(rates.keys, _share(rates.accepted_strangers), _share(rates.refused_genuine))


def _share(rate: Rate | None) -> CountedRateAnswer | None:
    if rate is None or rate.value is None:
        return None
    return CountedRateAnswer(rate.value, rate.low, rate.high, rate.trials, rate.below)


def _targets(tenant: Tenant, level: Level) -> Targets:
    return Targets(getattr(tenant.settings.levels, level))


def _population(connection: Connection, place: TenantPlace) -> PopulationAnswer | None:
    kind, own = (place.device, place.text.vocabulary), list_populations(connection, place.tenant)
    return next((one for one in own if (one.device, one.vocabulary) == kind), None)


def _kept_samples(connection: Connection, context: Context, place: TenantPlace) -> dict[str, list[TypedKeys]]:
    """The newest samples of people with at least two; if there are too many people, an even selection."""
    number = select(func.count()).select_from(samples).where(samples.c.profile_id == profiles.c.id)
    several = everybody(place.tenant, place.device, place.text).where(number.scalar_subquery() >= 2)
    rows = connection.execute(several).all()
    found: dict[str, list[TypedKeys]] = {}
    keystrokes = 0
    for n in spread(np.arange(len(rows)), MOST_PEOPLE).tolist():
        person, profile = person_row(context, rows[n], "user_"), profile_row(rows[n])
        typed = stored_samples(connection, person, profile, MOST_SAMPLES)
        keystrokes += sum(map(len, typed))
        if keystrokes > MOST_KEYSTROKES:
            break
        found[person.id] = typed
    return found
