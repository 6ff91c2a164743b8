"""What the service is sent: keystrokes, in requests that are repeated when that can help, with one effect."""

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
    # Need not be installed.
    from pandas import DataFrame

Result = TypeVar("Result")
# Statuses of a service that is busy, or of a proxy whose service is down.
LATER = {429, 502, 503, 504}
FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 5.0


# A key, when it was pressed and when it was released, milliseconds; None if the release was not seen.
Keystroke: TypeAlias = tuple[str, float, float | None]
# Tuples, or mappings with `keyname`, `timepress` and `timerelease`, or a data frame with these columns; raw
# events are mappings with `type`, `key` and `time`.
Keystrokes: TypeAlias = "Iterable[Keystroke] | Iterable[Mapping[str, Any]] | DataFrame"
COLUMNS = ("keyname", "timepress", "timerelease")


def keystrokes(given: Keystrokes) -> list[Keystroke]:
    """Bring keystrokes in any form into tuples."""
    rows = _rows(given)
    if any(isinstance(row, Mapping) and "type" in row for row in rows):
        raise ValueError("keystrokes are needed here, not raw events")
    return [_keystroke(row) for row in rows]


def sample(given: Keystrokes) -> dict[str, Any]:
    """Make the fields of a request that hold a sample: keystrokes, or raw events if these are given."""
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
    """Says how long to keep trying, and how long to wait in between, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._failures = 0

    @property
    def left_s(self) -> float:
        """The seconds that are left, at least 0."""
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


class Connecting(NamedTuple):
    """How a client connects.

    Attributes
    ----------
    timeout_s : for which one attempt may be silent
    patience_s : for which a call is tried altogether
    proxy : the address of a proxy to connect through; those that the environment names are not used
    """

    timeout_s: float
    patience_s: float
    proxy: str | None = None


class Calls:
    """Sends a client's requests over HTTP."""

    def __init__(self, url: str, key: str, connecting: Connecting) -> None:
        self._connecting = connecting
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        # Certificates may be those that the environment names, but proxies and passwords may not: a proxy
        # would see the key.
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

        A `ServiceProblem` says that it is not a success, `ServiceUnreachable` that there is none.
        """
        headers = {}
        if method != "GET":
            # The same each time that this call is sent.
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
    """Make the exception for an unsuccessful answer, from the service or a proxy before it."""
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
