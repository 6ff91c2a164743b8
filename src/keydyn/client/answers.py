"""What the service sends: answers, parsed as the types that it has itself, and signed reports to webhooks."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import TypeVar

from msgspec import DecodeError

from keydyn.service.wire.both_ways import decoded

Result = TypeVar("Result")


@dataclass(frozen=True)
class Trust:
    """What the service thinks of the typist after one keystroke of a watched session.

    Attributes
    ----------
    keystroke : its number in the session, from 1
    trust : None where there is nothing to judge by
    suspicion : how strongly the last keystrokes speak for another person
    """

    keystroke: int
    trust: float | None
    suspicion: float


class UnexpectedAnswerError(ValueError):
    """The service answered with something that this client does not understand.

    Examples
    --------
    >>> from keydyn.client import UnexpectedAnswerError, User
    >>> from keydyn.client.answers import read
    >>> try:
    ...     read(User, b'{"id": 7}')  # as a client reads an answer
    ... except UnexpectedAnswerError as error:
    ...     print(error)
    the service's answer is not a User
    """


def read(kind: type[Result], contents: bytes) -> Result:
    """An answer as a type; an `UnexpectedAnswerError` if it does not fit."""
    try:
        return decoded(kind, contents)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswerError(f"the service's answer is not a {kind.__name__}") from error


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
