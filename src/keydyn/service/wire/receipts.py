"""Receipts: decisions signed by the service, which a page hands to its own server."""

from __future__ import annotations

import base64
import re
from typing import Annotated, Literal

from msgspec import Struct

from keydyn.service.wire.both_ways import Device, Level, Moment, about, decoded, encoded

# kdr_<claims>.<signature>, both in URL-safe base 64; Ed25519 signs what comes before the full stop.
PRESENTED = re.compile(r"kdr_([A-Za-z0-9_-]{1,2000})\.([A-Za-z0-9_-]{86})")


class Receipt(Struct, frozen=True):
    """The contents of a receipt: the decision that it vouches for."""

    decision: Annotated[str, about("The decision's id.")]
    tenant: Annotated[str, about("The id of the tenant.")]
    at: Annotated[Moment, about("When it was made.")]
    kind: Annotated[Literal["verify", "identify"], about("What was asked.")]
    user: Annotated[str | None, about("The id of the user; null if no user was identified.")]
    answer: Annotated[Literal["accept", "reject", "unsure"], about("What was decided.")]
    level: Annotated[Level, about("The level that was applied.")]
    text: Annotated[str, about("What was typed: `free`, `fixed:NAME` or `positions:NAME`.")]
    device: Annotated[Device, about("What it was typed on.")]

    @property
    def accepted(self) -> bool:
        """Whether the answer is "accept"."""
        return self.answer == "accept"

    def claims(self) -> str:
        """The part of a receipt that is signed."""
        return f"kdr_{url_safe(encoded(self))}"


def parts(presented: str) -> tuple[Receipt, bytes, bytes] | None:
    """Split a receipt into its contents, the bytes that are signed, and the signature; None if malformed."""
    found = PRESENTED.fullmatch(presented)
    if found is None:
        return None
    try:
        receipt = decoded(Receipt, from_url_safe(found[1]))
        return receipt, f"kdr_{found[1]}".encode(), from_url_safe(found[2])
    except (ValueError, RecursionError):
        return None


def url_safe(contents: bytes) -> str:
    """Encode bytes in URL-safe base 64, without padding."""
    return base64.urlsafe_b64encode(contents).decode().rstrip("=")


def from_url_safe(text: str) -> bytes:
    """Decode what `url_safe` encoded."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
