"""Problems: the answers to requests that fail, in the format of RFC 9457."""

from __future__ import annotations

from typing import Any


class Problem(Exception):  # noqa: N818  (the name in RFC 9457)
    """An error that is answered to the caller.

    Attributes
    ----------
    status : the status of the HTTP answer
    kind : a stable name of the problem, for programs
    title : a description of the problem, for people
    detail : what happened this time; never contains a secret or a timing
    more : further fields of the answer, such as `retry_after` in seconds
    """

    def __init__(self, status: int, kind: str, title: str, detail: str = "", **more: Any) -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.status, self.kind, self.title, self.detail, self.more = status, kind, title, detail, more

    def as_json(self, instance: str | None = None) -> dict[str, Any]:
        """The body of the answer; `instance` is the id of the request."""
        found: dict[str, Any] = {
            "type": f"urn:keydyn:problem:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        if instance is not None:
            found["instance"] = f"urn:keydyn:request:{instance}"
        return found
