"""The schema of keystrokes: a keystroke is a row of user, session, keyname, timepress and timerelease.

Times are milliseconds. `session` is the number or name of the sample among those of the user; the rows of a
sample are contiguous, in order of press. A key whose release was not seen has no `timerelease`. Further
columns are features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.reading_error import FilePosition, ReadingError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("user", "session", "keyname", "timepress", "timerelease")
SAMPLE = ["user", "session"]
# The largest time in any unit, so that differences of 64-bit integers do not overflow.
LATEST = 2**62
FIRST_LINE = FilePosition("line", 0)
# Kinds of findings for which readers of files offer remedies.
SCATTERED, UNORDERED, NEGATIVE_HOLD = "scattered sample", "unordered presses", "negative hold"
# Units in a millisecond. Dividing by a whole number rounds once, so that 149100 µs are exactly 149.1 ms.
PER_MILLISECOND = {"ms": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ns": 1_000_000}
UNITS = ("s", *PER_MILLISECOND)


def check_keystrokes(frame: pd.DataFrame, *, negative_holds: bool = False) -> pd.DataFrame:
    """Check keystrokes, and return a copy with the schema's columns first.

    A `ReadingError` names the column and the line of an error; lines are counted from 0, like rows of frames.
    With `negative_holds`, releases before their press are accepted, for the cleaning rule of that name.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.keystrokes import ReadingError, check_keystrokes
    >>> typed = pd.DataFrame({"user": ["ann"], "session": [0], "keyname": ["a"]})
    >>> typed["timepress"], typed["timerelease"] = [50.0], [9.0]
    >>> try:
    ...     check_keystrokes(typed)
    ... except ReadingError as error:
    ...     print(error)
    line 0: timerelease is before the press
    """
    check_columns(frame, COLUMNS)
    if len(frame) == 0:
        raise ReadingError("there are no keystrokes")
    others = [column for column in frame.columns if column not in COLUMNS]
    checked = frame[[*COLUMNS, *others]].reset_index(drop=True)
    for column in ("user", "session", "keyname"):
        refuse(checked[column].isna().to_numpy(), column, "is missing")
    checked["keyname"] = checked["keyname"].astype(str)
    for column in ("timepress", "timerelease"):
        checked[column] = _as_times(checked[column], column)
    refuse(checked["timepress"].isna().to_numpy(), "timepress", "is missing")
    try:
        _check_order(checked, negative_holds)
    except TypeError:
        for column in SAMPLE:
            refuse_unhashable(checked[column], column)
        raise
    return checked


def check_columns(frame: Any, wanted: Iterable[str]) -> None:
    """Raise a `ValueError` unless this is a data frame with these columns, and none of its columns twice."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"a data frame is needed, not a {type(frame).__name__}")
    absent = [column for column in wanted if column not in frame.columns]
    if absent:
        raise ValueError(
            f"no column {', '.join(map(repr, absent))}; there are {', '.join(map(repr, frame.columns))}"
        )
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"more than one column is called {twice[0]!r}")


def as_numbers(values: pd.Series[Any], column: str) -> pd.Series[Any]:
    """Convert a column to numbers; whole numbers stay whole, and other values become NaN."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype

    if values.dtype.kind in "mMc" or is_bool_dtype(values):
        raise ValueError(f"{column} must be a number; the column is of type {values.dtype}")
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except (TypeError, ValueError, OverflowError):
        numbers = values
    if numbers.dtype.kind not in "iuf":
        numbers = pd.Series([_number(value) for value in values.tolist()], values.index, dtype=np.float64)
    return numbers


def beyond(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the times that are too large for calculations."""
    return (numbers > LATEST) | (numbers < -LATEST)


def refuse_unhashable(values: pd.Series[Any], column: str, first: FilePosition = FIRST_LINE) -> None:
    """Raise a `ReadingError` at the first value that cannot be a label, such as a list."""
    for n, value in enumerate(values.tolist()):
        try:
            hash(value)
        except TypeError:
            raise ReadingError(f"{column} cannot be {value!r}", place=first.after(n)) from None


def sample_starts(frame: pd.DataFrame) -> Integers:
    """The row at which each sample begins."""
    changed = np.zeros(len(frame), dtype=bool)
    changed[:1] = True
    for column in SAMPLE:
        # pandas' shift would convert integers to floats, for which those beyond 2⁵³ may no longer differ.
        labels = frame[column].to_numpy()
        changed[1:] |= labels[1:] != labels[:-1]
    starts: Integers = np.flatnonzero(changed)
    return starts


def sample_lengths(starts: Integers, n_keystrokes: int) -> Integers:
    """The number of keystrokes in each sample, given the row at which each begins and the number of rows."""
    lengths: Integers = np.diff(starts, append=n_keystrokes)
    return lengths


def sample_of_row(starts: Integers, n_keystrokes: int) -> Integers:
    """The sample that each row belongs to, numbered from 0."""
    return np.repeat(np.arange(len(starts)), sample_lengths(starts, n_keystrokes))


def name_parts(users: pd.Series[Any], sessions: pd.Series[Any], parts: Integers) -> pd.Series[Any]:
    """The session of each part of divided samples, given the sample's session and the part's number, from 0.

    The first part keeps its sample's session. The others get the user's next free numbers or, if sessions are
    not numbers, the sample's name followed by the part's number.
    """
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    later = parts > 0
    if not later.any():
        return sessions
    if is_numeric_dtype(sessions) and not is_bool_dtype(sessions):
        by_user = sessions.groupby(users.to_numpy(), sort=False, observed=True)
        largest = np.floor(by_user.transform("max")).to_numpy()
        new = pd.Series(later.astype(np.int64)).groupby(users.to_numpy(), sort=False, observed=True).cumsum()
        numbers = np.where(later, largest + new.to_numpy(), sessions.to_numpy())
        # Small whole numbers are not cast back: session 255 of 8 bits would be followed by 0.
        whole = sessions.dtype.kind in "iu" and sessions.dtype != np.uint64
        return pd.Series(numbers, index=sessions.index).astype(np.int64 if whole else sessions.dtype)
    names = sessions.astype(object).copy()
    taken = set(zip(users, names, strict=True))
    for n in np.flatnonzero(later).tolist():
        name = f"{names.iloc[n]} part {parts[n] + 1}"
        while (users.iloc[n], name) in taken:
            name += "'"
        taken.add((users.iloc[n], name))
        names.iloc[n] = name
    return names.infer_objects()


def _as_times(values: pd.Series[Any], column: str) -> pd.Series[Any]:
    numbers = as_numbers(values, column).astype(np.float64)
    refuse((numbers.isna() & values.notna()).to_numpy(), column, "is not a number")
    refuse(np.isinf(numbers.to_numpy()), column, "is infinite")
    refuse(beyond(numbers.to_numpy()), column, "is beyond ±2⁶² ms")
    return numbers


def _number(value: Any) -> float:
    """Convert a value of a mixed column to a number; NaN if it is not one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, str, np.integer, np.floating)
    ):
        return np.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return np.nan


def _check_order(frame: pd.DataFrame, negative_holds: bool) -> None:
    starts = sample_starts(frame)
    twice = frame.loc[starts, SAMPLE].duplicated().to_numpy()
    if twice.any():
        row = int(starts[np.argmax(twice)])
        user, session = (str(frame[column].iloc[row]) for column in SAMPLE)
        problem = f"the rows of user {user}, session {session} are not contiguous"
        raise ReadingError(problem, place=FIRST_LINE.after(row), kind=SCATTERED)
    press, release = frame["timepress"].to_numpy(), frame["timerelease"].to_numpy()
    check_times(press, release, starts, negative_holds)


def check_times(press: Floats, release: Floats, starts: Integers, negative_holds: bool = False) -> None:
    """Raise a `ReadingError` if a press is before the one above it in its sample, or after its release."""
    back = np.zeros(len(press), dtype=bool)
    back[1:] = press[1:] < press[:-1]
    back[starts] = False
    refuse(back, "timepress", "is before the press above it", kind=UNORDERED)
    if not negative_holds:
        refuse(release < press, "timerelease", "is before the press", kind=NEGATIVE_HOLD)


def refuse(bad: Any, column: str, problem: str, first: FilePosition = FIRST_LINE, kind: str = "") -> None:
    """Raise a `ReadingError` at the first bad row, if any; `first` is the place of row 0."""
    if bad.any():
        raise ReadingError(f"{column} {problem}", place=first.after(int(np.argmax(bad))), kind=kind)


def check_unit(unit: str) -> None:
    """Raise a `ValueError` if this is not a unit."""
    if unit not in UNITS:
        raise ValueError(f"the unit must be s, ms, us or ns, not {unit!r}")


def milliseconds(times: Floats, unit: str) -> Floats:
    """Times in some unit, converted to milliseconds and rounded once."""
    if unit == "s":
        scaled = times * 1000.0
        # A decimal times 1000 has a rounding error, which can be removed if whole microseconds were meant.
        snapped = np.round(scaled, 3)
        return np.where(np.abs(scaled - snapped) <= 4 * np.spacing(np.abs(scaled)), snapped, scaled)
    check_unit(unit)
    return times / PER_MILLISECOND[unit]


# The beginnings of the years 2000 and 2100, in milliseconds since 1970.
FIRST_STAMP, LAST_STAMP = 946_684_800_000, 4_102_444_800_000


def unit_of_stamps(times: Floats) -> str | None:
    """The unit of times of typing that are counted from 1970; None if they may be anything else.

    The same numbers could be milliseconds since a machine was started, so the time from one event to the next
    must be plausible for a person in this unit.
    """
    known = np.sort(times[~np.isnan(times)])
    steps = np.diff(known)
    if not (steps > 0).any():
        return None
    step = np.median(steps[steps > 0])
    for unit in ("s", "ms", "us", "ns"):
        first, last, typical = milliseconds(np.array([known[0], known[-1], step]), unit).tolist()
        if first >= FIRST_STAMP and last < LAST_STAMP and QUICKEST / 4 <= typical <= SLOWEST:
            return unit
    return None


# The range of plausible median times between two presses, in milliseconds.
QUICKEST, SLOWEST = 20.0, 5000.0


def likelier_unit(median: float, unit: str) -> str | None:
    """The unit in which a median interval, in ms if `unit` is right, is plausible; None if it already is."""
    if not median > 0 or QUICKEST <= median <= SLOWEST:
        return None
    own = median / float(milliseconds(np.ones(1), unit)[0])
    by_unit = {other: float(milliseconds(np.array([own]), other)[0]) for other in ("s", "ms", "us", "ns")}
    return next((other for other, time in by_unit.items() if QUICKEST <= time <= SLOWEST), None)
