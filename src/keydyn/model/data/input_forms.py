"""The forms in which a caller may give values, event types and lengths, read into flat arrays.

An error is a `ValueError` that names the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.numbers import (
    NotNumbersError,
    as_numbers,
    first_odd,
    refuse_times,
    unmasked,
    whole_numbers,
)
from keydyn.model.data.vocabulary import MISSING, Types


def read_arrays(
    X: Any, events: Any, lengths: ArrayLike | None
) -> tuple[Floats, Integers, Types, Integers, tuple[str, ...] | None]:
    """Values (N, K), codes and event types, offsets, and the names of the features if they have any.

    `X` is a flat (N, K) array or frame with `lengths`, or a list of them; `events` has the same form.
    """
    if isinstance(X, (list, tuple)) and len(X) == 0:
        raise ValueError("X is empty: there are no sequences")
    feature_names = _names_of(X)
    if _is_list_of_sequences(X):
        if lengths is not None:
            raise ValueError("lengths goes with a flat array; X is a list of sequences already")
        values, offsets = _stack(X)
        feature_names = _shared_names(X)
    else:
        values = _check_flat(X)
        offsets = _offsets_of(lengths, len(values))
    return values, *_encode_events(events, offsets), offsets, feature_names


def _names_of(X: Any) -> tuple[str, ...] | None:
    """The columns of a data frame, if they are called by text."""
    names = tuple(X.columns) if hasattr(X, "columns") else ()
    return names if names and all(isinstance(name, str) for name in names) else None


def _shared_names(X: Sequence[Any]) -> tuple[str, ...] | None:
    """The columns of the data frames in a list."""
    first = _names_of(X[0])
    for s, item in enumerate(X):
        if hasattr(item, "columns") and _names_of(item) != first:
            raise ValueError(
                f"sequence {s} has the columns {list(item.columns)}, sequence 0 has {list(first or ())}"
            )
    return first


def _is_list_of_sequences(X: Any) -> bool:
    """A list (or object array) of two-dimensional items; a list of rows is an array like any other."""
    if isinstance(X, np.ndarray):
        return X.dtype == object and X.ndim == 1 and len(X) > 0 and np.ndim(X[0]) == 2
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    tables = (np.ndarray, pd.DataFrame)
    return any(isinstance(item, tables) and item.ndim == 2 for item in (X[0], X[-1])) or (
        isinstance(X[0], (list, tuple)) and len(X[0]) > 0 and isinstance(X[0][0], (list, tuple, np.ndarray))
    )


def _check_flat(X: Any) -> Floats:
    refuse_times("X", X)
    if isinstance(X, (list, tuple)) and len({np.size(item) for item in X[:2]}) > 1:
        raise ValueError(
            "X is a list of items of different length: as rows they differ in their number of columns; "
            "as sequences each must be an (n, K) array (for one feature, x.reshape(-1, 1))"
        )
    try:
        values: Floats = check_array(
            unmasked(X), dtype=np.float64, order="C", copy=True, ensure_all_finite=False
        )
    except (TypeError, ValueError, OverflowError) as error:
        place = first_odd(X.to_numpy() if hasattr(X, "to_numpy") else X)
        if place is None and isinstance(error, ValueError):
            raise
        raise NotNumbersError(f"X cannot be read as numbers: {place or error}") from error
    return values


def _stack(X: Sequence[Any]) -> tuple[Floats, Integers]:
    arrays = []
    for s, item in enumerate(X):
        array = as_numbers(f"sequence {s}", item)
        if len(np.atleast_1d(array)) == 0:
            raise ValueError(f"sequence {s} is empty")
        if array.ndim != 2:
            raise ValueError(f"sequence {s} must be an (n, K) array; its shape is {array.shape}")
        arrays.append(array)
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"sequence {s} has {array.shape[1]} columns, sequence 0 has {arrays[0].shape[1]}"
            )
    values = np.ascontiguousarray(np.concatenate(arrays))
    if values.shape[1] == 0:
        raise ValueError("the sequences have 0 feature(s); at least 1 is needed")
    return values, _offsets_of([len(array) for array in arrays], len(values))


def refuse_lengths_as_y(X: Any, y: Any, lengths: Any) -> None:
    """`ValueError` if `y` is the lengths of sequences, which other libraries take in its place."""
    if y is None or lengths is not None or not hasattr(X, "__len__") or _is_list_of_sequences(X):
        return
    given = np.asarray(y)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and 0 < len(given) < len(X)
    if whole and (given > 0).all() and given.sum() == len(X):
        raise ValueError(
            f"{np.array2string(given, threshold=6, separator=', ')} is given as y, which is ignored; as the "
            "lengths of sequences, which it seems to be, give it by name: lengths="
        )


def check_lengths(lengths: ArrayLike) -> Integers:
    """Lengths of sequences, none of them empty, whose sum is a number of rows that there can be."""
    given = whole_numbers("lengths", lengths)
    if (given <= 0).any():
        s = int(np.argmax(given <= 0))
        raise ValueError(f"sequence {s} is empty: its length is {given[s]}")
    # As floats, which do not wrap around.
    if given.sum(dtype=np.float64) > 2.0**62:
        raise ValueError(f"lengths add up to more rows than there can be; the largest is {given.max()}")
    return given


def _offsets_of(lengths: ArrayLike | None, n_events: int) -> Integers:
    if lengths is None:
        return np.array([0, n_events], dtype=np.int64)
    given = check_lengths(lengths)
    if given.sum() != n_events:
        raise ValueError(f"lengths add up to {given.sum()}, but there are {n_events} rows")
    return np.concatenate([[0], np.cumsum(given)])


def _encode_events(events: Any, offsets: Integers) -> tuple[Integers, Types]:
    n_events = int(offsets[-1])
    if events is None:
        return np.full(n_events, MISSING, dtype=np.int64), np.array([], dtype=str)
    if _is_nested(events):
        if len(events) != len(offsets) - 1:
            raise ValueError(f"events has {len(events)} sequences, X has {len(offsets) - 1}")
        parts = [vocabulary.as_labels(item) for item in events]
        for s, part in enumerate(parts):
            if len(part) != offsets[s + 1] - offsets[s]:
                raise ValueError(
                    f"sequence {s} has {offsets[s + 1] - offsets[s]} rows in X and {len(part)} in events"
                )
        kinds = {part.dtype.kind for part in parts}
        if len(kinds) > 1:
            parts = [part.astype(object) for part in parts]
        labels = np.concatenate(parts)
    else:
        labels = vocabulary.as_labels(events)
        if len(labels) != n_events:
            raise ValueError(f"there are {n_events} rows in X and {len(labels)} events")
    try:
        return vocabulary.encode(labels)
    except vocabulary.LabelError as error:
        raise ValueError(f"{place_of(offsets, error.event)}: {error.problem}") from None


def _is_nested(events: Any) -> bool:
    if isinstance(events, np.ndarray):
        return events.dtype == object and events.ndim == 1 and len(events) > 0 and np.ndim(events[0]) == 1
    return isinstance(events, (list, tuple)) and len(events) > 0 and np.ndim(events[0]) == 1


def check_columns(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"a data frame is needed, not a {type(frame).__name__}")
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise ValueError(
            f"no column {', '.join(map(repr, absent))}; the frame has {', '.join(map(repr, frame.columns))}"
        )
    twice = [column for column in columns if list(frame.columns).count(column) > 1]
    if twice:
        raise ValueError(f"more than one column is called {twice[0]!r}")
    if len(frame) == 0:
        raise ValueError("the frame has no rows")


def place_of(offsets: Integers, row: int) -> str:
    s = int(np.searchsorted(offsets, row, side="right")) - 1
    text = f"sequence {s}, row {row - offsets[s]}"
    return text if len(offsets) == 2 else f"{text} (row {row} of the flat input)"
