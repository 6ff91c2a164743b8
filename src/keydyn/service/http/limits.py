"""Limits of one process: the rates of callers, bodies that are arriving, and requests that take long."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from fastapi import Request

from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment

# The number of callers whose rate is remembered, and the share of a key's rate that one token may use.
REMEMBERED_CALLERS, OF_A_TOKEN = 10_000, 0.1
# Of the bodies that a process waits for, at most a half may come from one API key, and a sixteenth from one
# browser or address. Bodies that arrive together with their headers are not waited for.
OF_A_KEY, OF_OTHERS = 2, 16
# The heavy requests that run at once, of one tenant and of all, and those of one tenant that may wait.
OF_A_TENANT, OF_ALL, WAITING = 2, 8, 16
# Set in the state of a request whose whole body has arrived before the request is handled.
ARRIVED = "arrived"


class Rates:
    """Requests per second of each caller, limited by a token bucket; refused requests count as well.

    Only the rates of the latest `remembered` callers are kept.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = REMEMBERED_CALLERS,
    ) -> None:
        self._rate, self._clock, self._remembered = per_second, clock, remembered
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, caller: str, share: float = 1.0) -> None:
        """Count a request of a caller who has this share of the rate; raise a `Problem` if it is exceeded."""
        now, rate = self._clock(), self._rate * share
        most = max(2 * rate, 1.0)
        with self._lock:
            left, then = self._left.pop(caller, (most, now))
            left = min(most, left + (now - then) * rate)
            self._left[caller] = max(left - 1.0, 0.0), now
            if len(self._left) > self._remembered:
                self._left.popitem(last=False)
        if left < 1.0:
            raise _too_many(f"{rate:g} requests per second are allowed.")


def by_address(address: str) -> str:
    """The name under which requests without a valid key are counted: the address, or its IPv6 /64 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return f"peer {address}"
    if isinstance(found, ipaddress.IPv6Address):
        return f"peer {ipaddress.IPv6Network((int(found) >> 64 << 64, 64))}"
    return f"peer {address}"


class Bodies:
    """The bodies that the process waits for, limited in size, time and number."""

    def __init__(self, deployment: Deployment) -> None:
        self._seconds = deployment.arrival_seconds
        self._most = 4 * deployment.concurrent
        self._waiting: dict[asyncio.Timeout, str] = {}
        self._callers: Counter[str] = Counter()

    async def read(self, request: Request, caller: str, most: int) -> bytes:
        """Read a body of at most `most` bytes; raise a `Problem` if it is too large or too slow."""
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 15 or int(length) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                with self._place(deadline, caller):
                    while True:
                        message = await request.receive()
                        if message["type"] == "http.disconnect":
                            raise Problem(400, "gone", "The client disconnected", "")
                        parts.append(message.get("body", b""))
                        size += len(parts[-1])
                        if size > most:
                            raise _too_large(most)
                        if not message.get("more_body"):
                            return b"".join(parts)
        except TimeoutError:
            raise Problem(408, "too-slow", "The request took too long to arrive", "") from None

    @contextmanager
    def _place(self, deadline: asyncio.Timeout, caller: str) -> Iterator[None]:
        """Hold a place among the bodies that are waited for; if none is left, the oldest one is given up."""
        share = OF_A_KEY if caller.startswith("key ") else OF_OTHERS
        if self._callers[caller] >= max(4, self._most // share):
            raise _too_many("Too many requests of this caller have not arrived yet.")
        if len(self._waiting) >= self._most:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        self._waiting[deadline] = caller
        self._callers[caller] += 1
        try:
            yield
        finally:
            self._waiting.pop(deadline, None)
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]


async def arrived_body(request: Request) -> bytes | None:
    """The body if all of it arrived together with the headers; otherwise None."""
    if ARRIVED not in request.scope["state"]:
        return None
    message = await request.receive()
    body: bytes | None = message.get("body") if message["type"] == "http.request" else None
    return body


def checked_size(body: bytes, most: int) -> bytes:
    """Return a body that has arrived; raise a `Problem` if it has more than `most` bytes."""
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> Problem:
    detail = f"A body may have at most {most:,} bytes here."
    return Problem(413, "too-large", "The request is too large", detail, limit=most)


class HeavyWork:
    """Turns for requests that take long: of each tenant a few run at once, some wait, and others are refused.

    They wait on the event loop, so that the threads are free for other requests.
    """

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OF_ALL)
        self._tenants: dict[str, asyncio.Semaphore] = {}
        self._asked: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for a turn; raise a `Problem` if too many requests of this tenant are waiting already."""
        if self._asked[tenant_id] >= OF_A_TENANT + WAITING:
            raise _too_many("Too many requests of this kind at once.")
        own = self._tenants.setdefault(tenant_id, asyncio.Semaphore(OF_A_TENANT))
        self._asked[tenant_id] += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._asked[tenant_id] -= 1
            if not self._asked[tenant_id]:
                del self._asked[tenant_id], self._tenants[tenant_id]


def _too_many(detail: str) -> Problem:
    return Problem(429, "too-many-requests", "Too many requests", detail, retry_after=1)
