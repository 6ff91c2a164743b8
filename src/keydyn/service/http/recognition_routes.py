"""Samples: enrol, verify, identify; and tokens, with which browsers do so."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from sqlalchemy import Connection

from keydyn.service.clock import SECOND
from keydyn.service.http.access import Caller, Rule, context_of
from keydyn.service.http.answers import decision_answer, identification_answer, sample_answer
from keydyn.service.http.idempotency import once
from keydyn.service.http.models import (
    ClaimBody,
    DecisionAnswer,
    IdentificationAnswer,
    IdentifyBody,
    SampleAnswer,
    SampleBody,
    TokenAnswer,
    TokenBody,
    UserId,
)
from keydyn.service.http.watching import session_for_token
from keydyn.service.people.enrolment import Enrolment, add_sample
from keydyn.service.people.identification import identify
from keydyn.service.people.rows import person_named
from keydyn.service.people.verification import Verified, verify
from keydyn.service.storage import audit
from keydyn.service.tokens import Token

router = APIRouter(prefix="/v1", tags=["recognition"])
Enrolling = Annotated[Caller, Depends(Rule("enrol", "enrol"))]
Verifying = Annotated[Caller, Depends(Rule("verify", "verify"))]
Anybody = Annotated[Caller, Depends(Rule(None))]
Identifying = Annotated[Caller, Depends(Rule("verify"))]
Id = Annotated[UserId, Path()]
# Which scope a key needs to make a token of each purpose.
SCOPE_FOR = {"enrol": "enrol", "verify": "verify", "watch": "watch", "unlock": "admin"}


@router.post("/users/{id}/samples", status_code=201, response_model=SampleAnswer)
def enrol_sample(request: Request, caller: Enrolling, id: Id, body: SampleBody) -> Response:
    """Enrol a sample. It is stored before this is answered, and later decisions take it into account."""
    context, tenant = context_of(request), caller.tenant
    typed, text, now = body.typed, body.text.text, context.clock()

    def answer(done: Enrolment) -> dict[str, Any]:
        return sample_answer(done, tenant, now).model_dump()

    found = once(
        request,
        caller,
        201,
        lambda finish: add_sample(context, tenant, id, typed, text, body.device, caller.actor, finish),
        answer,
        lambda done: done.person.id,
    )
    request.app.state.metrics.enrolments.inc()
    return found


@router.post("/users/{id}/verify", response_model=DecisionAnswer)
def verify_sample(request: Request, caller: Verifying, id: Id, body: ClaimBody) -> Response:
    """Decide whether a sample was typed by the person it is claimed to be."""
    context, tenant = context_of(request), caller.tenant
    typed, text = body.typed, body.text.text

    def run(finish: Any) -> Verified:
        done = verify(context, tenant, id, typed, text, body.device, body.level, caller.actor, finish)
        request.app.state.metrics.decisions.labels(done.decision.answer).inc()
        return done

    return once(request, caller, 200, run, decision_answer, lambda done: done.person.id)


@router.post("/identify")
def identify_sample(request: Request, caller: Identifying, body: IdentifyBody) -> IdentificationAnswer:
    """Identify who typed a sample, or answer that nobody who is enrolled did.

    Nothing is stored of it but an entry in the audit log that names nobody.
    """
    context, tenant = context_of(request), caller.tenant
    typed, text = body.typed, body.text.text

    done = identify(context, tenant, typed, text, body.device, body.level, caller.actor)
    return identification_answer(done, body.most)


@router.post("/users/{id}/token", status_code=201, response_model=TokenAnswer)
def make_token(request: Request, caller: Anybody, id: Id, body: TokenBody) -> Response:
    """Make a token that lets a browser do one thing for one user, for a short time."""
    caller.need(SCOPE_FOR[body.purpose])
    context, tenant, now = context_of(request), caller.tenant, context_of(request).clock()

    def run(finish: Any) -> Token:
        opening = session_for_token(
            context, tenant, id, body.purpose, body.session, body.text.text, body.device, caller.actor
        )

        def change(connection: Connection) -> Token:
            person = person_named(connection, context, tenant, id)
            session = opening(connection) or ""
            expires = now + body.seconds * SECOND
            token = Token.new(tenant, caller.key_id, person.id, body.purpose, expires, session)
            subject = audit.pseudonym(person.key)
            details = {"purpose": body.purpose}
            audit.append(connection, tenant.id, now, caller.actor, "token.made", subject, details)
            finish(connection, token)
            return token

        return context.database.write(change)

    def answer(token: Token) -> dict[str, Any]:
        return {
            "token": token.signed(tenant),
            "purpose": token.purpose,
            "session": token.session_id or None,
            "expires_at": token.expires_at,
        }

    return once(request, caller, 201, run, answer, lambda token: token.user_id)
