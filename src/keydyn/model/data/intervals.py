"""Times of events as the intervals between them, which is what a model of times takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from keydyn.arrays import Floats
from keydyn.model.data.input_forms import check_lengths

# In nanoseconds.
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "min": 6e10, "h": 3.6e12, "D": 8.64e13}


def intervals(times: Any, lengths: ArrayLike | None = None, unit: str = "s") -> Floats:
    """The time since the event before in the same sequence, (N, 1); NaN at each sequence's first event.

    `times` are numbers, or dates with a time of day (datetime, `datetime64`, pandas' Timestamp or ISO text),
    whose differences are given in `unit`: "s", "ms", "us", "ns", "min", "h" or "D".

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
