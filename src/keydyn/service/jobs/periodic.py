"""A function that is called periodically, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from random import SystemRandom

from keydyn.service.storage.database import DatabaseUnavailableError

logger = logging.getLogger(__name__)


class Periodic:
    """Calls a function about every `every_s` seconds, by the monotonic clock, until it is stopped."""

    def __init__(self, name: str, work: Callable[[], object], every_s: float) -> None:
        self._work, self._every_s = work, every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"keydyn-{name}", daemon=True)

    def start(self) -> None:
        """Start; the first call comes after a random part of the interval, so that processes spread."""
        self._thread.start()

    def stop(self, timeout_s: float = 10) -> None:
        """Stop, and wait for a call that is under way."""
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
