"""What happened at a tenant: how things stand, decisions over time, error rates, the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from keydyn import __version__
from keydyn.decisions.calibration.error_rates import CountedRates, StatedRates
from keydyn.evaluation.rates.confidence import Rate
from keydyn.service.clock import DAY, HOUR
from keydyn.service.http.access import Caller, Rule, context_of
from keydyn.service.http.answers import population_answer
from keydyn.service.http.cursors import HASH, decoded, encoded
from keydyn.service.http.models import Device, TextName
from keydyn.service.http.report_models import (
    AuditAnswer,
    AuditCheckAnswer,
    AuditEntry,
    By,
    CountedAnswer,
    DecisionsAnswer,
    ErrorRatesBody,
    PeriodAnswer,
    StandingAnswer,
    StatedAnswer,
)
from keydyn.service.people import activity, error_rates
from keydyn.service.people.texts import FREE, Text
from keydyn.service.problems import Problem
from keydyn.service.storage import audit

router = APIRouter(prefix="/v1", tags=["administration"])
Administering = Annotated[Caller, Depends(Rule("admin"))]
Cursor = Annotated[str | None, Query(max_length=200)]
Moment = Annotated[int | None, Query(ge=0, le=10**15, description="Milliseconds since 1970.")]
LENGTHS: dict[By, int] = {"hour": HOUR, "day": DAY}
# Periods that one answer has at most, and entries that one request checks.
MOST_PERIODS, MOST_CHECKED = 400, 20_000


@router.get("/standing")
def read_standing(request: Request, caller: Administering) -> StandingAnswer:
    """Show how things stand: people, sessions, and what waits to be done."""
    context = context_of(request)
    now = context.clock()
    with context.database.reading() as connection:
        found = activity.standing(connection, caller.tenant.id, now)
    return StandingAnswer(tenant=caller.tenant.name, now=now, version=__version__, **vars(found))


@router.get("/decisions")
def read_decisions(
    request: Request, caller: Administering, since: Moment = None, until: Moment = None, by: By = "day"
) -> DecisionsAnswer:
    """Count decisions, enrolments and sessions by hour or day, 14 of them unless told otherwise.

    Periods begin at `since`: send midnight where you are to count your days.
    """
    context, length = context_of(request), LENGTHS[by]
    until = context.clock() + 1 if until is None else until
    since = max(until - 14 * length, 0) if since is None else since
    count = -(-(until - since) // length)
    if not 1 <= count <= MOST_PERIODS:
        detail = f"There must be 1 to {MOST_PERIODS} periods between since and until, not {count}."
        raise Problem(422, "invalid-request", "These periods cannot be counted", detail)
    with context.database.reading() as connection:
        found = activity.over_time(connection, caller.tenant.id, since, count, length)
    periods = [PeriodAnswer.model_validate(vars(one)) for one in found]
    return DecisionsAnswer(since=since, until=since + count * length, by=by, periods=periods)


@router.get("/error-rates")
def read_error_rates(
    request: Request,
    caller: Administering,
    positions: Annotated[
        TextName | None, Query(description="The text, if only positions are sent for it.")
    ] = None,
    device: Device = "keyboard",
) -> StatedAnswer:
    """Say how often decisions go wrong, by the calibration in use and the levels of the settings."""
    text = Text(FREE) if positions is None else Text("positions", positions)
    tenant = caller.tenant
    found = error_rates.stated(context_of(request), tenant, text, device)
    levels = {
        level: {
            "target_false_match_rate": getattr(tenant.settings.levels, level),
            "rates": [_stated(one) for one in rates],
        }
        for level, rates in found.rates.items()
    }
    return StatedAnswer.model_validate(
        {
            "population": None if found.population is None else population_answer(found.population),
            "people": found.people,
            "hours": found.hours,
            "lockouts_per_hour": tenant.settings.lockouts_per_hour,
            "lockouts_supported": found.lockouts_supported,
            **levels,
        }
    )


@router.post("/error-rates/measure")
def measure_error_rates(request: Request, caller: Administering, body: ErrorRatesBody) -> CountedAnswer:
    """Measure how often decisions go wrong among the people enrolled, if the settings allow it.

    The samples that are kept of at most 30 people claim to be each of them. This takes a few seconds, and
    nothing of it is stored but an entry in the audit log.
    """
    text = body.text.text
    found = error_rates.counted(context_of(request), caller.tenant, text, body.device, caller.actor)
    levels = {level: [_counted(one) for one in rates] for level, rates in found.rates.items()}
    return CountedAnswer.model_validate({"people": found.people, "samples": found.samples, **levels})


@router.get("/audit")
def read_audit(
    request: Request,
    caller: Administering,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Cursor = None,
    action: Annotated[str | None, Query(pattern="^[a-z.-]{1,64}$", max_length=64)] = None,
) -> AuditAnswer:
    """List the entries of the audit log, or those of one action, the newest first."""
    before = decoded(cursor, int, int)
    with context_of(request).database.reading() as connection:
        found = audit.newest(connection, caller.tenant.id, limit + 1, action, before)
    shown = found[:limit]
    more = len(found) > limit
    return AuditAnswer(
        entries=[AuditEntry.model_validate(one) for one in shown],
        next=encoded(shown[-1]["at"], shown[-1]["number"]) if more else None,
    )


@router.get("/audit/check")
def check_audit(request: Request, caller: Administering, cursor: Cursor = None) -> AuditCheckAnswer:
    """Check that no entry of the audit log was changed or is missing: 20,000, from where the cursor says.

    A cursor carries the hash of the last entry that was checked, so that nothing can change in between.
    """
    number, hashed = decoded(cursor, int, HASH) or (0, "")
    if number < 0:
        raise Problem(
            400, "bad-cursor", "This cursor cannot be used", "Use the cursor from the previous answer."
        )
    with context_of(request).database.reading() as connection:
        report = audit.verify_part(connection, caller.tenant.id, number, bytes.fromhex(hashed), MOST_CHECKED)
    return AuditCheckAnswer(
        whole=not report.problem,
        checked=report.entries,
        end=report.end,
        problem=report.problem,
        next=encoded(report.entries, report.end) if report.partial else None,
    )


def _stated(one: StatedRates) -> dict[str, Any]:
    strangers = None if one.accepted_strangers is None else vars(one.accepted_strangers)
    return {"keystrokes": one.keys, "accepted_strangers": strangers, "refused_genuine": one.refused_genuine}


def _counted(one: CountedRates) -> dict[str, Any]:
    def rate(found: Rate | None) -> dict[str, Any] | None:
        return None if found is None else {**vars(found), "below": found.below}

    return {
        "keystrokes": one.keys,
        "accepted_strangers": rate(one.accepted_strangers),
        "refused_genuine": rate(one.refused_genuine),
    }
