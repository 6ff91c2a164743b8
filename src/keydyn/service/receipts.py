"""Receipts: each tenant signs them with a key of its own, and gives away only what checks them."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keydyn.service.accounts import Tenant
from keydyn.service.wire.receipts import Receipt, url_safe


def signed(tenant: Tenant, receipt: Receipt) -> str:
    """A receipt as the page hands it to its server."""
    claims = receipt.claims()
    return f"{claims}.{url_safe(_key(tenant).sign(claims.encode()))}"


def public_key(tenant: Tenant) -> str:
    """What checks the tenant's receipts."""
    return url_safe(_key(tenant).public_key().public_bytes_raw())


def _key(tenant: Tenant) -> Ed25519PrivateKey:
    """Derived from the tenant's key, which is stored wrapped: there is nothing else to keep."""
    return Ed25519PrivateKey.from_private_bytes(tenant.key.derived("receipts"))
