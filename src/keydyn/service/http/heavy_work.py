"""Requests that take long: of each tenant a few are worked on at once, some wait, and more are refused.

They wait on the event loop, not in a thread, so that the threads are free for everything else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keydyn.service.problems import Problem

# Requests of one tenant, and of all, that are worked on at once; and those of one tenant that wait.
OF_A_TENANT, OF_ALL, WAITING = 2, 8, 16


class HeavyWork:
    """The requests of one process that take long."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OF_ALL)
        self._tenants: dict[str, asyncio.Semaphore] = {}
        self._asked: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for a turn; a `Problem` if too many requests of this tenant wait already."""
        if self._asked[tenant_id] >= OF_A_TENANT + WAITING:
            detail = "Too many requests of this kind at once."
            raise Problem(429, "too-many-requests", "Too many requests", detail, retry_after=1)
        own = self._tenants.setdefault(tenant_id, asyncio.Semaphore(OF_A_TENANT))
        self._asked[tenant_id] += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._asked[tenant_id] -= 1
            if not self._asked[tenant_id]:
                del self._asked[tenant_id], self._tenants[tenant_id]
