"""Authentication and rates of callers, by API keys with scopes or tokens for one person and purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastapi import Request
from msgspec import Struct
from sqlalchemy import Connection

from keydyn.service import tokens
from keydyn.service.accounts import (
    Tenant,
    find_tenant,
    key_holder,
    key_is_valid,
    named_key,
    tenant_of_key,
)
from keydyn.service.http.counted_notes import CountedNotes
from keydyn.service.http.limits import OF_A_TOKEN, Rates, by_address
from keydyn.service.people.context import Context, Finish, Told, Write
from keydyn.service.people.rows import find_person
from keydyn.service.problems import Problem
from keydyn.service.tokens import TokenClaims


@dataclass(frozen=True)
class Caller:
    """The sender of a request, and the tenant they act for; browsers have a `token`."""

    tenant: Tenant
    key_id: str
    scopes: frozenset[str] = frozenset()
    token: TokenClaims | None = None
    kind: str = "key"

    def need(self, *scopes: str) -> None:
        """Raise a `Problem` if the API key has none of these scopes."""
        if not self.scopes.intersection(scopes):
            raise forbidden(f"The API key lacks the scope {' or '.join(scopes)}.")

    def check_user(self, context: Context, name: str) -> None:
        """Raise a `Problem` if this is a token for another user."""
        if self.token is not None:
            with context.database.reading() as connection:
                person = find_person(connection, context, self.tenant, name)
            if person is None or person.id != self.token.user_id:
                raise forbidden("The token is for another user.")

    def write(self, finish: Finish | None = None, amend: Callable[[Struct], None] = lambda _: None) -> Write:
        """A `Write` on the caller's behalf; the change that stores the outcome also counts a token's use."""
        token = self.token
        everything = self.kind == "session" if token is None else token.everything
        told: Told = "everything" if everything else "scores" if token is None else "answer"

        def use(connection: Connection, answer: Struct, user_id: str | None) -> None:
            if finish is not None:
                finish(connection, answer, user_id)
            if token is not None:
                tokens.use(connection, token)

        return Write(self.tenant, self.actor, use, amend, told)

    @property
    def name(self) -> str:
        """The caller's identity: the id of the key and, for a token, the token's nonce."""
        return self.key_id if self.token is None else f"{self.key_id}/{self.token.nonce}"

    @property
    def actor(self) -> str:
        """The caller's name in the audit log."""
        return f"{self.kind if self.token is None else 'token'}:{self.key_id}"

    @property
    def counted_as(self) -> str:
        """The name under which the caller's requests are counted."""
        return f"key {self.key_id}" if self.token is None else f"token {self.token.nonce}"


class Door:
    """Identifies the caller of each request before anything else in the request is looked at.

    Parameters
    ----------
    notes : where refusals are noted, if the tenant is known
    """

    def __init__(self, context: Context, rates: Rates, notes: CountedNotes) -> None:
        self._context, self._rates, self._notes = context, rates, notes

    def enter(
        self, headers: Mapping[str, str], address: str, purpose: str | None = None, token: str | None = None
    ) -> Caller:
        """Identify the caller and count the request; if refused, it counts towards the address instead."""
        context = self._context
        try:
            if token is not None and purpose is not None:
                caller = token_holder(context, headers, token, purpose)
            else:
                caller = identified(context, headers, purpose)
        except Problem as problem:
            self._rates.count(by_address(address))
            presented = token or headers.get("authorization", "").partition(" ")[2]
            self.note_refusal(presented, problem)
            raise problem from None
        try:
            if caller.token is not None:
                # One browser can use up its own share, and all of them together the share of tokens, but
                # never the key's.
                self._rates.count(caller.counted_as, OF_A_TOKEN)
                self._rates.count(f"tokens {caller.key_id}")
            else:
                self._rates.count(caller.counted_as)
        except Problem as problem:
            self._notes.refused(caller.tenant.id, caller.actor, problem)
            raise
        return caller

    def note_refusal(self, presented: str, problem: Problem) -> None:
        """Note a refusal in the log of the tenant whose key, link or token was presented, if there is one."""
        token = tokens.claimed(presented)
        key_id = token.key_id if token is not None else named_key(presented)
        if key_id is None:
            return
        with self._context.database.reading() as connection:
            tenant_id = tenant_of_key(connection, key_id)
        if tenant_id is not None:
            self._notes.refused(tenant_id, f"{'key' if token is None else 'token'}:{key_id}", problem)


@dataclass(frozen=True)
class Rule:
    """The requirement of a route: an API key with a scope, or a token with a purpose for the path's person.

    If `scope` is None, any key is admitted, and the route itself checks what it needs. A key with the scope
    `or_scope` is admitted too.
    """

    scope: str | None
    purpose: str | None = None
    or_scope: str | None = None

    def __call__(self, request: Request) -> Caller:
        """Return the caller; raise a `Problem` if the request is not allowed."""
        door: Door = request.app.state.door
        caller = door.enter(request.headers, address_of(request), self.purpose)
        request.state.tenant_id, request.state.actor = caller.tenant.id, caller.actor
        request.state.counted_as = caller.counted_as
        if caller.token is None and self.scope is not None:
            caller.need(self.scope, *(() if self.or_scope is None else (self.or_scope,)))
        caller.check_user(context_of(request), request.path_params.get("id", ""))
        return caller


def own_page(request: Request) -> None:
    """Admit a request without a key from one of the service's own pages, counted by its address."""
    request.state.counted_as = by_address(address_of(request))
    request.app.state.rates.count(request.state.counted_as)
    check_own_page(request.headers)


def identified(context: Context, headers: Mapping[str, str], purpose: str | None = None) -> Caller:
    """The holder of the key, or of a token of this purpose, in the `Authorization` header."""
    kind, _, presented = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not presented:
        detail = "Send it as Authorization: Bearer KEY."
        raise Problem(401, "not-authenticated", "An API key is needed", detail)
    if presented.startswith("kdt_"):
        if purpose is None:
            raise forbidden("This cannot be done with a token.")
        return token_holder(context, headers, presented, purpose)
    if presented.startswith("kds_"):
        check_own_page(headers)
    elif "origin" in headers:
        raise forbidden("Browsers must use tokens, not an API key.")
    with context.database.reading() as connection:
        holder = key_holder(connection, context.keys, presented, context.clock())
        tenant = None if holder is None else find_tenant(connection, context.keys, holder.tenant_id)
    if holder is None or tenant is None or holder.kind == "link":
        raise Problem(401, "not-authenticated", "This API key is not valid", "")
    return Caller(tenant, holder.key_id, holder.scopes, kind=holder.kind)


def token_holder(context: Context, headers: Mapping[str, str], presented: str, purpose: str) -> Caller:
    """The holder of a valid token, sent by a page whose origin is in the settings or is the service's own."""
    token, now, tenant = tokens.claimed(presented), context.clock(), None
    if token is not None:
        with context.database.reading() as connection:
            tenant = find_tenant(connection, context.keys, token.tenant_id)
            signed = tenant is not None and tokens.is_valid(presented, tenant, token, now)
            if not signed or not key_is_valid(connection, context.keys, token.key_id, now):
                tenant = None
    if token is None or tenant is None:
        raise Problem(401, "not-authenticated", "This token is not valid", "It may have expired.")
    if token.purpose != purpose:
        raise forbidden(f"The token is for the purpose {token.purpose}, not {purpose}.")
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in tenant.settings.origins and not _is_own_page(headers):
        raise forbidden("The page's origin is not among those in the settings.")
    with context.database.reading() as connection:
        tokens.check_unused(connection, token)
    return Caller(tenant, token.key_id, token=token)


def check_own_page(headers: Mapping[str, str]) -> None:
    """Raise a `Problem` unless the browser states that one of the service's own pages sent the request."""
    if not _is_own_page(headers):
        raise forbidden("This is for the service's own pages.")


def _is_own_page(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    if origin is None:
        # Browsers send no Origin header when a page reads from its own origin.
        return headers.get("sec-fetch-site") == "same-origin"
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and host.lower() == headers.get("host", "").lower()


def context_of(request: Request) -> Context:
    """The application's context: the database, the keys, the clock and the caches."""
    context: Context = request.app.state.context
    return context


def address_of(request: Request) -> str:
    """The address of the client."""
    return request.client.host if request.client else ""


def forbidden(detail: str) -> Problem:
    """The problem reported to a known caller who is not allowed to do this."""
    return Problem(403, "forbidden", "This is not allowed", detail)
