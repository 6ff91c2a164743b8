"""Receipts: each tenant signs them with a key of its own, and gives away only what checks them."""

from __future__ import annotations

from keydyn.service.accounts import Tenant
from keydyn.service.wire.receipts import Receipt, url_safe


def signed(tenant: Tenant, receipt: Receipt) -> str:
    """A receipt as the page hands it to its server."""
    claims = receipt.claims()
    return f"{claims}.{url_safe(tenant.signing_key.sign(claims.encode()))}"


def public_key(tenant: Tenant) -> str:
    """What checks the tenant's receipts."""
    return url_safe(tenant.signing_key.public_key().public_bytes_raw())
