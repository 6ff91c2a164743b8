"""Identification: comparing a sample with everyone who is enrolled in a kind of text.

A process keeps these people together as a `Crowd`, with the rows that they were made from. As long as the
rows are the same, the crowd is not made again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from copy import copy
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from keydyn.decisions.decision import Decision, Identification, together
from keydyn.keystrokes.samples import Samples
from keydyn.service.accounts import Tenant
from keydyn.service.people.background.backgrounds import background_for, find_background
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Crowd, Write
from keydyn.service.people.keystroke_payload import TypedSample, samples_of
from keydyn.service.people.recognition.deciding import evidence_answer, finite, subject_of
from keydyn.service.people.recognition.decision_rows import Decided, rounded_candidates
from keydyn.service.people.rows import Stale, person_row, profile_row, with_users
from keydyn.service.people.stored_templates import fit, operating_point, settled, verifier_for
from keydyn.service.people.templates_together import templates_of
from keydyn.service.problems import Problem
from keydyn.service.storage import counters
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import profiles, users
from keydyn.service.wall_clock import DAY, whole_seconds
from keydyn.service.wire import answers
from keydyn.service.wire.both_ways import Level

# The largest number of people to compare with one sample; beyond it, claims can still be verified.
MOST_PEOPLE = 20_000


class _Row(NamedTuple):
    """A row of `_EVERYBODY`: a person and a profile."""

    background: str
    id: str
    version: int
    samples: int
    fitted_samples: int
    user_id: str
    user_name: str


_EVERYBODY = Prepared(
    select(
        *(profiles.c.background, profiles.c.id, profiles.c.version),
        *(profiles.c.samples, profiles.c.fitted_samples, users.c.id, users.c.name),
    )
    .join(users, users.c.id == profiles.c.user_id)
    .where(
        users.c.tenant_id == bindparam("tenant"),
        profiles.c.device == bindparam("on"),
        profiles.c.text == bindparam("typed"),
        profiles.c.complete_at.is_not(None),
    )
    .order_by(users.c.created_at, users.c.id)
    .limit(MOST_PEOPLE + 1)
)


def identify(
    context: Context, write: Write, typed: TypedSample, level: Level, most: int
) -> answers.Identification:
    """Rank everyone whose enrolment in this kind of text is complete.

    The number of samples that one key may identify per day is limited, because each answer says something
    about everyone.
    """
    tenant, now = write.tenant, context.clock()
    sample = samples_of([typed.typed], typed.text)
    with context.database.reading() as connection:
        _check_identified(tenant, counters.amount(connection, tenant.id, _identified(write, now)) + 1, now)
    place = TenantPlace(tenant, typed.text, typed.device)
    names, found, claim = settled(lambda: _ranked(context, place, sample, level))
    nobody, best = found.nobody or not claim.accepted, found.candidates[0].user
    asked = (level, level, typed.text, typed.device)
    kept = Decided(secrets.token_hex(16), "identify", now, "reject" if nobody else "accept", *asked)
    first = None if nobody else best

    def change(connection: Connection) -> None:
        today = counters.add(connection, tenant.id, _identified(write, now), 1, now + DAY)
        _check_identified(tenant, today, now)
        kept.keep(connection, write, first)
        write.note(connection, now, "identified", nobody=nobody)

    # Tried again if the person was erased meanwhile.
    settled(lambda: context.database.write(change))
    answer = answers.Identification(
        id=kept.id,
        receipt=kept.receipt(tenant, None if first is None else names[first]),
        candidates=tuple(
            answers.Candidate(names[one.user], one.probability, finite(one.llr), one.false_match_rate)
            for one in found.candidates[:most]
        ),
        nobody=nobody,
        nobody_probability=found.nobody_probability,
        evidence=evidence_answer(found.evidence),
        reasons=tuple(claim.reasons),
        typed=claim.typed.answer,
    )
    return answer if write.told == "everything" else rounded_candidates(answer)


def _identified(write: Write, now: int) -> str:
    """The name of the counter of samples that one key has identified on this day."""
    return f"identified/{write.actor}/{now // DAY}"


def _check_identified(tenant: Tenant, number: int, now: int) -> None:
    most = tenant.settings.identifications_per_day
    if number > most:
        seconds = whole_seconds(DAY - now % DAY)
        detail = f"{most} samples may be identified per key and day; the next in {seconds} seconds."
        raise Problem(
            429, "identifications-spent", "No identification is left today", detail, retry_after=seconds
        )


def _ranked(
    context: Context, place: TenantPlace, sample: Samples, level: Level
) -> tuple[Mapping[str, str], Identification, Decision]:
    """Everyone's names, their ranking, and the decision about the first of them.

    Fingerprints are read only for the first: whether the sample is a copy is checked for that person alone.
    """
    crowd, parts = _crowd(context, place), []
    if not crowd.verifiers:
        detail = "Nobody's enrolment in this kind of text is complete."
        raise Problem(409, "nobody-enrolled", "Nobody is enrolled", detail)
    for each in crowd.verifiers:
        # A copy shares the people, which were laid out once, but is at the level of this request.
        verifier = copy(each)
        verifier.at = operating_point(place.tenant, level)
        parts.append(verifier.identify(sample))
    found = together(parts)
    best = found.candidates[0].user
    try:
        subject = subject_of(context, place, crowd.names[best])
    except Problem:
        # Erased or reset meanwhile.
        raise Stale from None
    verifier = verifier_for(place.tenant, subject.background, {best: subject.known.enrolled}, level)
    return crowd.names, found, verifier.verify(best, sample)


def _crowd(context: Context, place: TenantPlace) -> Crowd:
    """All people enrolled at this place at one moment, grouped by background, without fingerprints.

    Templates that are out of date are learnt first, and `Stale` is raised.
    """
    tenant, text, device = place
    name = f"{tenant.id}/{device}/{text}"
    with context.database.reading() as connection:
        plain = _EVERYBODY.plain(connection, tenant=tenant.id, on=device, typed=str(text))
        if len(plain) > MOST_PEOPLE:
            detail = f"Up to {MOST_PEOPLE:,} people are compared with one sample; verify a claim instead."
            raise Problem(409, "too-many-people", "Too many people to identify among", detail)
        made_with = dict.fromkeys(map(itemgetter(0), plain))
        backgrounds = {one: find_background(connection, context, place, one) for one in made_with}
        held = context.crowds.latest(name)
        if held is not None and held.is_of(plain, backgrounds):
            return held
        rows = [*map(_Row._make, plain)]
        verifiers, behind = [], []
        for sha256, found in backgrounds.items():
            group = [row for row in rows if row.background == sha256]
            fitted = [row for row in group if found is not None and row.fitted_samples == row.samples]
            if len(fitted) < len(group):
                known = {row.id for row in fitted}
                behind += [row.id for row in group if row.id not in known]
            if found is not None and fitted:
                versions = {row.user_id: (row.id, row.version) for row in fitted}
                templates = templates_of(connection, context, found, versions)
                verifiers.append(verifier_for(tenant, found, templates))
        late = connection.execute(with_users().where(profiles.c.id.in_(behind))).all() if behind else []
        background = find_background(connection, context, place)
        if background is None and not verifiers:
            background = background_for(connection, context, place)
    if late and background is not None:
        for row in late:
            fit(context, tenant, person_row(context, row, "user_"), profile_row(row), background)
        raise Stale
    crowd = Crowd(plain, backgrounds, verifiers, {row.user_id: row.user_name for row in rows})
    context.crowds.put(name, 0, crowd)
    return crowd
