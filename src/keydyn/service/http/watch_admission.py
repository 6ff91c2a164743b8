"""Admission of connections that watch sessions, and the records kept of what happens to sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from keydyn.service.accounts import Tenant, find_tenant, key_is_valid
from keydyn.service.http.access import Caller, Door, forbidden, token_holder
from keydyn.service.jobs.webhooks import announce
from keydyn.service.live.session import Admitted
from keydyn.service.live.session_rows import SessionEvent, lock_id, lock_of, new_id, open_session
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Write
from keydyn.service.people.recognition.attempts import STRICTEST, allowed_level, count_lock
from keydyn.service.people.recognition.deciding import Subject, subject_of
from keydyn.service.people.recognition.decision_rows import Decided
from keydyn.service.people.rows import PersonRow, person_named
from keydyn.service.people.stored_templates import secret_of, verifier_for
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.tables import profiles, users, watch_sessions
from keydyn.service.wire.both_ways import USER_ID, Device, Level, Text, converted
from keydyn.service.wire.requests import TokenBody, TypedText
from keydyn.service.wire.watch_frames import Hello

# A lock counts as an attempt asked for and judged at this level, although no caller has chosen it.
AT_LOCK: tuple[Level, Level] = (STRICTEST, STRICTEST)


class Admission:
    """Admits connections to the service's WebSocket."""

    def __init__(self, context: Context, door: Door) -> None:
        self._context, self._door = context, door

    def admit(self, user: str, headers: Mapping[str, str], address: str, hello: Hello) -> Admitted:
        """Return the person and background of a session; raise a `Problem` if the client may not watch it."""
        context = self._context
        caller = self._door.enter(headers, address, "watch", hello.token)
        if caller.token is None:
            caller.need("watch")
        if not re.fullmatch(USER_ID, user):
            raise Problem(404, "no-such-user", "There is no such user", "No user can have this id.")
        session = hello.session
        if caller.token is not None:
            session = caller.token.session_id
            caller.check_user(context, user)
            with context.database.reading() as connection:
                text, device = _typed_in(connection, session)
        else:
            text, device = _asked_for(hello.text, hello.device)
        subject = subject_of(context, TenantPlace(caller.tenant, text, device), user)
        if session is None:
            _check_attempts(context, caller.tenant, subject)
        return _admitted(caller, subject, session)

    def may_unlock(self, admitted: Admitted, session_id: str, presented: str | None) -> int | None:
        """The number of the lock that a token opens; None without a token, when the key opens any lock.

        Raises a `Problem` if the token is for another session, or the key is no longer valid.
        """
        if presented is None:
            with self._context.database.reading() as connection:
                if not key_is_valid(connection, self._context.keys, admitted.key_id, self._context.clock()):
                    raise Problem(401, "not-authenticated", "This API key is not valid", "")
            return None
        token = token_holder(self._context, {}, presented, "unlock").token
        if token is None or token.user_id != admitted.user_id or token.session_id != session_id:
            raise forbidden("The token is for another session.")
        return token.lock

    def happened(self, connection: Connection, event: SessionEvent) -> None:
        """Enter a session's event in the audit log; also count a lock, keep its decision and announce it."""
        details: dict[str, Any] = {"session": event.session_id, "keystroke": event.keystroke}
        if event.reason is not None:
            details["reason"] = event.reason
        if event.what == "locked":
            details["decision"] = self._locked(connection, event, details)
        whose = audit.pseudonym(event.data_key)
        entry = audit.Entry(event.at, event.actor, f"session.{event.what}", whose, details)
        audit.append(connection, event.tenant_id, entry)

    def _locked(self, connection: Connection, event: SessionEvent, details: dict[str, Any]) -> str:
        made = lock_id(event.session_id, event.keystroke)
        tenant = find_tenant(connection, self._context.keys, event.tenant_id)
        name = connection.execute(select(users.c.name).where(users.c.id == event.user_id)).scalar()
        if tenant is not None and name is not None:
            count_lock(connection, tenant, event.user_id, event.at)
            typed = _typed_in(connection, event.session_id)
            kept = Decided(made, "watch", event.at, "reject", *AT_LOCK, *typed)
            kept.keep(connection, Write(tenant, event.actor), event.user_id)
            data = {"user": name, **details, "decision": made}
            announce(connection, tenant, "session.locked", data, now=event.at, user_id=event.user_id)
        return made


def session_for_token(
    context: Context, write: Write, name: str, body: TokenBody
) -> Callable[[Connection], tuple[str | None, int]]:
    """The change that returns the session a token is bound to, and the number of the lock that it opens.

    The session exists already or, if the token is to watch, may be opened by the change. Tokens to enrol or
    verify have none.
    """
    tenant, session = write.tenant, body.session
    if body.purpose in ("enrol", "verify"):
        return lambda connection: (None, 0)
    if session is not None:

        def existing(connection: Connection) -> tuple[str, int]:
            _typed_in(connection, session, person_named(connection, context, tenant, name))
            return session, lock_of(connection, session) if body.purpose == "unlock" else 0

        return existing
    if body.purpose == "unlock":
        raise Problem(422, "invalid-request", "A session is needed", "A token to unlock must name a session.")
    subject = subject_of(context, TenantPlace(tenant, body.text, body.device), name)
    _check_attempts(context, tenant, subject)

    def opened(connection: Connection) -> tuple[str, int]:
        at, new, profile, person = context.clock(), new_id(), subject.profile.id, subject.person
        write.note(connection, at, "session.opened", person.key, session=new, keystroke=0)
        return open_session(connection, new, profile, subject.background.watched.identity, at).id, 0

    return opened


def _check_attempts(context: Context, tenant: Tenant, subject: Subject) -> None:
    """Raise a `Problem` if attempts to be this person must wait; a session that gets locked counts as one."""
    allowed_level(tenant, subject.counts, STRICTEST, context.clock())


def _typed_in(connection: Connection, session: str, person: PersonRow | None = None) -> tuple[Text, Device]:
    """The text and device of a session; raises a `Problem` if it does not exist or is another person's."""
    row = connection.execute(
        select(profiles.c.user_id, profiles.c.text, profiles.c.device)
        .join(watch_sessions, watch_sessions.c.profile_id == profiles.c.id)
        .where(watch_sessions.c.id == session)
    ).first()
    if row is None or (person is not None and row.user_id != person.id):
        raise Problem(404, "no-such-session", "There is no such session", "It may have expired.")
    return Text.parse(row.text), row.device


def _asked_for(text: dict[str, Any] | None, device: str | None) -> tuple[Text, Device]:
    try:
        return converted(TypedText, text or {}), msgspec.convert(device or "keyboard", Device)
    except msgspec.ValidationError:
        detail = "Check text and device."
        raise Problem(422, "invalid-request", "The hello frame is not valid", detail) from None


def _admitted(caller: Caller, subject: Subject, session: str | None) -> Admitted:
    person, background = subject.person, subject.background.watched
    verifier = verifier_for(caller.tenant, background, {person.id: subject.known.enrolled})
    return Admitted(
        tenant_id=caller.tenant.id,
        user_id=person.id,
        profile_id=subject.profile.id,
        session_id=session,
        enrolled=subject.known.enrolled,
        background=background,
        background_id=background.identity,
        left_out=background.place(person.id),
        watching=verifier.watching_for(person.id),
        data_key=person.key,
        actor=caller.actor,
        may_unlock=caller.token is None,
        secret=secret_of(caller.tenant),
        key_id=caller.key_id,
        expires_at=None if caller.token is None else caller.token.expires_at,
        coarse=caller.write().told == "answer",
    )
