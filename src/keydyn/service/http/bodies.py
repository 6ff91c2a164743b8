"""Reading the bodies of requests that were admitted: each limited in size and time, all of them in number."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import Request

from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment

# How many of the bodies that one process waits for may be of one caller, as parts of all: of an API key, and
# of a browser or an address. Waiting are only those that did not arrive together with their headers.
OF_A_KEY, OF_OTHERS = 2, 16


class Bodies:
    """The bodies that a process is waiting for."""

    def __init__(self, deployment: Deployment) -> None:
        self._seconds = deployment.arrival_seconds
        self._most = 4 * deployment.concurrent
        self._waiting: dict[asyncio.Timeout, str] = {}
        self._callers: Counter[str] = Counter()

    async def read(self, request: Request, caller: str, most: int) -> bytes:
        """The body, of at most this many bytes, from a caller; a `Problem` if it is too large or too slow."""
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
        """A place among those that are waited for; if there is none left, the oldest is given up."""
        share = OF_A_KEY if caller.startswith("key ") else OF_OTHERS
        if self._callers[caller] >= max(4, self._most // share):
            detail = "Too many requests of this caller have not arrived yet."
            raise Problem(429, "too-many-requests", "Too many requests", detail, retry_after=1)
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


def _too_large(most: int) -> Problem:
    detail = f"A body may have at most {most:,} bytes here."
    return Problem(413, "too-large", "The request is too large", detail, limit=most)
