"""Reports for pages: a tenant's activity and current state, and a user's key times compared with others'."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from sqlalchemy import ColumnElement, Connection, Integer, Select, case, cast, distinct, func, select

from keydyn import __version__
from keydyn.decisions.enrolled import DRIFTED
from keydyn.detectors import PopulationDetector
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.key_times import Time, densities
from keydyn.service.accounts import Tenant
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context
from keydyn.service.people.recognition.attempts import FREE_FAILURES, UNIT, cost_of
from keydyn.service.people.recognition.deciding import subject_of
from keydyn.service.people.stored_templates import stored_samples
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import audit, counters, jobs, profiles, users, watch_sessions
from keydyn.service.wall_clock import SECOND
from keydyn.service.wire.answers import CurveAnswer, DensitiesAnswer
from keydyn.service.wire.both_ways import Device, Text
from keydyn.service.wire.report_answers import AnswersCount, LevelsCount, PeriodAnswer, StandingAnswer

# Actions of the audit log that are counted by themselves, and the name of each number.
COUNTED = {
    "session.opened": "sessions",
    "session.locked": "locked",
    "sample.stored": "samples",
    "enrolment.complete": "enrolled",
}
# Actions whose details hold the answer; these details take few different values.
ANSWERED = ("verified", "identified")
# A session that sent something within this many milliseconds is active.
LATELY = 300 * SECOND
# Curves per feature, and the times in milliseconds at which they are drawn.
CURVES = 4
TIMES = {INTERVAL: np.linspace(10.0, 600.0, 119), HOLD: np.linspace(10.0, 300.0, 117)}
# Common pairs of keys, for users whose samples have expired.
USUAL = (("e", "space"), ("t", "h"), ("h", "e"), ("i", "n"))


def over_time(
    connection: Connection, tenant_id: str, since: int, count: int, length: int
) -> list[PeriodAnswer]:
    """Count the events in each of `count` periods of `length` milliseconds, from `since` on."""
    details = case((audit.c.action.in_(ANSWERED), audit.c.details), else_="").label("details")
    rows = (
        select(cast((audit.c.at - since) // length, Integer).label("period"), audit.c.action, details)
        .where(
            audit.c.tenant_id == tenant_id,
            audit.c.action.in_((*COUNTED, *ANSWERED)),
            audit.c.at >= since,
            audit.c.at < since + count * length,
        )
        .subquery()
    )
    columns = rows.c.period, rows.c.action, rows.c.details
    names = ("identified", "nobody", *COUNTED.values())
    found = [dict.fromkeys(names, 0) for _ in range(count)]
    verified: list[dict[str, dict[str, int]]] = [defaultdict(dict) for _ in range(count)]
    for row in connection.execute(select(*columns, func.count().label("number")).group_by(*columns)):
        numbers = found[row.period]
        if row.action in COUNTED:
            numbers[COUNTED[row.action]] += row.number
            continue
        about = json.loads(row.details)
        if row.action == "identified":
            numbers["identified"] += row.number
            numbers["nobody"] += row.number if about["nobody"] else 0
        else:
            answers = verified[row.period][about["level"]]
            answers[about["answer"]] = answers.get(about["answer"], 0) + row.number
    return [
        PeriodAnswer(
            since + n * length,
            LevelsCount(**{level: AnswersCount(**each) for level, each in verified[n].items()}),
            **found[n],
        )
        for n in range(count)
    ]


def standing(connection: Connection, tenant: Tenant, now: int) -> StandingAnswer:
    """The current state of a tenant, in numbers of people, sessions and jobs."""
    own = users.c.tenant_id == tenant.id
    of_people = select(func.count()).select_from(users).where(own)
    of_profiles = (
        select(func.count(distinct(users.c.id)))
        .join_from(users, profiles, profiles.c.user_id == users.c.id)
        .where(own)
    )
    of_sessions = (
        select(func.count())
        .select_from(users)
        .join(profiles, profiles.c.user_id == users.c.id)
        .join(watch_sessions, watch_sessions.c.profile_id == profiles.c.id)
        .where(own)
    )

    left = round(tenant.settings.takeover_chance * UNIT) - cost_of(tenant.settings.levels.high)
    spent = (
        select(counters.c.user_id)
        .where(counters.c.tenant_id == tenant.id, counters.c.expires_at > now)
        .where(counters.c.user_id.is_not(None))
        .group_by(counters.c.user_id)
        .having(func.sum(counters.c.amount) > left)
        .subquery()
    )

    def number(query: Select[Any], *conditions: ColumnElement[bool]) -> int:
        return int(connection.execute(query.where(*conditions)).scalar_one())

    waiting = connection.execute(
        select(jobs.c.kind, func.count().label("number"))
        .where(jobs.c.tenant_id == tenant.id)
        .group_by(jobs.c.kind)
    )
    return StandingAnswer(
        tenant=tenant.name,
        now=now,
        version=__version__,
        people=number(of_people),
        enrolled=number(of_profiles, profiles.c.complete_at.is_not(None)),
        delayed=number(of_people, users.c.failures >= FREE_FAILURES),
        blocked=number(select(func.count()).select_from(spent)),
        drifted=number(of_profiles, profiles.c.drift >= DRIFTED),
        watched=number(of_sessions, watch_sessions.c.seen_at >= now - LATELY),
        locked=number(of_sessions, watch_sessions.c.locked_at.is_not(None)),
        jobs={row.kind: row.number for row in waiting},
    )


def densities_of(context: Context, tenant: Tenant, name: str, device: Device) -> DensitiesAnswer:
    """The densities of the times of the key pairs that a user typed most often in free text."""
    subject = subject_of(context, TenantPlace(tenant, Text(), device), name)
    template = subject.known.enrolled.template
    if not isinstance(template, PopulationDetector):
        detail = f"Templates of {template.name} have none."
        raise Problem(409, "no-densities", "There are no densities", detail)
    with context.database.reading() as connection:
        kept = stored_samples(connection, subject.person, subject.profile)
    typed = Counter(pair for one in kept for pair in pairwise(one.keys))
    usual = list(dict.fromkeys([*(pair for pair, _ in typed.most_common(CURVES)), *USUAL]))[:CURVES]
    model = subject.background.population
    found: list[CurveAnswer] = []
    for feature, at in TIMES.items():
        for first, second in usual:
            time = Time(feature, first, second)
            own, everybody = densities(model, template.template_, time, at).T
            named: Literal["interval", "hold"] = "interval" if feature == INTERVAL else "hold"
            curve = (tuple(values.tolist()) for values in (at, own, everybody))
            found.append(CurveAnswer(named, (first, second), *curve))
    return DensitiesAnswer(tuple(found))
