"""Receipts of decisions, checked without asking the service."""

from __future__ import annotations

import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from keydyn.service.wire.receipts import Receipt, from_url_safe, parts

# Seconds by which a receipt may seem to come from the future: clocks differ.
AHEAD_S = 30.0


class ReceiptError(ValueError):
    """A receipt must not be trusted; the message says why.

    Examples
    --------
    >>> from keydyn.client import ReceiptError, check_receipt
    >>> try:
    ...     check_receipt("kdr_made.up", "A" * 43, user="ada")
    ... except ReceiptError as error:
    ...     print(error)
    this is not a receipt
    """


def check_receipt(
    receipt: str,
    key: str,
    *,
    user: str,
    kind: str = "verify",
    max_age_s: float = 300.0,
    now: float | None = None,
) -> Receipt:
    """Check a receipt that a page has handed over, and return what it says, or raise a `ReceiptError`.

    It must be signed with the key that `Client.receipt_key` names, about the user who is logging in, of the
    kind "verify" or "identify", and at most this many seconds old; `now`, in seconds since 1970, is by
    default the time of this machine's clock. What was decided is in `answer`, and `accepted` says whether it
    was "accept". A receipt can be handed over again while it is young enough: where that matters, remember
    the ids of decisions that you have acted on.

    Examples
    --------
    Here bela is enrolled already, and the page has sent a sample with a token.

    >>> import os
    >>> from keydyn.client import Client, check_receipt
    >>> from keydyn.datasets import make_typists
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     key = service.receipt_key()  # stays the same: keep it
    ...     from_the_page = service.verify("bela", make_typists(1, 1, "free", 60)).receipt
    >>> receipt = check_receipt(from_the_page, key, user="bela")
    >>> receipt.user, receipt.kind, receipt.text
    ('bela', 'verify', 'free')
    """
    found = parts(receipt)
    if found is None:
        raise ReceiptError("this is not a receipt")
    claims, signed, signature = found
    try:
        Ed25519PublicKey.from_public_bytes(from_url_safe(key)).verify(signature, signed)
    except InvalidSignature:
        raise ReceiptError("the receipt was not signed by this tenant's service, or has changed") from None
    if claims.user != user:
        raise ReceiptError("the receipt is about another user")
    if claims.kind != kind:
        raise ReceiptError(f"the receipt is of the kind {claims.kind}, not {kind}")
    age = (time.time() if now is None else now) - claims.at.timestamp()
    if not -AHEAD_S <= age <= max_age_s:
        raise ReceiptError("the receipt is too old, or not valid yet")
    return claims
