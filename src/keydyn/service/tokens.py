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

# The null character as escaped in JSON: some databases accept it not even in a query.
NUL = b"\\u0000"


class TokenClaims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The claims of a token.

    Attributes
    ----------
    tenant_id, key_id : the tenant and the key that made the token, which is void when the key is revoked
    user_id : the user whom the token is for
    purpose : what the token allows
    session_id : the session to watch or to unlock; "" for other purposes
    expires_at : when the token expires, in milliseconds since 1970
    nonce : makes each token different, and names it where its uses are counted
    text, device, level : the only text and device that samples may have, and the level they are judged at
    uses : how many samples may be sent with the token; 0 for purposes that send none
    lock : the number of the session's lock that the token opens, from 1; 0 for other purposes
    everything : whether the holder, a page of the service, sees all of a decision
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
        """The signed token, as the browser presents it."""
        claims = _encoded(msgspec.json.encode(self))
        return f"kdt_{claims}.{_encoded(_signature(tenant, claims))}"


def claimed(presented: str) -> TokenClaims | None:
    """Read the claims of a token, which `is_valid` has yet to confirm; None if it is not a token."""
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
    """Whether this tenant signed the token, and its claims have not expired."""
    text, _, signature = presented.removeprefix("kdt_").partition(".")
    signed = hmac.compare_digest(_encoded(_signature(tenant, text)), signature)
    return signed and claims.tenant_id == tenant.id and now < claims.expires_at


def check_unused(connection: Connection, claims: TokenClaims) -> None:
    """Raise a `Problem` if the token has been used as often as it may be."""
    if claims.uses and counters.amount(connection, claims.tenant_id, _uses(claims)) >= claims.uses:
        raise _used_up(claims)


def use(connection: Connection, claims: TokenClaims) -> None:
    """Count a use of a token, in the change that it is used for; raise a `Problem` if it is used up."""
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
