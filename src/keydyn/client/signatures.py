"""Verifying the signature of a webhook, for its receiver."""

from __future__ import annotations

import hashlib
import hmac
import time


def verify_signature(
    secret: str, timestamp: str | int, body: bytes, signature: str, tolerance: float = 300.0
) -> bool:
    """Whether the service sent a report, unchanged, not long ago.

    The timestamp and the signature are those of the headers `Keydyn-Timestamp` and `Keydyn-Signature`. The
    body is what was received, before it is parsed. The tolerance, in seconds, is how old a report may be and
    how far the clocks may differ.

    Examples
    --------
    >>> import hashlib, hmac, time
    >>> from keydyn.client import verify_signature
    >>> secret, stamp, body = "of the webhook", str(int(time.time())), b'{"type":"session.locked"}'
    >>> signature = "v1=" + hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    >>> verify_signature(secret, stamp, body, signature)
    True
    >>> verify_signature(secret, stamp, body + b" ", signature)
    False
    """
    if not str(timestamp).isascii() or not str(timestamp).isdigit():
        return False
    expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    same = hmac.compare_digest(signature.encode(), f"v1={expected}".encode())
    return same and abs(time.time() - int(timestamp)) <= tolerance
