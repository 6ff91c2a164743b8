"""How long tests wait, for an event and never for a time: longer than the busiest machine takes."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds after which what should have happened will not happen any more.
PATIENCE = 300.0


def wait_until(condition: Callable[[], object], otherwise: str = "nothing happened") -> None:
    """Return as soon as the condition holds; `otherwise` says what it means if it does not."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.005)
