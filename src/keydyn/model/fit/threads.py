"""Threads: estimators that several of them use, and fits that are spread over several.

What an estimator has learnt is one object. A method that asks takes it when it begins, and nothing in it is
ever changed. A method that learns makes a new one and assigns it when it is done. So a call never sees half
of a new model, and a fit that fails or is interrupted leaves the estimator as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cache, partial
from inspect import signature
from queue import SimpleQueue
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted, validate_data

from keydyn.model.data.sequences import Sequences

Found = TypeVar("Found")
Result = TypeVar("Result")

# Events times expectation steps of a two-state model in one call of compiled code: a second at the most.
PIECE = 20_000_000
# How often a thread that waits looks for signals, in seconds.
INTERVAL = 0.2


class Learner:
    """An estimator whose fitted state is the object `_state`; without one it is not fitted."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _known(self) -> Any:
        """The state, or scikit-learn's `NotFittedError`, which is an `AttributeError` too."""
        state = vars(self).get("_state")
        if state is None:
            check_is_fitted(self)
        return state

    def _found(self, value: Found | None) -> Found:
        """What a fit has found; an `AttributeError` if it is None."""
        if value is None:
            raise AttributeError(f"no fit has set this attribute of the {type(self).__name__}")
        return value

    def _as_it_is(self) -> Self:
        """The estimator with the state that it has now, for a method that asks it several things."""
        own = object.__new__(type(self))
        own.__dict__ = dict(vars(self))
        return own

    @property
    def n_features_in_(self) -> int:
        n_features: int = self._known().n_features
        return n_features

    @property
    def feature_names_in_(self) -> Any:
        return np.array(self._found(self._known().feature_names), dtype=object)

    def _compare_features(self, sequences: Sequences, n_features: int, names: tuple[str, ...] | None) -> None:
        """scikit-learn's error or warning if these are not the features that the model knows."""
        if sequences.n_features == n_features and sequences.feature_names == names:
            return
        nothing: Any = sequences.X[:0]
        if sequences.feature_names is not None:
            nothing = pd.DataFrame(nothing, columns=list(sequences.feature_names))
        validate_data(self, nothing, reset=False, skip_check_array=True)
        if sequences.n_features != n_features:
            raise ValueError(f"there are {sequences.n_features} features, the model has {n_features}")


@cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """The parameters of a class's constructor."""
    return tuple(signature(kind).parameters)


_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def learning(estimator: Any) -> threading.RLock:
    """The lock that a method holds while an estimator learns: nothing that another learns meanwhile is lost.

    It is not part of the estimator, which is copied and sent to other processes.
    """
    with _lock_of_locks:
        return _locks.setdefault(estimator, threading.RLock())


def _forget_locks() -> None:
    """A forked process has none of the threads that may hold them."""
    global _locks, _lock_of_locks
    _locks, _lock_of_locks = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def done_in_threads(work: Sequence[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """What each piece of work returns, in the same order; `n_jobs` as joblib takes it.

    A piece must not hand out work itself: it would wait for a thread that waits for it. If this thread is
    interrupted, or a piece fails, the others stop where they next call `check_wanted`.
    """
    n_threads = min(effective_n_jobs(n_jobs), len(work))
    if n_threads < 2:
        return [piece() for piece in work]
    ended: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
    unwanted: list[bool] = []

    def do(place: int) -> None:
        _of_thread.unwanted = unwanted
        try:
            check_wanted()
            ended.put((place, work[place](), None))
        except BaseException as error:
            ended.put((place, None, error))

    try:
        waiting = _threads(n_threads, os.getpid())
        for place in range(len(work)):
            waiting.put(partial(do, place))
        found: dict[int, tuple[Any, BaseException | None]] = {}
        for place in range(len(work)):
            while place not in found:
                done, result, error = ended.get()
                found[done] = result, error
            if (error := found[place][1]) is not None:
                raise error
        return [found[place][0] for place in range(len(work))]
    except BaseException:
        unwanted.append(True)
        raise


_of_thread = threading.local()


def check_wanted() -> None:
    """Stop here if this thread's piece of work is no longer wanted."""
    if getattr(_of_thread, "unwanted", None):
        raise CancelledError


@cache
def _threads(n_threads: int, process: int) -> SimpleQueue[Callable[[], None]]:
    """Where the threads of this process take their work.

    They stay: to start one takes longer than to fit a small model. A process that was forked off has none
    of its parent's. The standard library's executor would not do. It holds a lock for a moment with each
    piece of work, and a signal handler that raises just then leaves it locked: the next fit would wait for
    ever. This queue has no such lock.
    """
    waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def work() -> None:
        while True:
            waiting.get()()

    for _ in range(n_threads):
        threading.Thread(target=work, daemon=True, name="keydyn").start()
    return waiting


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
