"""The two kinds of array that flow through the package, and how a loop over them is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile for this machine, keep the result on disk, and let other threads run meanwhile."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
