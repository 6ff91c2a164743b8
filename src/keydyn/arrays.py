"""The array types used throughout the package, and decorators that compile loops over them."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numpy.typing import ArrayLike, NDArray

from keydyn.compile_cache import keep_on_disk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
# An optional array argument.
Given = ArrayLike | None

# Seconds of compiling before a message is printed.
PATIENCE = 2.0

Array = TypeVar("Array", Floats, Integers)
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, **options: Any) -> Function:
    """Compile a function for this machine, and cache it on disk; it releases the interpreter lock.

    A compiled function that Python calls must return nothing or a number: while an array is returned, a
    signal handler may run, and an exception that it raises would be lost.
    """
    njit: Any = numba.njit
    dispatcher = njit(**{"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options)(function)
    if "no_cpython_wrapper" not in options:
        keep_on_disk(dispatcher, function)
    return cast(Function, dispatcher)


def inner(function: Function, **options: Any) -> Function:
    """Like `compiled`, for a function that only compiled functions can call.

    Without an entry from Python, and without its own copy on disk, it takes less time to compile; the
    functions that call it contain it.
    """
    return compiled(function, no_cpython_wrapper=True, **options)


def without_counting(function: Function) -> Function:
    """Like `compiled`, for a function that creates no array, not even in functions that it calls.

    Numba then counts no references to arrays, which takes a tenth of the code of a function that passes on
    tuples of arrays.
    """
    return compiled(function, _nrt=False)


def within(function: Function) -> Function:
    """Like `inner`, for functions that are called by functions `without_counting`."""
    return inner(function, _nrt=False)


def merged(function: Function) -> Function:
    """Like `inner`, for a function that only names a sequence of calls, and is inlined into its callers.

    If it were compiled on its own, everything that it calls would be optimised once more.
    """
    return inner(function, inline="always")


class Direct:
    """A compiled function that is called without a look at the types of its arguments.

    Numba looks at the type of each array in each call, which takes longer than an event of a live session.
    Here the types are those of the first call, and the caller vouches that they are the same in all others:
    that arrays are contiguous and of the same kind. With `checks`, as in tests, a call with other types
    raises a `TypeError`.
    """

    checks = False

    def __init__(self, function: Callable[..., object]) -> None:
        self._function: Any = function
        self._entry: Callable[..., Any] | None = None
        self._kinds: list[Any] = []

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, as it was compiled for the types of the first call."""
        entry = self._entry or self._found(arguments)
        if self.checks and _kinds(arguments) != self._kinds:
            raise TypeError(f"{self._function.__name__} was called with other types than the first time")
        return entry(*arguments)

    def _found(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        entry: Callable[..., Any] = self._function
        # With Numba's setting DISABLE_JIT nothing is compiled.
        if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            types = tuple(map(numba.typeof, arguments))
            self._function.compile(types)
            entry = self._function.overloads[types].entry_point
        self._kinds, self._entry = _kinds(arguments), entry
        return entry


def _kinds(arguments: Iterable[Any]) -> list[Any]:
    """The types of arguments, as far as compiled code depends on them."""
    return [
        (one.dtype, one.ndim, one.flags.c_contiguous)
        if isinstance(one, np.ndarray)
        else (_kinds(one) if isinstance(one, tuple) else type(one))
        for one in arguments
    ]


def plain(array: Array) -> Array:
    """Return the array in the form that compiled functions take: contiguous and writeable."""
    if array.flags.c_contiguous and array.flags.writeable:
        return array
    return np.array(array, order="C")


class _Compiling(event.Listener):
    """Reports once that something is being compiled, if that takes longer than people like to wait.

    The garbage collector is off during compilation: it would take a sixth of the time with Numba's objects.
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
