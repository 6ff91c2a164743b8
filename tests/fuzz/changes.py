"""Random changes to bytes, to plain values as JSON has them, and to arrays of numbers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

HUGE = 10**30
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 2.2e-308, 1e-300, 1e-151, 1e-100, 1e-12, 1e12, 1e100, 1e109, 1e151),
    *(1e300, 1e308, -1e308, -1e100, float("inf"), float("-inf"), float("nan"), 4.0, 200.0, 1000.1),
)
VALUES = (
    *NUMBERS,
    *(0, 1, -1, 2, HUGE, -HUGE, 2**62, 2**63, 2**64 - 1, 10**400, True, False, None, "", "0.0", "null", "\0"),
    *("POHMM", "normal", [], {}, [[]], [None], {"a": 1}, "x" * 10_000),
)


def changed_bytes(generator: np.random.Generator, contents: bytes, others: list[bytes]) -> bytes:
    """A few bytes flipped, cut, repeated, put in, or taken from another file."""
    for _ in range(int(generator.integers(1, 5))):
        size = len(contents)
        begin, end = sorted(generator.integers(0, size + 1, 2).tolist())
        some = contents[begin : begin + min(end - begin, 64)]
        match int(generator.integers(7)):
            case 0 if size:
                place, bit = int(generator.integers(size)), 1 << int(generator.integers(8))
                contents = contents[:place] + bytes([contents[place] ^ bit]) + contents[place + 1 :]
            case 1:
                contents = contents[:begin]
            case 2:
                contents = contents[:begin] + contents[end:]
            case 3:
                contents = contents[:end] + some * int(generator.integers(1, 9)) + contents[end:]
            case 4:
                contents = (
                    contents[:begin] + generator.bytes(int(generator.integers(1, 9))) + contents[begin:]
                )
            case 5:
                other = others[int(generator.integers(len(others)))]
                contents = contents[:begin] + other[begin:]
            case _:
                text = str(VALUES[int(generator.integers(len(VALUES)))])[:200].encode()
                contents = contents[:begin] + text + contents[begin + len(some) :]
    return contents


def changed_json(generator: np.random.Generator, value: Any) -> Any:
    """One entry, at any depth, replaced, taken away, added or repeated."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    _collect(value, places)
    if not places:
        return pick(generator, VALUES)
    holder, key = places[int(generator.integers(len(places)))]
    match int(generator.integers(6)):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 2 if isinstance(holder, dict):
            holder[f"{key}'"] = holder[key]
        case _:
            holder[key] = copy.deepcopy(pick(generator, VALUES))
    return value


def changed_numbers(generator: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """An array with some entries replaced, or all, or of another shape or type."""
    values = values.copy()
    number = pick(generator, NUMBERS)
    with np.errstate(all="ignore"):
        match int(generator.integers(12)):
            case 0:
                values = values[:-1]
            case 1:
                values = values.astype(np.float32 if values.dtype == np.float64 else np.float64)
            case 2:
                values = values.reshape(-1)
            case 3:
                values[...] = np.asarray(number).astype(values.dtype)
            case 4 | 5 | 6:
                values = (values * 10.0 ** generator.integers(-160, 160)).astype(values.dtype)
            case _ if values.size:
                values.flat[int(generator.integers(values.size))] = np.asarray(number).astype(values.dtype)
    return np.ascontiguousarray(values)


def pick(generator: np.random.Generator, among: Any) -> Any:
    """One of these."""
    return among[int(generator.integers(len(among)))]


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        places.append((value, key))
        _collect(entry, places)
