"""The two kinds of array that flow through the package, and how a loop over them is compiled."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numpy.typing import ArrayLike, NDArray

from keydyn.compile_cache import keep_on_disk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
# An array that the caller may give, or leave out.
Given = ArrayLike | None

# Seconds of compiling that pass without a word.
PATIENCE = 2.0

Array = TypeVar("Array", Floats, Integers)
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, **options: Any) -> Function:
    """Compile for this machine, keep the result on disk, and let other threads run meanwhile.

    A compiled function that Python calls returns nothing or a number. While an array is returned a signal
    handler may run, and what it raises would be lost in the middle of that.
    """
    njit: Any = numba.njit
    dispatcher = njit(**{"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options)(function)
    if "no_cpython_wrapper" not in options:
        keep_on_disk(dispatcher, function)
    return cast(Function, dispatcher)


def inner(function: Function, **options: Any) -> Function:
    """Like `compiled`, for a function that only compiled functions call: Python cannot.

    Without the way in from Python, and without a copy of its own on disk, it takes less time to compile; the
    functions that call it contain it.
    """
    return compiled(function, no_cpython_wrapper=True, **options)


def without_counting(function: Function) -> Function:
    """Like `compiled`, for a function that makes no array, nor do those that it calls.

    Numba then counts no references to arrays, which is a tenth of what it compiles in a function that passes
    on tuples of them.
    """
    return compiled(function, _nrt=False)


def within(function: Function) -> Function:
    """Like `inner`, for a function that functions `without_counting` call."""
    return inner(function, _nrt=False)


def merged(function: Function) -> Function:
    """Like `inner`, for a sequence of calls with a name: it becomes part of each function that calls it.

    As a function of its own everything that it calls would be optimised once more.
    """
    return inner(function, inline="always")


def plain(array: Array) -> Array:
    """In the one form that compiled functions take, together in memory and not read-only."""
    if array.flags.c_contiguous and array.flags.writeable:
        return array
    return np.array(array, order="C")


class _Compiling(event.Listener):
    """Says once that something is being compiled, when that has taken longer than a person likes to wait.

    Meanwhile the garbage collector rests: a sixth of the time would go to looking through Numba's objects.
    """

    def __init__(self) -> None:
        self._depth, self._spent, self._began, self._collects = 0, 0.0, 0.0, False
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._collects = gc.isenabled()
                gc.disable()
            if self._depth == 1 and self._spent < PATIENCE:
                self._began = time.monotonic()
                self._timer = threading.Timer(PATIENCE - self._spent, self._say)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._collects:
                gc.enable()
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._spent += time.monotonic() - self._began

    def _say(self) -> None:
        self._spent = PATIENCE
        print("keydyn: compiling, once per installation …", file=sys.stderr, flush=True)


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]
