"""Something done again and again in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from random import SystemRandom

from keydyn.service.storage.database import DatabaseUnavailableError

logger = logging.getLogger(__name__)


class Periodic:
    """Calls a function about every so many seconds, however the clock is set, until it is stopped."""

    def __init__(self, name: str, work: Callable[[], object], every_s: float) -> None:
        self._work, self._every_s = work, every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"keydyn-{name}", daemon=True)

    def start(self) -> None:
        """The first call comes after a part of the interval, so that processes started together differ."""
        self._thread.start()

    def stop(self, timeout_s: float = 10) -> None:
        """Wait for the call that is under way, if there is one."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s * SystemRandom().uniform(0.5, 1)):
            try:
                self._work()
            except DatabaseUnavailableError:
                logger.warning("%s: the database is unavailable; tried again later", self._thread.name)
            except Exception as error:
                # The message of an error may name people; its type does not.
                logger.error("%s: %s; tried again later", self._thread.name, type(error).__name__)
