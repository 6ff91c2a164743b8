"""The two kinds of array that flow through the package, and how a loop over them is compiled."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

Array = TypeVar("Array", Floats, Integers)
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, **options: Any) -> Function:
    """Compile for this machine, keep the result on disk, and let other threads run meanwhile."""
    config: Any = numba.config
    usual = config.CACHE_DIR
    config.CACHE_DIR = usual or _cache_folder()
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = usual


def inner(function: Function, **options: Any) -> Function:
    """Like `compiled`, for a function that only compiled functions call: Python cannot."""
    return compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


def inlined(function: Function) -> Function:
    """Like `compiled`, but made part of each compiled function that calls it: compiled once less."""
    return compiled(function, inline="always")


def on_both_sides(function: Function) -> Function:
    """Plain Python when called from Python, compiled where compiled functions call it."""
    usable: Function = register_jitable(function)
    return usable


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
    stamps = [(path.name, path.stat().st_mtime_ns) for path in sorted(package.rglob("*.py"))]
    stamp = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    folder = package / "__pycache__" / f"compiled-{stamp}"
    if not folder.exists():
        for outdated in folder.parent.glob("compiled-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return str(folder)
