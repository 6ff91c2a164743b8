"""What happened at a tenant, counted from the audit log, and how things stand now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Select, case, cast, distinct, func, select

from keydyn.decisions.enrolled import DRIFTED
from keydyn.service.clock import SECOND
from keydyn.service.people.attempts import FREE, MOST
from keydyn.service.storage.tables import audit, jobs, profiles, users, watch_sessions

# Actions of the audit log that are counted by themselves, and the name of each number.
COUNTED = {
    "session.opened": "sessions",
    "session.locked": "locked",
    "sample.stored": "samples",
    "enrolment.complete": "enrolled",
}
# Those whose details say what the answer was; there are only so many different ones.
ANSWERED = ("verified", "identified")
# A session that was heard of since is going on.
LATELY = 300 * SECOND


@dataclass
class Period:
    """An hour or a day: when it began, and how often each thing happened in it.

    Attributes
    ----------
    verified : by level, and by answer
    identified, nobody : samples that were identified, and how many of them as nobody's
    sessions, locked : watched sessions that were opened, and locked
    samples, enrolled : samples that were enrolled, and enrolments that they completed
    """

    at: int
    verified: dict[str, dict[str, int]] = field(default_factory=dict)
    identified: int = 0
    nobody: int = 0
    sessions: int = 0
    locked: int = 0
    samples: int = 0
    enrolled: int = 0


@dataclass(frozen=True)
class Standing:
    """How things stand now, in numbers of people, sessions and jobs.

    Attributes
    ----------
    people, enrolled : who there is, and whose enrolment in some text is complete
    delayed, blocked : who has failed so often in a row that the next attempt waits, or is refused
    drifted : whose template has gone so far that they should enrol again
    watched, locked : sessions that are going on, and sessions that are locked
    jobs : what waits to be done, by kind
    """

    people: int
    enrolled: int
    delayed: int
    blocked: int
    drifted: int
    watched: int
    locked: int
    jobs: Mapping[str, int]


def over_time(connection: Connection, tenant_id: str, since: int, count: int, length: int) -> list[Period]:
    """What happened in each of so many periods of this length, milliseconds, from `since` on."""
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
    found = [Period(since + n * length) for n in range(count)]
    for row in connection.execute(select(*columns, func.count().label("number")).group_by(*columns)):
        period = found[row.period]
        if row.action in COUNTED:
            setattr(period, COUNTED[row.action], row.number)
            continue
        about = json.loads(row.details)
        if row.action == "identified":
            period.identified += row.number
            period.nobody += row.number if about["nobody"] else 0
        else:
            answers = period.verified.setdefault(about["level"], {})
            answers[about["answer"]] = answers.get(about["answer"], 0) + row.number
    return found


def standing(connection: Connection, tenant_id: str, now: int) -> Standing:
    """How things stand at a tenant."""
    own = users.c.tenant_id == tenant_id
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

    def number(query: Select[Any], *conditions: ColumnElement[bool]) -> int:
        return int(connection.execute(query.where(*conditions)).scalar_one())

    waiting = connection.execute(
        select(jobs.c.kind, func.count().label("number"))
        .where(jobs.c.tenant_id == tenant_id)
        .group_by(jobs.c.kind)
    )
    return Standing(
        people=number(of_people),
        enrolled=number(of_profiles, profiles.c.complete_at.is_not(None)),
        delayed=number(of_people, users.c.failures >= FREE, users.c.failures < MOST),
        blocked=number(of_people, users.c.failures >= MOST),
        drifted=number(of_profiles, profiles.c.drift >= DRIFTED),
        watched=number(of_sessions, watch_sessions.c.seen_at >= now - LATELY),
        locked=number(of_sessions, watch_sessions.c.locked_at.is_not(None)),
        jobs={row.kind: row.number for row in waiting},
    )
