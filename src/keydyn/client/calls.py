"""Requests to the service over HTTP, repeated when that can help, and the keystrokes that they contain."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import httpx

from keydyn.client.received import ServiceProblem, ServiceUnreachable, TooManyAttempts, problem, read
from keydyn.service.wire.both_ways import encoded
from keydyn.service.wire.requests import KeyEvent
from keydyn.service.wire.requests import Keystroke as SentKeystroke

if TYPE_CHECKING:
    # An optional dependency.
    from pandas import DataFrame

Result = TypeVar("Result")
# Statuses of a service that is busy, or of a proxy whose service is down.
LATER = {429, 502, 503, 504}
FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 5.0


# A key and the times of its press and release in milliseconds; None if the release was not seen.
Keystroke: TypeAlias = tuple[str, float, float | None]
# Tuples, mappings with `keyname`, `timepress` and `timerelease`, or a data frame with these columns; raw
# events are mappings with `type`, `key` and `time`.
Keystrokes: TypeAlias = "Iterable[Keystroke] | Iterable[Mapping[str, Any]] | DataFrame"
COLUMNS = ("keyname", "timepress", "timerelease")


def keystrokes(given: Keystrokes) -> list[Keystroke]:
    """Convert keystrokes in any form to tuples."""
    rows = _rows(given)
    if any(isinstance(row, Mapping) and "type" in row for row in rows):
        raise ValueError("keystrokes are needed here, not raw events")
    return [_keystroke(row) for row in rows]


def sample(given: Keystrokes) -> dict[str, Any]:
    """Make the fields of a request that hold a sample: keystrokes, or raw events if given as such."""
    rows = _rows(given)
    if rows and all(isinstance(row, Mapping) and "type" in row for row in rows):
        return {"events": [KeyEvent(**row) for row in rows]}
    return {"keystrokes": [SentKeystroke(*row) for row in keystrokes(rows)]}


def _rows(given: Keystrokes) -> list[Any]:
    frame: Any = given
    if not hasattr(given, "itertuples"):
        return list(frame)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ValueError(f"the data frame has no column {missing[0]}")
    return list(frame[list(COLUMNS)].itertuples(index=False, name=None))


def _keystroke(row: Any) -> Keystroke:
    if isinstance(row, Mapping):
        row = row["keyname"], row["timepress"], row.get("timerelease")
    key, press, release = row
    press = float(press)
    # A release that was not seen is NaN in a data frame.
    release = None if release is None or release != release else float(release)
    return str(key), press, release


class Patience:
    """Limits how long a call is repeated, and waits between attempts, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._failures = 0

    @property
    def left_s(self) -> float:
        """The remaining seconds, at least 0."""
        return max(0.0, self._until - time.monotonic())

    def wait(self, at_least: float | None = None) -> bool:
        """Wait before the next attempt; return False at once if there is no time for it."""
        longest = min(FIRST_DELAY_S * 2**self._failures, LONGEST_DELAY_S)
        self._failures += 1
        delay = max(at_least or 0.0, longest * SystemRandom().uniform(0.5, 1))
        if delay >= self.left_s:
            return False
        time.sleep(delay)
        return True


class Connecting(NamedTuple):
    """The settings of a client's connections.

    Attributes
    ----------
    timeout_s : how long the service may be silent in one attempt
    patience_s : how long a call is repeated altogether
    proxy : the address of a proxy to connect through; proxies named by the environment are not used
    """

    timeout_s: float
    patience_s: float
    proxy: str | None = None


class Calls:
    """Sends a client's requests over HTTP."""

    def __init__(self, url: str, key: str, connecting: Connecting) -> None:
        self._connecting = connecting
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        # The environment may name certificates, but not proxies or passwords: a proxy would see the key.
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            trust_env=False,
            proxy=connecting.proxy,
            verify=httpx.create_ssl_context(),
        )

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
        """Send a request, and return the answer.

        An unsuccessful answer is raised as a `ServiceProblem`, a missing one as `ServiceUnreachable`.
        """
        headers = {}
        if method != "GET":
            # One key for all attempts of this call.
            headers["Idempotency-Key"] = secrets.token_hex(16)
        content = None
        if body is not None:
            content = encoded(body)
            headers["Content-Type"] = "application/json"
        patience = Patience(self._connecting.patience_s)
        while True:
            timeout = max(0.001, min(self._connecting.timeout_s, patience.left_s))
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
    """Make the exception for an unsuccessful answer of the service, or of a proxy in front of it."""
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    after = headers.get("Retry-After", "")
    found = problem(
        fields if isinstance(fields, dict) else {},
        status,
        title or f"status {status}",
        # HTTP allows a date too, but the service sends none.
        float(after) if after.isascii() and after.isdigit() else None,
    )
    found.request_id = found.request_id or headers.get("X-Request-Id")
    return found
