"""A compiled function built again, with all it calls: with parts replaced, or compiled in another way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numba

# Functions by their module and name.
Made = dict[str, Any]


def rebuilt(
    function: Any, replaced: Mapping[str, Any] | None = None, made: Made | None = None, **options: Any
) -> Any:
    """The same function, not yet compiled and not from a cache; `made` gets it and the functions it calls.

    `replaced` has other functions for the names by which some are called, wherever that is. `options` are for
    the compiler, in addition to those that a function has.
    """
    made, replaced = {} if made is None else made, replaced or {}
    own = function.py_func
    name = f"{own.__module__.rpartition('.')[2]}.{own.__name__.lstrip('_')}"
    if name not in made:
        made[name] = None
        names = dict(own.__globals__)
        for used in own.__code__.co_names:
            if used in replaced:
                names[used] = replaced[used]
            elif hasattr(names.get(used), "py_func"):
                names[used] = rebuilt(names[used], replaced, made, **options)
        again = FunctionType(own.__code__, names, own.__name__, own.__defaults__)
        usual = {key: value for key, value in function.targetoptions.items() if key != "nopython"}
        made[name] = numba.njit(**usual | options | {"cache": False})(again)
    return made[name]


def seconds_to_compile(function: Any, signature: Any, **options: Any) -> float:
    """Processor time of compiling a function with all it calls."""
    again = rebuilt(function, **options)
    began = time.process_time()
    again.compile(signature)
    return time.process_time() - began
