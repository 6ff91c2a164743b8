"""Routes for reports about a tenant: its current state, decisions, error rates and the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from keydyn.service.http.access import Rule
from keydyn.service.http.routing import CURSOR_HASH, CURSOR_NUMBER, Call, Routes, cursor_at, cursor_values
from keydyn.service.people import activity
from keydyn.service.people.background import tenant_error_rates
from keydyn.service.people.recognition.decision_rows import find_decision
from keydyn.service.people.rows import person_named
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.wall_clock import DAY, HOUR
from keydyn.service.wire.answers import DecisionRecord
from keydyn.service.wire.both_ways import TEXT_NAME, USER_ID, Device, Text
from keydyn.service.wire.report_answers import (
    AuditAnswer,
    AuditCheckAnswer,
    AuditEntry,
    By,
    CountedAnswer,
    DecisionsAnswer,
    StandingAnswer,
    StatedAnswer,
)
from keydyn.service.wire.requests import ErrorRatesBody

routes = Routes("/v1", "administration")
ADMIN = Rule("admin")
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the answer before.")]
Moment = Annotated[int | None, Query(ge=0, le=10**15, description="Milliseconds since 1970.")]
DecisionId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", max_length=32, description="The id of the decision.")
]
LENGTHS: dict[By, int] = {"hour": HOUR, "day": DAY}
# The largest number of periods in one answer.
MOST_PERIODS = 400


@routes.route("GET", "/standing", ADMIN)
def read_standing(call: Call) -> StandingAnswer:
    """Show the current state: people, sessions, and pending work."""
    with call.context.database.reading() as connection:
        return activity.standing(connection, call.caller.tenant, call.context.clock())


@routes.route("GET", "/decisions", ADMIN)
def read_decisions(
    call: Call,
    since: Moment = None,
    until: Moment = None,
    by: Annotated[By, Query(description="The length of a period.")] = "day",
) -> DecisionsAnswer:
    """Count decisions, enrolments and sessions per hour or day; by default, in the last 14 periods.

    The first period begins at `since`: to count the days of your own time zone, send one of its midnights.
    """
    length = LENGTHS[by]
    until = call.context.clock() + 1 if until is None else until
    since = max(until - 14 * length, 0) if since is None else since
    count = -(-(until - since) // length)
    if not 1 <= count <= MOST_PERIODS:
        detail = f"There must be 1 to {MOST_PERIODS} periods between since and until, not {count}."
        raise Problem(422, "invalid-request", "These periods cannot be counted", detail)
    with call.context.database.reading() as connection:
        found = activity.over_time(connection, call.caller.tenant.id, since, count, length)
    return DecisionsAnswer(since, since + count * length, by, tuple(found))


@routes.route("GET", "/decisions/{decision}", Rule("verify"))
def read_decision(call: Call, decision: DecisionId) -> DecisionRecord:
    """Show a decision. Decisions are kept for 30 days, and are deleted earlier if the user is erased."""
    with call.context.database.reading() as connection:
        return find_decision(connection, call.caller.tenant, decision)


@routes.route("GET", "/error-rates", ADMIN)
def read_error_rates(
    call: Call,
    positions: Annotated[
        str | None, Query(pattern=TEXT_NAME, description="The text, if only positions are sent for it.")
    ] = None,
    device: Annotated[Device, Query(description="The kind of device.")] = "keyboard",
) -> StatedAnswer:
    """Show how often decisions go wrong at each level in the settings, according to the calibration used."""
    text = Text() if positions is None else Text("positions", positions)
    return tenant_error_rates.stated(call.context, call.caller.tenant, text, device)


@routes.route("POST", "/error-rates/measure", ADMIN, heavy=True)
def measure_error_rates(call: Call, body: ErrorRatesBody) -> CountedAnswer:
    """Measure how often decisions go wrong among the people enrolled, if the settings allow it.

    The stored samples of up to 30 people are judged as claims to be each of these people. This takes a few
    seconds. Only an entry in the audit log is stored.
    """
    write = call.caller.write()
    return tenant_error_rates.counted(call.context, write, body.text, body.device)


@routes.route("GET", "/audit", ADMIN)
def read_audit(
    call: Call,
    limit: Annotated[int, Query(ge=1, le=200, description="Entries per page.")] = 50,
    cursor: Cursor = None,
    action: Annotated[
        str | None,
        Query(pattern="^[a-z.-]{1,64}$", max_length=64, description="Only entries of this action."),
    ] = None,
    user: Annotated[
        str | None, Query(pattern=USER_ID, max_length=128, description="Only entries about this user.")
    ] = None,
) -> AuditAnswer:
    """List entries of the audit log, the newest first: all, or those of one action or about one user."""
    before, tenant = cursor_values(cursor, CURSOR_NUMBER, CURSOR_NUMBER), call.caller.tenant
    with call.context.database.reading() as connection:
        about = None
        if user is not None:
            about = audit.pseudonym(person_named(connection, call.context, tenant, user).key)
        found = audit.newest(connection, tenant.id, limit + 1, action, before, about)
    shown = tuple(AuditEntry(**one) for one in found[:limit])
    return AuditAnswer(shown, cursor_at(shown[-1].at, shown[-1].number) if len(found) > limit else None)


@routes.route("GET", "/audit/check", ADMIN, heavy=True)
def check_audit(call: Call, cursor: Cursor = None) -> AuditCheckAnswer:
    """Check that no entry of the audit log was changed or is missing.

    One call checks up to 20,000 entries, starting at the cursor. The cursor carries the hash of the last
    entry checked, so that changes between two calls are noticed.
    """
    number, hashed = cursor_values(cursor, CURSOR_NUMBER, CURSOR_HASH) or (0, "")
    if number < 0:
        detail = "Use the cursor from the previous answer."
        raise Problem(400, "bad-cursor", "This cursor cannot be used", detail)
    start, most = bytes.fromhex(hashed), call.request.app.state.deployment.checked_entries
    with call.context.database.reading() as connection:
        report = audit.verify(connection, call.caller.tenant.id, number, start, most)
    return AuditCheckAnswer(
        whole=not report.problem,
        checked=report.entries,
        end=report.end,
        problem=report.problem,
        next=cursor_at(report.entries, report.end) if report.partial else None,
    )
