"""Threads that stay: to start one takes longer than to fit a small model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from joblib import effective_n_jobs

Result = TypeVar("Result")


def done_in_threads(work: Sequence[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """What each piece of work returns, in the same order; `n_jobs` as joblib takes it.

    A piece must not hand out work itself: it would wait for a thread that waits for it.
    """
    n_threads = min(effective_n_jobs(n_jobs), len(work))
    if n_threads < 2:
        return [piece() for piece in work]
    return list(_threads(n_threads, os.getpid()).map(lambda piece: piece(), work))


@cache
def _threads(n_threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process: one that was forked off has none of its parent's."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="keydyn")
