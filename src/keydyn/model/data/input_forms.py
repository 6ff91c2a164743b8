"""Reading of values, event types, lengths and numbers, in all accepted forms, into new flat arrays.

Errors are `ValueError`s that name the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.vocabulary import MISSING, Types

if TYPE_CHECKING:
    import pandas as pd


def read_arrays(
    X: Any, events: Any, lengths: Given
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
    """The column names of a data frame, if all of them are text."""
    names = tuple(X.columns) if hasattr(X, "columns") else ()
    return names if names and all(isinstance(name, str) for name in names) else None


def _shared_names(X: Sequence[Any]) -> tuple[str, ...] | None:
    """The column names of the data frames in a list, which must be the same in all."""
    first = _names_of(X[0])
    for s, item in enumerate(X):
        if hasattr(item, "columns") and _names_of(item) != first:
            raise ValueError(
                f"sequence {s} has the columns {list(item.columns)}, sequence 0 has {list(first or ())}"
            )
    return first


def _is_list_of_sequences(X: Any) -> bool:
    """Whether X is a list or object array of two-dimensional items; a list of rows counts as one array."""
    if isinstance(X, np.ndarray):
        return X.dtype == object and X.ndim == 1 and len(X) > 0 and np.ndim(X[0]) == 2
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    return any(_is_table(item) for item in (X[0], X[-1])) or (
        isinstance(X[0], (list, tuple)) and len(X[0]) > 0 and isinstance(X[0][0], (list, tuple, np.ndarray))
    )


def _is_table(item: Any) -> bool:
    """Whether this is a data frame or a two-dimensional array."""
    return hasattr(item, "columns") or (isinstance(item, np.ndarray) and item.ndim == 2)


def _check_flat(X: Any) -> Floats:
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        # Nothing to convert: scikit-learn would only copy it, and takes half a second to import.
        return np.array(X, order="C")
    from sklearn.utils import check_array

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
    """Raise `ValueError` if `y` seems to be the lengths of sequences, which other libraries take there."""
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
    """Lengths of sequences, checked: none is zero, and their sum is a possible number of rows."""
    given = whole_numbers("lengths", lengths)
    if (given <= 0).any():
        s = int(np.argmax(given <= 0))
        raise ValueError(f"sequence {s} is empty: its length is {given[s]}")
    # As floats, which do not wrap around.
    if given.sum(dtype=np.float64) > 2.0**62:
        raise ValueError(f"lengths add up to more rows than there can be; the largest is {given.max()}")
    return given


def _offsets_of(lengths: Given, n_events: int) -> Integers:
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
    import pandas as pd

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


TIMES = (np.ndarray, np.datetime64, np.timedelta64)
LARGEST_TABLE_BYTES = 1 << 31


class NotNumbersError(ValueError, TypeError):
    """Raised for values that are not numbers; also the `TypeError` that scikit-learn expects."""


def as_numbers(name: str, values: Any) -> Floats:
    """A new array of real numbers; raises a `ValueError` that begins with the name if that is impossible.

    Masked values, None and pandas' NA become NaN.
    """
    refuse_times(name, values)
    try:
        array = np.asarray(unmasked(values))
        if array.dtype == object:
            import pandas as pd

            array = np.where(pd.isna(array), np.nan, array)
        if array.dtype.kind != "c":
            return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise NotNumbersError(f"{name} cannot be read as numbers: {first_odd(values) or error}") from None
    raise NotNumbersError(f"{name} cannot be read as numbers: they are complex")


def refuse_times(name: str, values: Any) -> None:
    """Raise `ValueError` for dates or durations, which would be read as numbers of nanoseconds."""
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
    """The values with NaN in place of masked ones, in an array or in arrays in lists at any depth."""
    if isinstance(values, np.ma.MaskedArray):
        kept = values if values.dtype.kind == "c" else values.astype(np.float64)
        return np.ma.filled(kept, np.nan)
    nested = (list, tuple, np.ma.MaskedArray)
    if isinstance(values, (list, tuple)) and any(isinstance(item, nested) for item in values):
        return [unmasked(item) for item in values]
    return values


def whole_numbers(name: str, values: Any) -> Integers:
    """A new array of whole numbers; raises a `ValueError` that begins with the name if there are others."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a list of whole numbers") from None
    if array.ndim != 1 or array.dtype.kind not in "iu" or np.ma.is_masked(values):
        raise ValueError(f"{name} must be a list of whole numbers; got {_short(values)}")
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit into 64 bits, which {array.max()} does not")
    return np.array(array, dtype=np.int64)


def check_size(name: str, n_numbers: int, instead: str) -> None:
    """Raise `ValueError`, which says what to do `instead`, if a table of `n_numbers` would be too large."""
    if 8 * n_numbers > LARGEST_TABLE_BYTES:
        raise ValueError(f"{name} would take {8 * n_numbers / 2**30:,.1f} GiB of memory: {instead}")


def first_odd(table: Any) -> str | None:
    """A description of the first row with another length, or the first text that is not a number, if any."""
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


# Length of each unit in nanoseconds.
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "min": 6e10, "h": 3.6e12, "D": 8.64e13}


def intervals(times: Any, lengths: Given = None, unit: str = "s") -> Floats:
    """The time since the previous event of the same sequence, (N, 1); NaN at each sequence's first event.

    `times` are numbers, or dates with a time of day (datetime, `datetime64`, pandas' Timestamp or ISO text),
    whose differences are returned in `unit`: "s", "ms", "us", "ns", "min", "h" or "D".

    Examples
    --------
    >>> from keydyn import intervals
    >>> intervals(["2026-01-01 10:00:00", "2026-01-01 10:00:30", "2026-01-01 10:02:00"]).tolist()
    [[nan], [30.0], [90.0]]
    >>> intervals([0.0, 2.0, 7.0, 8.0], lengths=[2, 2])[:, 0].tolist()
    [nan, 2.0, nan, 1.0]
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, not {unit!r}")
    values = np.asarray(times)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"times must be one per event; their shape is {values.shape}")
    if values.dtype.kind in "iuf":
        steps = np.diff(values.astype(np.float64), prepend=np.nan)
    else:
        try:
            import pandas as pd

            dates = pd.to_datetime(pd.Series(values), utc=True, format="ISO8601" if _text(values) else None)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"times cannot be read as dates: {error}") from None
        nanoseconds = dates.dt.as_unit("ns").astype(np.int64).to_numpy()
        if dates.isna().any():
            raise ValueError(f"time {int(np.argmax(dates.isna()))} is missing")
        steps = np.diff(nanoseconds, prepend=nanoseconds[:1]) / UNITS[unit]
    starts = np.zeros(1, dtype=np.int64)
    if lengths is not None:
        given = check_lengths(lengths)
        if given.sum() != len(steps):
            raise ValueError(f"lengths add up to {given.sum()}, but there are {len(steps)} times")
        starts = np.concatenate([starts, np.cumsum(given)[:-1]])
    steps[starts] = np.nan
    negative = steps < 0
    if negative.any():
        raise ValueError(f"time {int(np.argmax(negative))} is before the one above it: sort the events first")
    return np.ascontiguousarray(steps[:, None])


def _text(values: Any) -> bool:
    return bool(len(values)) and isinstance(values[0], str)
