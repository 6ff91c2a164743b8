"""Numbers that a caller gives, as new arrays; an error says where they are none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers

TIMES = (np.ndarray, np.datetime64, np.timedelta64)
LARGEST_TABLE_BYTES = 1 << 31


class NotNumbersError(ValueError, TypeError):
    """Values that cannot be read as numbers; also a `TypeError`, which scikit-learn expects of objects."""


def as_numbers(name: str, values: Any) -> Floats:
    """A new array of real numbers; a `ValueError` that begins with the name if these are none.

    What is masked, None or pandas' NA is missing: NaN.
    """
    refuse_times(name, values)
    try:
        array = np.asarray(unmasked(values))
        if array.dtype == object:
            array = np.where(pd.isna(array), np.nan, array)
        if array.dtype.kind != "c":
            return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise NotNumbersError(f"{name} cannot be read as numbers: {first_odd(values) or error}") from None
    raise NotNumbersError(f"{name} cannot be read as numbers: they are complex")


def refuse_times(name: str, values: Any) -> None:
    """`ValueError` if these are dates or durations, which would be read as nanoseconds since 1970."""
    first, kinds = values, [getattr(kind, "kind", "") for kind in getattr(values, "dtypes", ())]
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    kinds.append(np.asarray(first).dtype.kind if isinstance(first, TIMES) else "")
    if isinstance(first, (datetime, timedelta)):
        kinds.append("M" if isinstance(first, datetime) else "m")
    if "M" in kinds:
        raise NotNumbersError(
            f"{name} holds dates; a model takes the intervals between them: keydyn.intervals(times, lengths, "
            "unit='s')"
        )
    if "m" in kinds:
        raise NotNumbersError(
            f"{name} holds durations; give them as numbers, for instance X / np.timedelta64(1, 's')"
        )


def unmasked(values: Any) -> Any:
    """These values with NaN where an array, or one in a list at any depth, is masked."""
    if isinstance(values, np.ma.MaskedArray):
        kept = values if values.dtype.kind == "c" else values.astype(np.float64)
        return np.ma.filled(kept, np.nan)
    nested = (list, tuple, np.ma.MaskedArray)
    if isinstance(values, (list, tuple)) and any(isinstance(item, nested) for item in values):
        return [unmasked(item) for item in values]
    return values


def whole_numbers(name: str, values: Any) -> Integers:
    """A new array of whole numbers; a `ValueError` that begins with the name if these are none."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a list of whole numbers") from None
    if array.ndim != 1 or array.dtype.kind not in "iu" or np.ma.is_masked(values):
        raise ValueError(f"{name} must be a list of whole numbers; got {_short(values)}")
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit into 64 bits, which {array.max()} does not")
    return np.array(array, dtype=np.int64)


def read_only(array: Any) -> Any:
    """A view of the array that cannot be written to."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def check_size(name: str, n_numbers: int, instead: str) -> None:
    """`ValueError` if a table of `n_numbers` would be too large to build; it says what to do instead."""
    if 8 * n_numbers > LARGEST_TABLE_BYTES:
        raise ValueError(f"{name} would take {8 * n_numbers / 2**30:,.1f} GiB of memory: {instead}")


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


def _short(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else f"{text[:77]}..."
