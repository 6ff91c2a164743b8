"""What can go wrong, as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREFIX, REQUEST = "urn:keydyn:problem:", "urn:keydyn:request:"


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
    """

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str = "",
        retry_after: float | None = None,
        request_id: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.status, self.kind, self.title, self.detail = status, kind, title, detail
        self.retry_after, self.request_id, self.more = retry_after, request_id, dict(more or {})


class NotFound(ServiceProblem):
    """There is no such user, session or webhook."""


class NotEnrolled(ServiceProblem):
    """More samples are needed before this person can be verified or watched."""


class NotTyping(ServiceProblem):
    """A sample was refused: it is no typing, or a copy of an earlier sample."""


class TooManyAttempts(ServiceProblem):
    """Too many attempts to be this person failed; `retry_after` says when the next one may be made."""


class ServiceUnreachable(ConnectionError):  # noqa: N818
    """The service did not answer in time, however often it was asked."""


KINDS = {
    "not-enrolled": NotEnrolled,
    "not-typing": NotTyping,
    "too-many-attempts": TooManyAttempts,
    "blocked": TooManyAttempts,
}


def problem(
    fields: Mapping[str, Any], status: int, title: str, retry_after: float | None = None
) -> ServiceProblem:
    """The exception for the fields of an answer; status and title are used where they have none."""
    known = {"type", "title", "status", "detail", "instance"}
    kind = str(fields.get("type", "")).removeprefix(PREFIX)
    instance = fields.get("instance")
    found = KINDS.get(kind, NotFound if status == 404 else ServiceProblem)
    return found(
        status,
        kind,
        str(fields.get("title") or title),
        str(fields.get("detail", "")),
        retry_after,
        None if instance is None else str(instance).removeprefix(REQUEST),
        {name: value for name, value in fields.items() if name not in known},
    )
