"""Thread safety of estimators, and fits that are spread over threads.

What an estimator has learnt is one immutable object. A query reads it once, at its beginning. A method that
learns builds a new one and assigns it at its end. So a call never sees half of a new model, and a fit that
fails or is interrupted leaves the estimator as it was.
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

# Events times expectation steps of a two-state model in one call of compiled code: at most a second's work.
PIECE = 20_000_000
# Interval at which a waiting thread looks for signals, in seconds.
INTERVAL = 0.2


class Learner:
    """Base of estimators whose fitted state is the object `_state`; without it they count as not fitted."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _known(self) -> Any:
        """The state; raises scikit-learn's `NotFittedError`, also an `AttributeError`, if there is none."""
        state = vars(self).get("_state")
        if state is None:
            check_is_fitted(self)
        return state

    def _found(self, value: Found | None) -> Found:
        """The value, which a fit has found; raises `AttributeError` if it is None."""
        if value is None:
            raise AttributeError(f"no fit has set this attribute of the {type(self).__name__}")
        return value

    def _as_it_is(self) -> Self:
        """A shallow copy with the current state, for a method that makes several queries."""
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
        """Raise or warn as scikit-learn does if these are not the features that the model was fitted with."""
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
    """The names of the parameters of a class's constructor."""
    return tuple(signature(kind).parameters)


_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def learning(estimator: Any) -> threading.RLock:
    """The lock that a method holds while an estimator learns, so that concurrent updates are not lost.

    It is not part of the estimator, which is copied and sent to other processes.
    """
    with _lock_of_locks:
        return _locks.setdefault(estimator, threading.RLock())


def _forget_locks() -> None:
    """Replace all locks in a forked process, where the threads that may hold them do not exist."""
    global _locks, _lock_of_locks
    _locks, _lock_of_locks = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def done_in_threads(work: Sequence[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """Run the pieces of work in `n_jobs` threads (as joblib counts them); return their results in order.

    A piece must not call this function itself: it would wait for a thread that waits for it. If this thread
    is interrupted, or a piece fails, the others stop where they next call `check_wanted`.
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
    """Raise `CancelledError` if this thread's piece of work is no longer wanted."""
    if getattr(_of_thread, "unwanted", None):
        raise CancelledError


@cache
def _threads(n_threads: int, process: int) -> SimpleQueue[Callable[[], None]]:
    """The queue from which this process's threads take their work; starts the threads when first called.

    The threads stay, because starting one takes longer than fitting a small model. `process` is part of the
    cache key because a forked process has none of its parent's threads. The standard library's executor is
    not used: it briefly holds a lock for each piece of work, and a signal handler that raises at that moment
    leaves it locked, so that the next fit would wait forever. This queue has no such lock.
    """
    waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def work() -> None:
        while True:
            waiting.get()()

    for _ in range(n_threads):
        threading.Thread(target=work, daemon=True, name="keydyn").start()
    return waiting


def piece_for(n_states: int) -> int:
    """The number of events times expectation steps that takes a second at most."""
    return max(1, 4 * PIECE // max(4, n_states * n_states))


def run_hearing_signals(call: Callable[[], None], is_long: bool) -> None:
    """Make a call of compiled code, a long one in a thread of its own so that Ctrl-C is heard meanwhile.

    An interrupted call goes on until it is done, on arrays that are no longer used.
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
