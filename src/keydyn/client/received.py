"""What the service sends: answers, parsed as the types that it has itself, problems, and signed reports."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import DecodeError

from keydyn.service.wire.both_ways import decoded

Result = TypeVar("Result")
PREFIX, REQUEST = "urn:keydyn:problem:", "urn:keydyn:request:"


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


class ServiceProblem(Exception):  # noqa: N818  (RFC 9457 calls it so)
    """The service answered, but not with success.

    Attributes
    ----------
    status : of the HTTP answer
    kind : the problem's name, stable, such as "not-enrolled"; empty if the answer was not the service's own
    title : the same in words
    detail : what happened this time
    retry_after : seconds after which the request may be sent again, if the service said so
    request_id : by which the service's log knows the request
    more : further fields of the answer

    Examples
    --------
    >>> import os
    >>> from keydyn.client import Client, ServiceProblem
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     try:
    ...         service.create_user("no spaces")
    ...     except ServiceProblem as problem:
    ...         print(problem.status, problem.kind)
    422 invalid-request
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
    """There is no such user, session or webhook.

    Examples
    --------
    >>> import os
    >>> from keydyn.client import Client, NotFound
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     try:
    ...         service.user("nobody")
    ...     except NotFound as problem:
    ...         print(problem.status, problem.kind)
    404 no-such-user
    """


class NotEnrolled(ServiceProblem):
    """More samples are needed before this person can be verified or watched.

    Examples
    --------
    >>> import os
    >>> from keydyn.client import Client, NotEnrolled
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     user = service.create_user()
    ...     try:
    ...         service.verify(user.id, [("t", 0.0, 92.4), ("h", 110.3, None)])
    ...     except NotEnrolled as problem:
    ...         print(problem.kind, problem.more["samples_needed"])
    not-enrolled 5
    """


class NotTyping(ServiceProblem):
    """A sample was refused: no person typed it, or it is a copy of an earlier one.

    Examples
    --------
    >>> import os
    >>> from keydyn.client import Client, NotTyping
    >>> robot = [("a", 100.0 * n, 100.0 * n + 50.0) for n in range(60)]  # like a clock
    >>> with Client("http://127.0.0.1:8421", os.environ["KEY"]) as service:
    ...     user = service.create_user()
    ...     try:
    ...         service.enrol(user.id, robot)
    ...     except NotTyping as problem:
    ...         print(problem.status, problem.kind)
    422 not-typing
    """


class TooManyAttempts(ServiceProblem):
    """Too many attempts to be this person failed; `retry_after` says when the next one may be made.

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
    """The service did not answer in time, however often it was asked.

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
    """Make the exception for the fields of an answer; status and title stand in for missing ones."""
    known = {"type", "title", "status", "detail", "instance"}
    kind = str(fields.get("type", "")).removeprefix(PREFIX)
    instance = fields.get("instance")
    more = {name: value for name, value in fields.items() if name not in known}
    words = str(fields.get("title") or title), str(fields.get("detail", ""))
    of_kind = KINDS.get(kind, NotFound if status == 404 else ServiceProblem)
    found = of_kind(status, kind, *words, retry_after, more)
    found.request_id = None if instance is None else str(instance).removeprefix(REQUEST)
    return found
