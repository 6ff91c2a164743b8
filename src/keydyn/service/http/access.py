"""Authentication: API keys with scopes, tokens for one person and purpose, and how often each may ask."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastapi import Request
from msgspec import Struct
from sqlalchemy import Connection

from keydyn.service import tokens
from keydyn.service.accounts import Tenant, find_tenant, key_holder, key_is_valid
from keydyn.service.people.context import Context, Finish, Told, Write
from keydyn.service.people.rows import find_person
from keydyn.service.problems import Problem
from keydyn.service.tokens import TokenClaims

# The number of addresses and keys whose rate is remembered.
REMEMBERED_CALLERS = 10_000


@dataclass(frozen=True)
class Caller:
    """Who sends a request, and for which tenant; `token` if it is a browser."""

    tenant: Tenant
    key_id: str
    scopes: frozenset[str] = frozenset()
    token: TokenClaims | None = None
    kind: str = "key"

    def need(self, scope: str) -> None:
        """A `Problem` if the API key lacks a scope."""
        if scope not in self.scopes:
            raise forbidden(f"The API key lacks the scope {scope}.")

    def check_user(self, context: Context, name: str) -> None:
        """A `Problem` if this is a token for another user."""
        if self.token is not None:
            with context.database.reading() as connection:
                person = find_person(connection, context, self.tenant, name)
            if person is None or person.id != self.token.user_id:
                raise forbidden("The token is for another user.")

    def write(self, finish: Finish | None = None) -> Write:
        """Work on the caller's behalf; a token is used in the change that stores the outcome."""
        token = self.token
        everything = self.kind == "session" if token is None else token.everything
        told: Told = "everything" if everything else "scores" if token is None else "answer"

        def use(connection: Connection, answer: Struct, user_id: str | None) -> None:
            if finish is not None:
                finish(connection, answer, user_id)
            if token is not None:
                tokens.use(connection, token)

        return Write(self.tenant, self.actor, use, told)

    @property
    def name(self) -> str:
        """By which the caller is told from others: the id of the key, with that of the token if it is one."""
        return self.key_id if self.token is None else f"{self.key_id}/{self.token.nonce}"

    @property
    def actor(self) -> str:
        """The caller's name in the audit log."""
        return f"{self.kind if self.token is None else 'token'}:{self.key_id}"


@dataclass(frozen=True)
class Rule:
    """What a route demands: a scope of an API key, or a token of this purpose for the person in the path.

    Without a scope any key will do, and the route itself asks for what it needs.
    """

    scope: str | None
    purpose: str | None = None

    def __call__(self, request: Request) -> Caller:
        """Who sends the request; a `Problem` if they may not."""
        context = context_of(request)
        rates: Rates = request.app.state.rates
        try:
            caller = identified(context, request.headers, self.scope, self.purpose)
        except Problem as problem:
            rates.count(peer_of(request))
            raise problem from None
        request.state.tenant_id = caller.tenant.id
        rates.count(f"key {caller.key_id}")
        caller.check_user(context, request.path_params.get("id", ""))
        return caller


def identified(
    context: Context, headers: Mapping[str, str], scope: str | None, purpose: str | None = None
) -> Caller:
    """The holder of the key or token in the `Authorization` header, who must have this scope or purpose."""
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
        holder = key_holder(connection, presented, context.clock())
        tenant = None if holder is None else find_tenant(connection, context.keys, holder.tenant_id)
    if holder is None or tenant is None or holder.kind == "link":
        raise Problem(401, "not-authenticated", "This API key is not valid", "")
    caller = Caller(tenant, holder.key_id, holder.scopes, kind=holder.kind)
    if scope is not None:
        caller.need(scope)
    return caller


def token_holder(context: Context, headers: Mapping[str, str], presented: str, purpose: str) -> Caller:
    """The holder of a token, from a page that the tenant names."""
    token, now, tenant = tokens.claimed(presented), context.clock(), None
    if token is not None:
        with context.database.reading() as connection:
            tenant = find_tenant(connection, context.keys, token.tenant_id)
            signed = tenant is not None and tokens.is_valid(presented, tenant, token, now)
            if not signed or not key_is_valid(connection, token.key_id, now):
                tenant = None
    if token is None or tenant is None:
        raise Problem(401, "not-authenticated", "This token is not valid", "It may have expired.")
    if token.purpose != purpose:
        raise forbidden(f"The token is for the purpose {token.purpose}, not {purpose}.")
    if headers.get("origin", "").lower() not in tenant.settings.origins and not _is_own_page(headers):
        raise forbidden("The page's origin is not among those in the settings.")
    with context.database.reading() as connection:
        tokens.check_unused(connection, token)
    return Caller(tenant, token.key_id, token=token)


def check_own_page(headers: Mapping[str, str]) -> None:
    """A `Problem` if a browser sends this from a page that is not the service's own."""
    if not _is_own_page(headers):
        raise forbidden("This is for the service's own pages.")


def _is_own_page(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    if origin is None:
        return True
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and host.lower() == headers.get("host", "").lower()


def context_of(request: Request) -> Context:
    """The database, the keys and the time."""
    context: Context = request.app.state.context
    return context


def peer_of(request: Request) -> str:
    """The caller whose rate counts requests without a valid key."""
    return f"peer {request.client.host if request.client else ''}"


def forbidden(detail: str) -> Problem:
    """The problem of a caller who is known but not allowed to do this."""
    return Problem(403, "forbidden", "This is not allowed", detail)


class Rates:
    """Requests per second of each caller, limited by a token bucket."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._clock = per_second, max(2 * per_second, 1.0), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, caller: str) -> None:
        """Count a request; a `Problem` if there have been too many."""
        now = self._clock()
        with self._lock:
            left, then = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - then) * self._rate)
            self._left[caller] = max(left - 1.0, 0.0), now
            if len(self._left) > REMEMBERED_CALLERS:
                self._left.popitem(last=False)
        if left < 1.0:
            detail = f"{self._rate:g} requests per second are allowed."
            raise Problem(429, "too-many-requests", "Too many requests", detail, retry_after=1)
