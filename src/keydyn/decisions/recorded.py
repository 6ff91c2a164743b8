"""Keystrokes in the schema as samples for decisions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.keystrokes.one_sample import one_sample
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import COLUMNS, SAMPLE


def recorded_samples(keystrokes: pd.DataFrame | Samples, sensors: tuple[str, ...] = ()) -> Samples:
    """Samples for decisions, from keystrokes in the schema; `Samples` are checked and returned as they are.

    They have no feature vectors: templates that can be stored do not need any.

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
    _refuse_zero_times(samples)
    return samples


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


def _refuse_zero_times(samples: Samples) -> None:
    """A time of 0 ms has no logarithm; a `ValueError` says where it is and what can be done."""
    sequences = samples.sequences
    zero = (sequences.X <= 0) & (np.array(samples.emission) == "lognormal")
    if zero.any():
        row, k = (int(place) for place in np.argwhere(zero)[0])
        s = int(np.searchsorted(sequences.offsets, row, side="right")) - 1
        user, session = samples.names[s]
        name = (sequences.feature_names or ())[k]
        raise ValueError(
            f"user {user}, session {session}, keystroke {row - int(sequences.offsets[s]) + 1}: {name} is "
            "0 ms, which no model of times can take; --clean leaves such times out, as do the rules "
            "equal_presses and zero_durations of keydyn.keystrokes.clean"
        )
