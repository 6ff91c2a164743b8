"""Messages from the service: answers, parsed as the service's own types, problems, reports and receipts."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import DecodeError

from keydyn.service.wire.both_ways import decoded
from keydyn.service.wire.receipts import Receipt, from_url_safe, parts

Result = TypeVar("Result")
PREFIX, REQUEST = "urn:keydyn:problem:", "urn:keydyn:request:"
# Seconds by which a receipt may be in the future, because clocks differ.
AHEAD_S = 30.0


@dataclass(frozen=True)
class Trust:
    """The service's trust in the typist after one keystroke of a watched session.

    Attributes
    ----------
    keystroke : its number in the session, from 1
    trust : None if there is nothing to judge by
    suspicion : how strongly the last keystrokes suggest another person
    """

    keystroke: int
    trust: float | None
    suspicion: float


class UnexpectedAnswerError(ValueError):
    """The service sent an answer that this client does not understand.

    Examples
    --------
    >>> from keydyn.client import UnexpectedAnswerError, User
    >>> from keydyn.client.received import read
    >>> try:
    ...     read(User, b'{"id": 7}')  # as a client reads an answer
    ... except UnexpectedAnswerError as error:
    ...     print(error)
    the service's answer is not a User
    """


def read(kind: type[Result], contents: bytes) -> Result:
    """Read an answer as this type; an `UnexpectedAnswerError` if it does not fit."""
    try:
        return decoded(kind, contents)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswerError(f"the service's answer is not a {kind.__name__}") from error


def verify_signature(
    secret: str, timestamp: str | int, body: bytes, signature: str, tolerance: float = 300.0
) -> bool:
    """Check that the service sent a report recently, and that it has not been changed.

    The timestamp and the signature are those of the headers `Keydyn-Timestamp` and `Keydyn-Signature`. The
    body is the received one, before it is parsed. The tolerance, in seconds, limits the age of a report and
    the difference of the clocks.

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


class ReceiptError(ValueError):
    """A receipt must not be trusted; the message gives the reason.

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
    """Check a receipt that a page has handed over, and return its contents, or raise a `ReceiptError`.

    It must be signed with the key returned by `Client.receipt_key`, about this user, of this kind, "verify"
    or "identify", and at most this many seconds old; `now`, in seconds since 1970, is by default the time of
    this machine's clock. The decision is in `answer`, and `accepted` is whether it was "accept". A receipt
    can be handed over again until it is too old: if that matters, remember the ids of decisions that you have
    acted on.

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


class ServiceProblem(Exception):  # noqa: N818  (RFC 9457 calls it so)
    """The service answered, but without success.

    Attributes
    ----------
    status : the status of the HTTP answer
    kind : the stable name of the problem, such as "not-enrolled"; empty if the answer is not the service's
    title : a description of the kind
    detail : a description of this occurrence
    retry_after : seconds after which the request may be sent again, if the service gave a time
    request_id : the id of the request in the service's log
    more : further fields of the answer

    Examples
    --------
    >>> import os
    >>> from keydyn.client import Client, ServiceProblem
    >>> robot = [("a", 100.0 * n, 100.0 * n + 50.0) for n in range(60)]  # like a clock
    >>> problems = []
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     user = service.create_user()
    ...     for work in (
    ...         lambda: service.user("nobody"),
    ...         lambda: service.verify(user.id, robot),
    ...         lambda: service.enrol(user.id, robot),
    ...     ):
    ...         try:
    ...             work()
    ...         except ServiceProblem as problem:
    ...             problems.append(problem)
    >>> [(type(problem).__name__, problem.kind) for problem in problems]
    [('NotFound', 'no-such-user'), ('NotEnrolled', 'not-enrolled'), ('NotTyping', 'not-typing')]
    >>> problems[1].more["samples_needed"]
    5
    """

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str = "",
        retry_after: float | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.status, self.kind, self.title, self.detail = status, kind, title, detail
        self.retry_after, self.more = retry_after, dict(more or {})
        self.request_id: str | None = None


class NotFound(ServiceProblem):
    """There is no such user, session or webhook."""


class NotEnrolled(ServiceProblem):
    """More samples are needed before this person can be verified or watched."""


class NotTyping(ServiceProblem):
    """A sample was refused, because no person typed it or it is a copy of an earlier one."""


class TooManyAttempts(ServiceProblem):
    """Too many attempts to be this person failed; the next may be made after `retry_after` seconds.

    Examples
    --------
    Here bela is enrolled already.

    >>> import os
    >>> from keydyn.client import Client, TooManyAttempts
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     try:
    ...         for _ in range(6):
    ...             decision = service.verify("bela", [("t", 0.0, 92.4), ("h", 110.3, None)])
    ...     except TooManyAttempts as problem:
    ...         print(problem.status, problem.retry_after > 0)
    ...     user = service.unblock("bela")  # forgives the failures
    429 True
    """


class ServiceUnreachable(ConnectionError):  # noqa: N818
    """The service did not answer in time, even to repeated requests.

    Examples
    --------
    >>> from keydyn.client import Client, ServiceUnreachable
    >>> with Client("http://127.0.0.1:9", "a key", patience_s=0.1) as nowhere:
    ...     try:
    ...         nowhere.user("ada")
    ...     except ServiceUnreachable as error:
    ...         print(isinstance(error, ConnectionError))
    True
    """


KINDS = {
    "not-enrolled": NotEnrolled,
    "not-typing": NotTyping,
    "too-many-attempts": TooManyAttempts,
    "attempts-spent": TooManyAttempts,
}


def problem(
    fields: Mapping[str, Any], status: int, title: str, retry_after: float | None = None
) -> ServiceProblem:
    """Make the exception for the fields of an answer; `status` and `title` are used for missing ones."""
    known = {"type", "title", "status", "detail", "instance"}
    kind = str(fields.get("type", "")).removeprefix(PREFIX)
    instance = fields.get("instance")
    more = {name: value for name, value in fields.items() if name not in known}
    words = str(fields.get("title") or title), str(fields.get("detail", ""))
    of_kind = KINDS.get(kind, NotFound if status == 404 else ServiceProblem)
    found = of_kind(status, kind, *words, retry_after, more)
    found.request_id = None if instance is None else str(instance).removeprefix(REQUEST)
    return found
