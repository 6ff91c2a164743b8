"""The time, as everything stored has it: whole milliseconds since 1970. Tests move it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000


def wall_clock() -> int:
    """The system's."""
    return time.time_ns() // 1_000_000
