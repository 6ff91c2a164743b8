"""Tokens for browsers: signed, short-lived, and good for one person and one purpose."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass

from keydyn.service.accounts import Tenant

# kdt_<claims>.<signature>, both in URL-safe base 64.
PRESENTED = re.compile(r"kdt_([A-Za-z0-9_-]{1,2000})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class TokenClaims:
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

    @classmethod
    def new(
        cls, tenant: Tenant, key_id: str, user_id: str, purpose: str, expires_at: int, session_id: str = ""
    ) -> TokenClaims:
        """The claims of a new token."""
        return cls(tenant.id, key_id, user_id, purpose, session_id, expires_at, secrets.token_hex(8))

    def signed(self, tenant: Tenant) -> str:
        """The token as the browser presents it."""
        claims = _encoded(json.dumps(list(asdict(self).values()), separators=(",", ":")).encode())
        return f"kdt_{claims}.{_encoded(_signature(tenant, claims))}"


def claimed_tenant(presented: str) -> str | None:
    """The tenant that a token says it is of, whose key then decides; None if it is no token."""
    token = _parsed(presented)
    return None if token is None else token.tenant_id


def checked(presented: str, tenant: Tenant, now: int) -> TokenClaims | None:
    """What a token says, if this tenant signed it and it has not expired; otherwise None."""
    parts, token = PRESENTED.fullmatch(presented), _parsed(presented)
    if parts is None or token is None or token.tenant_id != tenant.id:
        return None
    if not hmac.compare_digest(_encoded(_signature(tenant, parts[1])), parts[2]):
        return None
    return token if now < token.expires_at else None


def _parsed(presented: str) -> TokenClaims | None:
    parts = PRESENTED.fullmatch(presented)
    if parts is None:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    kinds = (str, str, str, str, str, int, str)
    if not isinstance(values, list) or [type(value) for value in values] != list(kinds):
        return None
    return TokenClaims(*values)


def _signature(tenant: Tenant, claims: str) -> bytes:
    return hmac.new(tenant.key.derived("tokens"), claims.encode(), hashlib.sha256).digest()


def _encoded(contents: bytes) -> str:
    return base64.urlsafe_b64encode(contents).decode().rstrip("=")
