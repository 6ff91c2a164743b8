"""Raw key events from a browser, an operating system or a log, checked and encoded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.reading_error import FilePosition, ReadingError
from keydyn.keystrokes.schema import (
    COLUMNS,
    SAMPLE,
    as_numbers,
    beyond,
    check_columns,
    check_unit,
    milliseconds,
    refuse,
    refuse_unhashable,
)

PRESS, RELEASE, PASTE, BLUR, FOCUS = range(5)
# Types by their names in lower case without separators: "Key-Down" is keydown.
TYPES = {
    **dict.fromkeys(("press", "keydown", "down", "pressed", "keypressed", "make", "kd"), PRESS),
    **dict.fromkeys(("release", "keyup", "up", "released", "keyrelease", "keyreleased"), RELEASE),
    **dict.fromkeys(("break", "ku"), RELEASE),
    **dict.fromkeys(("p", "d", "1", "true"), PRESS),
    **dict.fromkeys(("r", "u", "0", "false"), RELEASE),
    **{"paste": PASTE, "blur": BLUR, "focusout": BLUR, "focus": FOCUS, "focusin": FOCUS},
}


def kind_of(name: Any) -> int:
    """The kind of an event by the name of its type; −1 if unknown."""
    whole = int(name) if isinstance(name, float) and name.is_integer() else name
    return TYPES.get(re.sub(r"[^a-z0-9]", "", str(whole).lower()), -1)


FIRST = FilePosition("row", 0)
UNIDENTIFIED = -1
NOT_REPEATED, REPEATED, NO_FLAG = 0, 1, 2


@dataclass(frozen=True, eq=False)
class RawEvents:
    """The events of all samples, those of a sample together, in the order given."""

    frame: pd.DataFrame  # the rows, in this order
    time: NDArray[Any]  # time stamps in their own unit; whole numbers stay whole
    kind: Integers  # PRESS, RELEASE, PASTE, BLUR or FOCUS
    key: Integers  # number of the physical key, UNIDENTIFIED if the event does not name one
    names: NDArray[Any]  # name of the key in the schema
    repeat: Integers  # the flag, or NO_FLAG
    offsets: Integers  # sample s is events offsets[s] to offsets[s + 1] − 1
    unit: str

    @property
    def sample(self) -> Integers:
        """The number of the sample of each event."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def milliseconds(self, rows: Integers, origin: Integers | None = None) -> Floats:
        """Times of some events since `origin`, subtracted before conversion to preserve precision."""
        times = self.time[rows] if origin is None else self.time[rows] - self.time[origin]
        return milliseconds(times.astype(np.float64), self.unit)


def read_events(events: pd.DataFrame, unit: str = "ms") -> RawEvents:
    """Check and encode raw events; a `ReadingError` names the column and the row of an error."""
    check_unit(unit)
    check_columns(events, ("time", "type", "key"))
    for column in ("timepress", "timerelease"):
        if column in events.columns:
            raise ValueError(f"there is a column {column!r}: these are keystrokes, not events")
    if len(events) == 0:
        raise ValueError("there are no events")
    time, kind = _times(events["time"]), _kinds(events["type"])
    key, named = _keys(events["key"])
    repeat = _repeats(events, kind)
    frame = events.reset_index(drop=True)
    for column in SAMPLE:
        if column not in frame.columns:
            frame[column] = 0
        refuse(frame[column].isna().to_numpy(), column, "is missing", FIRST)
        _factorized(frame[column])
    number = frame.groupby(SAMPLE, sort=False, observed=True).ngroup().to_numpy()
    names = named
    if "keyname" in frame.columns:
        names = np.where(frame["keyname"].isna(), named, _texts(frame["keyname"])[1])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(number))])
    if (np.diff(number) >= 0).all():
        return RawEvents(frame, time, kind, key, names, repeat, offsets, unit)
    order = np.argsort(number, kind="stable")
    return RawEvents(
        frame.iloc[order], time[order], kind[order], key[order], names[order], repeat[order], offsets, unit
    )


def feature_columns(frame: pd.DataFrame) -> list[str]:
    """The names of further columns of events that are numeric."""
    used = {"time", "type", "key", "repeat", *COLUMNS}
    features = [name for name in frame.columns if name not in used and is_numeric_dtype(frame[name])]
    for name in features:
        if frame[name].dtype.kind == "c":
            raise ValueError(f"column {name!r} holds complex numbers, which cannot be a feature")
    return features


def _times(values: pd.Series[Any]) -> NDArray[Any]:
    refuse(values.isna().to_numpy(), "time", "is missing", FIRST)
    numbers = as_numbers(values, "time")
    refuse(numbers.isna().to_numpy(), "time", "is not a number", FIRST)
    whole = numbers.dtype.kind in "iu" and int(numbers.max()) <= np.iinfo(np.int64).max
    times = numbers.to_numpy(dtype=np.int64 if whole else np.float64)
    refuse(np.isinf(times), "time", "is infinite", FIRST)
    refuse(beyond(times), "time", "is beyond ±2⁶²", FIRST)
    return times


def _kinds(values: pd.Series[Any]) -> Integers:
    codes, names = _factorized(values)
    kinds = [kind_of(name) for name in names]
    # The last entry is for the code −1 of a missing type.
    kind: Integers = np.array([*kinds, -1], dtype=np.int64)[codes]
    if (kind == -1).any():
        row = int(np.argmax(kind == -1))
        problem = f"type is {values.iloc[row]!r}; it must be one of {', '.join(TYPES)}"
        raise ReadingError(problem, place=FIRST.after(row))
    return kind


def _keys(values: pd.Series[Any]) -> tuple[Integers, NDArray[Any]]:
    """The number and the name of each event's key, which on phones is often empty or "Unidentified"."""
    codes, names = _texts(values)
    return np.where(np.isin(names, ["", "Unidentified"]), UNIDENTIFIED, codes), names


def _texts(values: pd.Series[Any]) -> tuple[Integers, NDArray[Any]]:
    """The number and the text of each value; missing is "", and 30.0, in a column with gaps, is "30"."""
    codes, distinct = _factorized(values)
    texts = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in distinct]
    return codes, np.array([*texts, ""], dtype=object)[codes]


def _repeats(events: pd.DataFrame, kind: Integers) -> Integers:
    """The flag of each press; for other events it has no meaning and may be missing."""
    if "repeat" not in events.columns:
        return np.full(len(events), NO_FLAG, dtype=np.int64)
    codes, distinct = _factorized(events["repeat"])
    known = {"true": REPEATED, "1": REPEATED, "1.0": REPEATED}
    known |= {"false": NOT_REPEATED, "0": NOT_REPEATED, "0.0": NOT_REPEATED}
    flags = np.array(
        [*(known.get(str(flag).strip().lower(), -1) for flag in distinct), NO_FLAG], dtype=np.int64
    )
    repeat: Integers = flags[codes]
    refuse((repeat == -1) & (kind == PRESS), "repeat", "is neither true nor false", FIRST)
    return repeat


def _factorized(values: pd.Series[Any]) -> tuple[Integers, Any]:
    """pandas' `factorize`; a `ValueError` names the row of a value that cannot be a label."""
    if values.dtype.kind == "c":
        raise ValueError(f"column {values.name!r} holds complex numbers, which cannot be labels")
    try:
        codes, distinct = pd.factorize(values)
    except TypeError:
        refuse_unhashable(values, str(values.name), FIRST)
        raise
    return codes.astype(np.int64), distinct
