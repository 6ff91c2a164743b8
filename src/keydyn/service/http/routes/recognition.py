"""Samples: enrol, verify, identify; and tokens, with which browsers do so."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection

from keydyn.service.http.access import Rule
from keydyn.service.http.idempotency import once
from keydyn.service.http.routing import Call, Id, Routes
from keydyn.service.http.watch_admission import session_for_token
from keydyn.service.people.context import Write
from keydyn.service.people.deciding import identify, verify
from keydyn.service.people.enrolment import add_sample
from keydyn.service.people.keystroke_payload import TypedSample
from keydyn.service.people.rows import person_named
from keydyn.service.tokens import TokenClaims
from keydyn.service.wall_clock import SECOND
from keydyn.service.wire.answers import Decision, Identification, Sample, Token
from keydyn.service.wire.both_ways import Moment
from keydyn.service.wire.requests import ClaimBody, IdentifyBody, SampleBody, TokenBody

routes = Routes("/v1", "recognition")
# The scope that a key needs to make a token of each purpose.
SCOPE_FOR = {"enrol": "enrol", "verify": "verify", "watch": "watch", "unlock": "admin"}


@routes.route("POST", "/users/{id}/samples", Rule("enrol", "enrol"), status=201)
def enrol_sample(call: Call, id: Id, body: SampleBody) -> Sample:
    """Enrol a sample. It is stored before this is answered, and later decisions take it into account."""
    sample = TypedSample.received(body)
    found = once(call, lambda write: add_sample(call.context, write, id, sample))
    call.request.app.state.metrics.enrolments.inc()
    return found


@routes.route("POST", "/users/{id}/verify", Rule("verify", "verify"))
def verify_sample(call: Call, id: Id, body: ClaimBody) -> Decision:
    """Decide whether a sample was typed by the person it is claimed to be."""
    sample = TypedSample.received(body)
    found = once(call, lambda write: verify(call.context, write, id, sample, body.level))
    call.request.app.state.metrics.decisions.labels(found.answer).inc()
    return found


@routes.route("POST", "/identify", Rule("verify"), heavy=True)
def identify_sample(call: Call, body: IdentifyBody) -> Identification:
    """Identify who typed a sample, or answer that nobody who is enrolled did.

    Nothing is stored of it but an entry in the audit log that names nobody.
    """
    write = Write(call.caller.tenant, call.caller.actor)
    return identify(call.context, write, TypedSample.received(body), body.level, body.most)


@routes.route("POST", "/users/{id}/token", Rule(None), status=201)
def make_token(call: Call, id: Id, body: TokenBody) -> Token:
    """Make a token that lets a browser do one thing for one user, for a short time."""
    caller, context, now = call.caller, call.context, call.context.clock()
    caller.need(SCOPE_FOR[body.purpose])
    tenant = caller.tenant

    def run(write: Write) -> Token:
        opening = session_for_token(context, write, id, body)

        def change(connection: Connection) -> Token:
            person = person_named(connection, context, tenant, id)
            session = opening(connection)
            expires = now + body.seconds * SECOND
            whose = tenant.id, caller.key_id, person.id
            claims = TokenClaims(*whose, body.purpose, session or "", expires, secrets.token_hex(8))
            write.note(connection, now, "token.made", person.key, purpose=body.purpose)
            token = Token(claims.signed(tenant), body.purpose, session, Moment.at(expires))
            write.finish(connection, token, person.id)
            return token

        return context.database.write(change)

    return once(call, run)
