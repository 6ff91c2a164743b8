"""The thread that the model has, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class ModelThread:
    """Pools belong to it. Whoever needs the numbers of pools and sessions to agree holds `turn`."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keydyn-watch")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do something in the thread, after all that was asked before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def ask(self, work: Callable[[], object]) -> None:
        """The same without waiting."""
        self._thread.submit(work)

    def close(self) -> None:
        """Finish what was asked."""
        self._thread.shutdown()
