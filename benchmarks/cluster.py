"""The overhead of a Dask cluster: `python benchmarks/cluster.py`, with the extra `distributed`.

A scheduler and two workers run on this machine, so that the figures do not include the network.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from distributed import LocalCluster

from keydyn.parallel import mapped


def main() -> None:
    """Print the figures."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        engine = cluster.scheduler_address.replace("tcp://", "dask://")
        mapped(nothing, range(100), engine=engine)
        connect = seconds(lambda: mapped(nothing, [0], engine=engine))
        print(f"connecting, checking the workers, one task: {1e3 * connect:.0f} ms")
        for n in (1_000, 10_000):
            each = (seconds(lambda n=n: mapped(nothing, range(n), engine=engine)) - connect) / n
            print(f"{n:,} tasks that do nothing: {1e6 * each:,.0f} µs per task")
        for n_bytes in (10_000, 1_000_000):
            payload = [np.zeros(n_bytes // 8) for _ in range(200)]
            each = (seconds(lambda p=payload: mapped(same, p, engine=engine)) - connect) / 200
            print(f"{n_bytes:,} bytes there and back: {1e6 * each:,.0f} µs per task")


def nothing(_: object) -> None:
    """No work at all."""


def same(array: np.ndarray) -> np.ndarray:
    return array


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
