"""Routes that enrol, verify and identify samples, and that make tokens for browsers."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection

from keydyn.service.http.access import Rule, forbidden
from keydyn.service.http.idempotency import once
from keydyn.service.http.routing import Call, Id, Routes
from keydyn.service.http.watch_admission import session_for_token
from keydyn.service.people.context import Write
from keydyn.service.people.keystroke_payload import TypedSample
from keydyn.service.people.recognition.deciding import verify
from keydyn.service.people.recognition.enrolment import add_sample
from keydyn.service.people.recognition.identifying import identify
from keydyn.service.people.rows import person_named
from keydyn.service.tokens import TokenClaims
from keydyn.service.wall_clock import SECOND
from keydyn.service.wire.answers import Decision, Identification, Sample, Token, Verdict
from keydyn.service.wire.both_ways import Level, Moment
from keydyn.service.wire.requests import (
    ClaimBody,
    IdentifyBody,
    NewSample,
    SampleBody,
    TokenBody,
    TypedText,
)

routes = Routes("/v1", "recognition")
# The scope that a key needs to make a token of each purpose.
SCOPE_FOR = {"enrol": "enrol", "verify": "verify", "watch": "watch", "unlock": "admin"}
# The number of samples that can be verified with one token, unless the request for it says otherwise.
VERIFIED_WITH_ONE = 5


@routes.route("POST", "/users/{id}/samples", Rule("enrol", "enrol"), status=201)
def enrol_sample(call: Call, id: Id, body: NewSample) -> Sample:
    """Enrol a sample. It is stored before the answer is sent, and later decisions take it into account.

    A complete enrolment takes no further samples: reset the user to enrol again, or send `add`.
    """
    if body.add and call.caller.token is not None:
        raise forbidden("A sample is added to a complete enrolment with an API key, not with a token.")
    sample = _received(call.caller.token, body)
    found = once(call, lambda write: add_sample(call.context, write, id, sample, body.add))
    call.request.app.state.metrics.enrolments.inc()
    return found


@routes.route("POST", "/users/{id}/verify", Rule("verify", "verify"))
def verify_sample(call: Call, id: Id, body: ClaimBody) -> Decision | Verdict:
    """Decide whether a sample was typed by the person it is claimed to be from.

    Callers with an API key get scores too; a browser, which sends a token, gets only the answer.
    """
    sample, level = _received(call.caller.token, body), _level(call.caller.token, body)
    found = once(call, lambda write: verify(call.context, write, id, sample, level))
    call.request.app.state.metrics.decisions.labels(found.answer).inc()
    return found


@routes.route("POST", "/identify", Rule("identify"), heavy=True)
def identify_sample(call: Call, body: IdentifyBody) -> Identification:
    """Identify who typed a sample, or report that none of the enrolled users did.

    The decision is stored, but nothing of the sample is.
    """
    sample, level = _received(None, body), _level(None, body)
    return identify(call.context, call.caller.write(), sample, level, body.most)


@routes.route("POST", "/users/{id}/token", Rule(None), status=201)
def make_token(call: Call, id: Id, body: TokenBody) -> Token:
    """Make a token that lets a browser do one thing for one user, for a short time.

    The text, the device, the level and the number of samples are chosen here; the browser cannot change them.
    """
    caller, context, now = call.caller, call.context, call.context.clock()
    caller.need(SCOPE_FOR[body.purpose])
    tenant = caller.tenant
    usual = {"enrol": tenant.settings.samples_needed, "verify": VERIFIED_WITH_ONE}
    uses = (body.uses or usual[body.purpose]) if body.purpose in usual else None

    def run(write: Write) -> Token:
        opening = session_for_token(context, write, id, body)

        def change(connection: Connection) -> Token:
            person = person_named(connection, context, tenant, id)
            session, lock = opening(connection)
            expires = now + body.seconds * SECOND
            claims = TokenClaims(
                tenant_id=tenant.id,
                key_id=caller.key_id,
                user_id=person.id,
                purpose=body.purpose,
                session_id=session or "",
                expires_at=expires,
                nonce=secrets.token_hex(8),
                text=str(body.text),
                device=body.device,
                level=body.level,
                uses=uses or 0,
                lock=lock,
                everything=write.told == "everything",
            )
            write.note(connection, now, "token.made", person.key, purpose=body.purpose)
            token = Token(claims.signed(tenant), body.purpose, session, Moment.at(expires), uses)
            write.finish(connection, token, person.id)
            return token

        return context.database.write(change)

    return once(call, run)


def _received(token: TokenClaims | None, body: SampleBody) -> TypedSample:
    """The sample in a request; raises a `Problem` if the token is for another text or device."""
    text, device = body.text or TypedText(), body.device or "keyboard"
    if token is not None:
        text, device = TypedText.parse(token.text), token.device
        if body.text not in (None, text) or body.device not in (None, device):
            raise forbidden(f"The token is for the text {token.text} on the device {device}.")
    return TypedSample.received(body, text, device)


def _level(token: TokenClaims | None, body: ClaimBody) -> Level:
    """The security level requested; raises a `Problem` if it is not the token's."""
    if token is None:
        return body.level or "standard"
    if body.level not in (None, token.level):
        raise forbidden(f"The token is for the level {token.level}.")
    return token.level
