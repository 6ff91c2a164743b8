"""Tokens for browsers: signed, short-lived, and good for one person and one purpose."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

import msgspec

from keydyn.service.accounts import Tenant

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
    nonce : makes each token different
    """

    tenant_id: str
    key_id: str
    user_id: str
    purpose: str
    session_id: str
    expires_at: int
    nonce: str

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
        return msgspec.json.decode(claims, type=TokenClaims)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def is_valid(presented: str, tenant: Tenant, claims: TokenClaims, now: int) -> bool:
    """Whether this tenant signed a token with these claims, and it has not expired."""
    text, _, signature = presented.removeprefix("kdt_").partition(".")
    signed = hmac.compare_digest(_encoded(_signature(tenant, text)), signature)
    return signed and claims.tenant_id == tenant.id and now < claims.expires_at


def _signature(tenant: Tenant, claims: str) -> bytes:
    return hmac.new(tenant.key.derived("tokens"), claims.encode(), hashlib.sha256).digest()


def _encoded(contents: bytes) -> str:
    return base64.urlsafe_b64encode(contents).decode().rstrip("=")
