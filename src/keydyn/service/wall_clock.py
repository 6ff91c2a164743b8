"""The clock of the service, in whole milliseconds since 1970; tests replace it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000


def wall_clock() -> int:
    """The time of the system's clock."""
    return time.time_ns() // 1_000_000


def whole_seconds(milliseconds: int) -> int:
    """A waiting time in seconds, rounded up."""
    return -(-milliseconds // SECOND)
