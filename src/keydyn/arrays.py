"""The two kinds of array that flow through the package, and how a loop over them is compiled."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

# Seconds of compiling that pass without a word.
PATIENCE = 2.0

Array = TypeVar("Array", Floats, Integers)
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, **options: Any) -> Function:
    """Compile for this machine, keep the result on disk, and let other threads run meanwhile."""
    config: Any = numba.config
    njit: Any = numba.njit
    usual = config.CACHE_DIR
    config.CACHE_DIR = usual or _cache_folder()
    options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options
    try:
        return cast(Function, njit(**options)(function))
    finally:
        config.CACHE_DIR = usual


def inner(function: Function, **options: Any) -> Function:
    """Like `compiled`, for a function that only compiled functions call: Python cannot.

    Without the way in from Python, and without a copy of its own on disk, it takes less time to compile; the
    functions that call it contain it.
    """
    return compiled(function, no_cpython_wrapper=True, cache=False, **options)


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


@cache
def _cache_folder() -> str:
    """Where results are kept, a folder of its own for every state of the sources.

    Numba looks only at the file of a function to see whether its result still holds, not at those of the
    functions that it calls. Empty, for Numba's own choice, where the package's folder cannot be written.
    """
    package = Path(__file__).parent
    if not os.access(package, os.W_OK):
        return ""
    sources = [Path(__file__), *sorted((package / "model").rglob("*.py"))]
    stamps = [(path.name, path.stat().st_mtime_ns) for path in sources]
    stamp = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    folder = package / "__pycache__" / f"compiled-{stamp}"
    if not folder.exists():
        for outdated in folder.parent.glob("compiled-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return str(folder)


class _Notice(event.Listener):
    """Says once that something is being compiled, when that has taken longer than a person likes to wait."""

    def __init__(self) -> None:
        self._depth, self._spent, self._began = 0, 0.0, 0.0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1 and self._spent < PATIENCE:
                self._began = time.monotonic()
                self._timer = threading.Timer(PATIENCE - self._spent, self._say)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._spent += time.monotonic() - self._began

    def _say(self) -> None:
        self._spent = PATIENCE
        print("keydyn: compiling, once per installation …", file=sys.stderr, flush=True)


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
