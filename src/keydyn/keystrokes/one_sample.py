"""Samples for decisions, from a frame or, which is faster, from plain lists and arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.impossible import without_impossible
from keydyn.keystrokes.samples import Samples, check_sensor_names, families_of
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, beyond, check_times, refuse
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import Types

if TYPE_CHECKING:
    import pandas as pd

# What a list of numbers may hold; None is a value that was not seen.
_NUMBERS = {int, float, np.int64, np.float64, type(None)}
_NONE: Mapping[str, Any] = {}


def one_sample(
    keys: Any,
    press: Any,
    release: Any,
    user: Hashable = "",
    session: Hashable = 0,
    sensors: Mapping[str, Any] = _NONE,
) -> Samples:
    """The sample that `Samples.of` makes of the same keystrokes, in order of press; it has no vectors.

    `keys` are names of keys, `press` and `release` are milliseconds, None or NaN where a release was not
    seen, and `sensors` are further features by name, one number per keystroke. A `ValueError` says what is
    wrong, and in which line, from 0.

    Examples
    --------
    >>> from keydyn.keystrokes import one_sample
    >>> sample = one_sample(["t", "h", "e"], [0.0, 140.0, 250.0], [80.0, None, 330.0], user="ann")
    >>> len(sample), sample.sequences.n_events, sample.users.tolist()
    (1, 3, ['ann'])
    """
    names = _names(keys)
    pressed = times_given(press, "timepress", len(names))
    released = times_given(release, "timerelease", len(names))
    starts = np.zeros(1, dtype=np.int64)
    refuse(np.isnan(pressed), "timepress", "is missing")
    check_times(pressed, released, starts)
    check_sensor_names(tuple(sensors))
    interval = np.empty(len(names))
    np.subtract(pressed[1:], pressed[:-1], out=interval[1:])
    interval[0] = np.median(interval[1:]) if len(names) > 1 else np.nan
    columns = {"duration": released - pressed, "tau": interval}
    columns |= {name: _numbers(values, name, len(names)) for name, values in sensors.items()}
    features = sorted(columns)
    codes, types = _codes(names)
    X, named = np.column_stack([columns[name] for name in features]), [(user, session)]
    sequences = Sequences(X, codes, types, np.array([0, len(names)]), tuple(features), named)
    return Samples(named, sequences, families_of(features))


def _names(keys: Any) -> list[str]:
    names = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
    if not names:
        raise ValueError("there are no keystrokes")
    if set(map(type, names)) != {str}:
        line = next(n for n, name in enumerate(names) if type(name) is not str)
        raise ValueError(f"line {line}: keyname must be text, not {names[line]!r}")
    return names


def _codes(names: list[str]) -> tuple[Integers, Types]:
    """The place of each name among the different ones, which are sorted."""
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    return np.fromiter(map(places.__getitem__, names), np.int64, len(names)), np.array(distinct, dtype=object)


def _numbers(values: Any, column: str, n: int) -> Floats:
    """One number per keystroke; NaN where there is None."""
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.shape != (n,):
        raise ValueError(f"{column} must be one number per keystroke: {n} are needed")
    if array.dtype == object and set(map(type, array.tolist())) <= _NUMBERS:
        array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{column} must be numbers")
    return array.astype(np.float64)


def times_given(values: Any, column: str, n: int) -> Floats:
    """A caller's times as an array, one per keystroke, in milliseconds; NaN where there is None."""
    try:
        times = _numbers(values, column, n)
    except OverflowError:
        raise ValueError(f"{column} is beyond ±2⁶² ms") from None
    refuse(beyond(times), column, "is beyond ±2⁶² ms")
    return times


def recorded_samples(keystrokes: pd.DataFrame | Samples, sensors: tuple[str, ...] = ()) -> Samples:
    """Samples for decisions, from keystrokes in the schema or from `Samples`; impossible times are missing.

    From keystrokes they have no feature vectors: templates that can be stored do not need any.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import recorded_samples
    >>> samples = recorded_samples(make_typists(2, 3, "free", 80))
    >>> len(samples), samples.sequences.n_events
    (6, 480)
    """
    if isinstance(keystrokes, Samples):
        samples = keystrokes
    elif _is_plain(keystrokes, sensors):
        keys, press, release = (keystrokes[name].to_numpy() for name in COLUMNS[2:])
        user, session = (keystrokes[name].tolist()[0] for name in SAMPLE)
        further = {name: keystrokes[name].to_numpy() for name in sensors}
        samples = one_sample(keys, press, release, user, session, further)
    else:
        samples = Samples.without_vectors(keystrokes, sensors)
    return without_impossible(samples)


def _is_plain(keystrokes: pd.DataFrame, sensors: tuple[str, ...]) -> bool:
    """Whether this is a single sample in columns of text and numbers, which `one_sample` reads faster."""
    columns = keystrokes.columns
    if len(keystrokes) == 0 or not columns.is_unique or not {*COLUMNS, *sensors} <= set(columns):
        return False
    numbers = (keystrokes[name].dtype for name in (*COLUMNS[3:], *sensors))
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in numbers):
        return False
    if set(map(type, keystrokes["keyname"].tolist())) != {str}:
        return False
    for name in SAMPLE:
        labels = keystrokes[name].tolist()
        if not (set(map(type, labels)) in ({int}, {str}) and len(set(labels)) == 1):
            return False
    return True
