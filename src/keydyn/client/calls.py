"""HTTP requests that are sent again when that can help, and have one effect however often they are sent."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from random import SystemRandom
from typing import TypeVar

import httpx

from keydyn.client.answers import read
from keydyn.client.problems import ServiceProblem, ServiceUnreachable, TooManyAttempts, problem
from keydyn.service.wire.encoding import encoded

Result = TypeVar("Result")

# Answers of a service that is busy, or of a proxy before one that is not there.
LATER = {429, 502, 503, 504}
FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 5.0


class Patience:
    """How long something is tried, and how long to wait in between, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._failures = 0

    @property
    def left_s(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._until - time.monotonic())

    def wait(self, at_least: float | None = None) -> bool:
        """Wait before the next attempt; False, at once, if there is no time for it."""
        longest = min(FIRST_DELAY_S * 2**self._failures, LONGEST_DELAY_S)
        self._failures += 1
        delay = max(at_least or 0.0, longest * SystemRandom().uniform(0.5, 1))
        if delay >= self.left_s:
            return False
        time.sleep(delay)
        return True


class Calls:
    """The HTTP side of a client.

    Parameters
    ----------
    timeout_s : for which one attempt may be silent
    patience_s : for which a call is tried altogether
    """

    def __init__(self, url: str, key: str, timeout_s: float, patience_s: float) -> None:
        self._timeout_s, self._patience_s = timeout_s, patience_s
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._http = httpx.Client(base_url=url, headers=headers)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def call(
        self,
        kind: type[Result],
        method: str,
        path: str,
        body: object | None = None,
        query: Mapping[str, str | int] | None = None,
    ) -> Result:
        """The answer; a `ServiceProblem` if it is not a success, `ServiceUnreachable` if there is none."""
        headers = {}
        if method != "GET":
            # The same each time that this call is sent.
            headers["Idempotency-Key"] = secrets.token_hex(16)
        content = None
        if body is not None:
            content = encoded(body)
            headers["Content-Type"] = "application/json"
        patience = Patience(self._patience_s)
        while True:
            timeout = max(0.001, min(self._timeout_s, patience.left_s))
            try:
                answer = self._http.request(
                    method, path, content=content, params=query, headers=headers, timeout=timeout
                )
            except httpx.TransportError as error:
                if not patience.wait():
                    raise ServiceUnreachable(f"the service cannot be reached: {error}") from error
                continue
            if answer.is_success:
                return read(kind, answer.content)
            found = refusal(answer.status_code, answer.reason_phrase, answer.headers, answer.content)
            again = answer.status_code in LATER and not isinstance(found, TooManyAttempts)
            if not again or not patience.wait(found.retry_after):
                raise found


def refusal(status: int, title: str, headers: Mapping[str, str], body: bytes) -> ServiceProblem:
    """The exception for an answer other than success, from the service or a proxy before it."""
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    after = headers.get("Retry-After", "")
    found = problem(
        fields if isinstance(fields, dict) else {},
        status,
        title or f"status {status}",
        # A date is possible too, but not sent by the service.
        float(after) if after.isascii() and after.isdigit() else None,
    )
    found.request_id = found.request_id or headers.get("X-Request-Id")
    return found
