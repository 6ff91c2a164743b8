"""Tokens for browsers: signed, short-lived, and good for one person and one purpose."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

import msgspec
from sqlalchemy import Connection

from keydyn.service.accounts import Tenant
from keydyn.service.problems import Problem
from keydyn.service.storage import counters
from keydyn.service.wire.both_ways import Device, Level, decoded

# kdt_<claims>.<signature>, both in URL-safe base 64.
PRESENTED = re.compile(r"kdt_([A-Za-z0-9_-]{1,2000})\.([A-Za-z0-9_-]{43})")

# Escaped as in JSON: some databases do not take it even in what is looked for.
NUL = b"\\u0000"


class TokenClaims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The claims of a token.

    Attributes
    ----------
    tenant_id, key_id : whose key it was made with; it is void when that key is revoked
    user_id : whom it is for
    purpose : what it allows
    session_id : the session to watch or to unlock; "" for other purposes
    expires_at : milliseconds since 1970
    nonce : makes each token different, and names it where its uses are counted
    text, device, level : all that samples may be of, typed on and judged at
    uses : how many samples may be sent with it; 0 for those that send none
    lock : which of the session's locks it opens, counted from 1; 0 for other purposes
    everything : whether its holder, a page of the service, sees everything
    """

    tenant_id: str
    key_id: str
    user_id: str
    purpose: str
    session_id: str
    expires_at: int
    nonce: str
    text: str
    device: Device
    level: Level
    uses: int
    lock: int = 0
    everything: bool = False

    def signed(self, tenant: Tenant) -> str:
        """The token as the browser presents it."""
        claims = _encoded(msgspec.json.encode(self))
        return f"kdt_{claims}.{_encoded(_signature(tenant, claims))}"


def claimed(presented: str) -> TokenClaims | None:
    """What a token says, which is not proved until `is_valid`; None if it is no token."""
    parts = PRESENTED.fullmatch(presented)
    if parts is None:
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        if NUL in claims:
            return None
        return decoded(TokenClaims, claims)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def is_valid(presented: str, tenant: Tenant, claims: TokenClaims, now: int) -> bool:
    """Whether this tenant signed a token with these claims, and it has not expired."""
    text, _, signature = presented.removeprefix("kdt_").partition(".")
    signed = hmac.compare_digest(_encoded(_signature(tenant, text)), signature)
    return signed and claims.tenant_id == tenant.id and now < claims.expires_at


def check_unused(connection: Connection, claims: TokenClaims) -> None:
    """A `Problem` if the token was used as often as it may be."""
    if claims.uses and counters.amount(connection, claims.tenant_id, _uses(claims)) >= claims.uses:
        raise _used_up(claims)


def use(connection: Connection, claims: TokenClaims) -> None:
    """Use a token once more, in the change that it is used for; a `Problem` if it is used up."""
    used = counters.add(connection, claims.tenant_id, _uses(claims), 1, claims.expires_at)
    if used > claims.uses:
        raise _used_up(claims)


def _uses(claims: TokenClaims) -> str:
    return f"token/{claims.nonce}"


def _used_up(claims: TokenClaims) -> Problem:
    detail = f"{claims.uses} samples could be sent with it; ask for another token."
    return Problem(403, "token-used-up", "This token is used up", detail)


def _signature(tenant: Tenant, claims: str) -> bytes:
    return hmac.new(tenant.key.derived("tokens"), claims.encode(), hashlib.sha256).digest()


def _encoded(contents: bytes) -> str:
    return base64.urlsafe_b64encode(contents).decode().rstrip("=")
