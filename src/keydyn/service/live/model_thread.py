"""The thread in which the model runs, and the lock for those who need it to stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class ModelThread:
    """The only thread that touches pools. Hold `turn` while pools and live sessions must agree."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keydyn-watch")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work in the thread, after all earlier work, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def ask(self, work: Callable[[], object]) -> None:
        """Run work in the thread without waiting for it."""
        self._thread.submit(work)

    def close(self) -> None:
        """Finish the work that waits."""
        self._thread.shutdown()
