"""One measurement in a process of its own: time, memory and the first call, as a line of JSON.

`python benchmarks/measuring.py CASE [LIBRARY]`; the cases are in `cases.py`. A separate process gives each
measurement its own peak memory and its own compilation.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[], Any]
STATUS = Path("/proc/self/status")
# Repeats stop after this many seconds, or after this many repeats.
ENOUGH, MOST = 1.0, 101


def measured(run: Run, count: float | Callable[[Any], float], repeats: int = 5) -> dict[str, float]:
    """Median processor time of a run over `count`, in ns; the first call's extra seconds; peak memory in MB.

    `count` may be a function of the run's result. Short runs are repeated more often, for up to a second.
    Memory is the largest amount that the run used beyond what was in use before it.
    """
    began = time.perf_counter()
    result = run()
    first = time.perf_counter() - began
    divisor = count(result) if callable(count) else count
    del result
    before = forget_peak()
    times, walls = [], []
    while len(times) < repeats or (sum(times) < ENOUGH and len(times) < MOST):
        wall, began = time.perf_counter(), time.process_time()
        run()
        times.append(time.process_time() - began)
        walls.append(time.perf_counter() - wall)
    return {
        "ns": statistics.median(times) / divisor * 1e9,
        "first_call_s": max(0.0, first - statistics.median(walls)),
        "peak_mb": max(0.0, memory("VmHWM") - before),
    }


def speed_up(run: Callable[[int], Any], repeats: int = 5) -> float:
    """How many times faster two threads are than one, in elapsed time; runs of both alternate."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    for n_jobs in (1, 2) * (repeats + 1):
        began = time.perf_counter()
        run(n_jobs)
        walls[n_jobs].append(time.perf_counter() - began)
    return statistics.median(walls[1][1:]) / statistics.median(walls[2][1:])


def forget_peak() -> float:
    """Reset the peak and return the memory in use, in MB; freed memory is first returned to the system.

    This way the compiler's memory is not counted, except on systems that cannot do this.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> float:
    """VmRSS, memory in use, or VmHWM, its peak, in MB; zero where the system does not report it."""
    if not STATUS.exists():
        return 0.0
    for line in STATUS.read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1]) / 1024.0
    return 0.0


if __name__ == "__main__":
    from cases import CASES

    print(json.dumps(CASES[sys.argv[1]](*sys.argv[2:])))
