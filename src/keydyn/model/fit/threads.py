"""Work in threads: several pieces at once, or one long call while this thread goes on hearing signals."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from joblib import effective_n_jobs

Result = TypeVar("Result")

# Events times expectation steps of a two-state model in one call of compiled code: a second at the most.
PIECE = 20_000_000
# How often a thread that waits looks for signals, in seconds.
INTERVAL = 0.2


def done_in_threads(work: Sequence[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """What each piece of work returns, in the same order; `n_jobs` as joblib takes it.

    A piece must not hand out work itself: it would wait for a thread that waits for it. If this thread is
    interrupted, or a piece fails, the others stop where they next call `check_wanted`.
    """
    n_threads = min(effective_n_jobs(n_jobs), len(work))
    if n_threads < 2:
        return [piece() for piece in work]
    unwanted = threading.Event()

    def done(piece: Callable[[], Result]) -> Result:
        _of_thread.unwanted = unwanted
        return piece()

    try:
        return list(_threads(n_threads, os.getpid()).map(done, work))
    except BaseException:
        unwanted.set()
        raise


_of_thread = threading.local()


def check_wanted() -> None:
    """Stop here if this thread's piece of work is no longer wanted."""
    unwanted: threading.Event | None = getattr(_of_thread, "unwanted", None)
    if unwanted is not None and unwanted.is_set():
        raise CancelledError


@cache
def _threads(n_threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process, which stay: to start one takes longer than to fit a small model.

    A process that was forked off has none of its parent's.
    """
    return ThreadPoolExecutor(n_threads, thread_name_prefix="keydyn")


def piece_for(n_states: int) -> int:
    """How many events times expectation steps take a second at the most."""
    return max(1, 4 * PIECE // max(4, n_states * n_states))


def run_hearing_signals(call: Callable[[], None], is_long: bool) -> None:
    """Make a call of compiled code. While a long one runs in a thread of its own, Ctrl-C is heard in this.

    The call then goes on until it is done, on arrays that are not used any more.
    """
    if not is_long or threading.current_thread() is not threading.main_thread():
        call()
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name="keydyn-long-call")
    thread.start()
    while thread.is_alive():
        thread.join(INTERVAL)
    if raised:
        raise raised[0]
