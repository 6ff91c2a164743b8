"""Samples for decisions, from a frame or, which is faster, from plain lists and arrays.

Times that no hand makes are missing in them. A keyboard senses and reports its keys about a hundred times per
second (over USB usually every 8 ms), and a finger needs several times as long to press a key and release it.
A shorter hold, or a shorter interval between two presses, is a time of the keyboard, the operating system or
the network. A key held for seconds is stuck or leant on, or its release was lost; an interval of more than a
minute is an absence. A key pressed again before its release repeats automatically. These times are missing
only for models of people; the keystroke stays, with its other time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.samples import Names, Samples, check_sensor_names, families_of
from keydyn.keystrokes.schema import COLUMNS, LATEST, beyond, check_times, refuse
from keydyn.keystrokes.timing import TIMINGS
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import Types, as_text

if TYPE_CHECKING:
    import pandas as pd

# The types in a list of numbers; None is a missing value.
_NUMBERS = {int, float, np.int64, np.float64, type(None)}
_NONE: Mapping[str, Any] = {}
BEYOND = "is beyond ±2⁶² ms"
# The limits of possible times, both included, in milliseconds.
SHORTEST = 10.0
LONGEST_HOLD = 2_000.0
LONGEST_INTERVAL = 60_000.0


def one_sample(
    keys: Any,
    press: Any,
    release: Any,
    user: Hashable = "",
    session: Hashable = 0,
    sensors: Mapping[str, Any] = _NONE,
) -> Samples:
    """Make a single sample of keystrokes in order of press, as `Samples.of` does, but without vectors.

    `keys` are names of keys, `press` and `release` are milliseconds, None or NaN if a release was not seen,
    and `sensors` are further features by name, one number per keystroke. A `ValueError` describes the error
    and names its line, from 0.

    Examples
    --------
    >>> from keydyn.keystrokes import one_sample
    >>> sample = one_sample(["t", "h", "e"], [0.0, 140.0, 250.0], [80.0, None, 330.0], user="ann")
    >>> len(sample), sample.sequences.n_events, sample.users.tolist()
    (1, 3, ['ann'])
    """
    names = _names(keys)
    pressed = _milliseconds(press, "timepress", len(names))
    released = _milliseconds(release, "timerelease", len(names))
    starts = np.zeros(1, dtype=np.int64)
    if not _are_times(pressed, released, starts):
        for column, times in (("timepress", pressed), ("timerelease", released)):
            refuse(beyond(times), column, BEYOND)
        refuse(np.isnan(pressed), "timepress", "is missing")
        check_times(pressed, released, starts)
    check_sensor_names(tuple(sensors))
    further = {name: _numbers(values, name, len(names)) for name, values in sensors.items()}
    return _samples(names, pressed, released, SampleLabels([(user, session)], starts), further)


class SampleLabels(NamedTuple):
    """The user and session of each sample, and the number of its first keystroke."""

    names: Names
    starts: Integers

    @classmethod
    def of(cls, users: list[Any], sessions: list[Any]) -> SampleLabels:
        """Find the samples of keystrokes, given the user and session of each keystroke."""
        pairs = list(zip(users, sessions, strict=True))
        if pairs[0] == pairs[-1] and len(set(pairs)) == 1:
            return cls(pairs[:1], np.zeros(1, dtype=np.int64))
        starts = [0, *(n for n in range(1, len(pairs)) if pairs[n] != pairs[n - 1])]
        return cls([pairs[n] for n in starts], np.array(starts))


def _samples(
    keys: list[str], press: Floats, release: Floats, labels: SampleLabels, further: Mapping[str, Floats]
) -> Samples:
    """Make samples of keystrokes that have been checked."""
    offsets = np.array([*labels.starts.tolist(), len(keys)])
    columns = {"duration": release - press, "tau": _intervals(press, offsets), **further}
    features = sorted(columns)
    codes, types = _codes(keys)
    X = np.array([columns[name] for name in features]).T.copy()
    if not further or np.isfinite(X).all():
        sequences = Sequences.of_checked(X, codes, types, offsets, tuple(features), labels.names)
    else:
        sequences = Sequences(X, codes, types, offsets, tuple(features), labels.names)
    return Samples(labels.names, sequences, families_of(features))


def _intervals(press: Floats, offsets: Integers) -> Floats:
    """Intervals from press to press; a sample's first is the median of its others, NaN if there are none."""
    interval = np.empty(len(press))
    np.subtract(press[1:], press[:-1], out=interval[1:])
    for first, end in pairwise(offsets.tolist()):
        others = np.sort(interval[first + 1 : end])
        n = len(others)
        interval[first] = (others[(n - 1) // 2] + others[n // 2]) / 2.0 if n else np.nan
    return interval


def _names(keys: Any) -> list[str]:
    names = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
    if not names:
        raise ValueError("there are no keystrokes")
    if set(map(type, names)) != {str}:
        line = next(n for n, name in enumerate(names) if type(name) is not str)
        raise ValueError(f"line {line}: keyname must be text, not {names[line]!r}")
    return names


def _codes(names: list[str]) -> tuple[Integers, Types]:
    """The code of each name, and the distinct names in sorted order."""
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    types = np.array(distinct)
    if types.tolist() != distinct:
        # NumPy's strings lose null characters at their end, for which `as_text` raises a `ValueError`.
        list(map(as_text, distinct))
    return np.fromiter(map(places.__getitem__, names), np.int64, len(names)), types


def _numbers(values: Any, column: str, n: int) -> Floats:
    """Convert values to one number per keystroke; None becomes NaN."""
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.shape != (n,):
        raise ValueError(f"{column} must be one number per keystroke: {n} are needed")
    if array.dtype == object and set(map(type, array.tolist())) <= _NUMBERS:
        array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{column} must be numbers")
    return array.astype(np.float64)


def times_given(values: Any, column: str, n: int) -> Floats:
    """Convert a caller's times in milliseconds, one per keystroke, to an array; None becomes NaN."""
    times = _milliseconds(values, column, n)
    refuse(beyond(times), column, BEYOND)
    return times


def _milliseconds(values: Any, column: str, n: int) -> Floats:
    """Convert a caller's times to an array, without a check of their range."""
    try:
        return _numbers(values, column, n)
    except OverflowError:
        raise ValueError(f"{column} {BEYOND}") from None


def _are_times(press: Floats, release: Floats, starts: Integers) -> bool:
    """Whether these are valid times of keystrokes in order, given the starts of samples."""
    falls = press[1:] < press[:-1]
    falls[starts[1:] - 1] = False
    odd = falls.any() or not (np.abs(press) <= LATEST).all()
    return not (odd or (release < press).any() or (release > LATEST).any())


def recorded_samples(keystrokes: pd.DataFrame | Samples, sensors: tuple[str, ...] = ()) -> Samples:
    """Make samples for decisions from keystrokes in the schema or `Samples`; impossible times are missing.

    Those made from keystrokes have no feature vectors: templates that can be stored do not need any.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import recorded_samples
    >>> samples = recorded_samples(make_typists(2, 3, "free", 80))
    >>> len(samples), samples.sequences.n_events
    (6, 480)
    """
    if isinstance(keystrokes, Samples):
        return without_impossible(keystrokes)
    plain = _plain(keystrokes, sensors)
    return without_impossible(plain or Samples.without_vectors(keystrokes, sensors))


def _plain(keystrokes: pd.DataFrame, sensors: tuple[str, ...]) -> Samples | None:
    """Make samples quickly, if the columns are plain text and valid numbers; None for all others.

    Others are converted, or refused with their line, by `Samples.without_vectors`, which takes longer.
    """
    columns = getattr(keystrokes, "columns", None)
    if (
        columns is None
        or len(keystrokes) == 0
        or not columns.is_unique
        or set(sensors) & {*COLUMNS, *TIMINGS}
    ):
        return None
    if not {*COLUMNS, *sensors} <= set(columns):
        return None
    numbers = [keystrokes[name].to_numpy() for name in (*COLUMNS[3:], *sensors)]
    if any(one.dtype.kind not in "iuf" for one in numbers):
        return None
    press, release, *further = (one.astype(np.float64) for one in numbers)
    users, sessions, keys = (keystrokes[name].tolist() for name in COLUMNS[:3])
    if set(map(type, keys)) != {str} or not all(
        set(map(type, one)) in ({int}, {str}) for one in (users, sessions)
    ):
        return None
    labels = SampleLabels.of(users, sessions)
    if not _are_times(press, release, labels.starts) or len(set(labels.names)) < len(labels.names):
        return None
    return _samples(keys, press, release, labels, dict(zip(sensors, further, strict=True)))


def out_of_reach(intervals: Floats, holds: Floats) -> tuple[Truths, Truths]:
    """Masks of the intervals and of the holds that are too short or too long for a hand; NaN is neither."""
    return (
        (intervals < SHORTEST) | (intervals > LONGEST_INTERVAL),
        (holds < SHORTEST) | (holds > LONGEST_HOLD),
    )


def impossible(intervals: Floats, holds: Floats, keys: Integers, starts: Integers) -> tuple[Truths, Truths]:
    """Masks of the intervals and holds that no hand makes, (N,) each, given keys' codes and sample starts.

    A sample's first interval, which is a placeholder, is not judged. Keys without a type have the code −1.
    """
    wrong_intervals, wrong_holds = out_of_reach(intervals, holds)
    again = np.zeros(len(keys), dtype=bool)
    # A key that is down cannot be pressed; a release that was not seen is assumed to come later.
    again[1:] = (keys[1:] == keys[:-1]) & (keys[1:] >= 0) & ~(holds[:-1] <= intervals[1:])
    again[starts] = False
    # No hand makes the holds of the first press and of its repetition, nor the intervals around the latter.
    wrong_holds |= again
    wrong_holds[:-1] |= again[1:]
    wrong_intervals |= again
    wrong_intervals[1:] |= again[:-1]
    wrong_intervals[starts] = False
    return wrong_intervals, wrong_holds


def without_impossible(samples: Samples) -> Samples:
    """Mark impossible times in samples as missing, unless that was done before.

    Examples
    --------
    >>> from keydyn.keystrokes import one_sample, without_impossible
    >>> sample = one_sample(["a", "caps_lock", "b"], [0.0, 140.0, 250.0], [80.0, 140.5, 330.0])
    >>> without_impossible(sample).sequences.X[:, 0].tolist()
    [80.0, nan, 80.0]
    """
    sequences = samples.sequences
    names = sequences.feature_names or ()
    if samples.judged or "tau" not in names or "duration" not in names:
        return samples
    interval, hold = names.index("tau"), names.index("duration")
    first, X = sequences.offsets[:-1], sequences.X
    wrong_intervals, wrong_holds = impossible(X[:, interval], X[:, hold], sequences.codes, first)
    if not (wrong_intervals.any() or wrong_holds.any()):
        return samples.as_judged()
    X = X.copy()
    # The placeholder of a first interval is the median of the others, which may be 0.
    wrong_intervals[first] = X[first, interval] <= 0
    X[wrong_intervals, interval] = np.nan
    X[wrong_holds, hold] = np.nan
    return replace(samples, sequences=sequences.with_values(X)).as_judged()
