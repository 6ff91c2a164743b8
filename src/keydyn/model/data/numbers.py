"""Numbers that a caller gives, as new arrays; an error says where they are none."""

from __future__ import annotations

from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers


def as_numbers(name: str, values: Any) -> Floats:
    """A new array of real numbers; a `ValueError` that begins with the name if these are none."""
    try:
        array = np.asarray(values)
        if array.dtype.kind != "c":
            return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {first_odd(values) or error}") from None
    raise ValueError(f"{name} cannot be read as numbers: they are complex")


def whole_numbers(name: str, values: Any) -> Integers:
    """A new array of whole numbers; a `ValueError` that begins with the name if these are none."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of whole numbers")
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit into 64 bits")
    return np.array(array, dtype=np.int64)


def read_only(array: Any) -> Any:
    """The same array, as nobody can change it."""
    view = array.view()
    view.flags.writeable = False
    return view


def first_odd(table: Any) -> str | None:
    """Where a table first has a row of another length than the others, or text that is no number."""
    sized = (list, tuple, np.ndarray)
    if not isinstance(table, sized) or not all(isinstance(row, sized) for row in table):
        return None
    for r, row in enumerate(table):
        if len(row) != len(table[0]):
            return f"row {r} has {len(row)} columns, row 0 has {len(table[0])}"
        for c, cell in enumerate(row):
            try:
                float(cell if isinstance(cell, str) else 0.0)
            except ValueError:
                return f"row {r}, column {c} is {str(cell)!r}"
    return None
