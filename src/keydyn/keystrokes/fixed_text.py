"""Feature vectors of samples of one fixed text: every timing at every key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.keystrokes.schema import SAMPLE, sample_lengths, sample_of_row, sample_starts
from keydyn.keystrokes.timing import INTERVALS, timing_features


def is_fixed_text(keystrokes: pd.DataFrame) -> bool:
    """Whether all samples have the same keys in the same order.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import is_fixed_text
    >>> is_fixed_text(make_typists(2, 3)), is_fixed_text(make_typists(2, 3, "free", 30))
    (True, False)
    """
    starts = sample_starts(keystrokes)
    n_keys = len(keystrokes) // len(starts)
    if not np.array_equal(starts, np.arange(len(starts)) * n_keys) or n_keys * len(starts) != len(keystrokes):
        return False
    keys = keystrokes["keyname"].to_numpy(dtype=object).reshape(len(starts), n_keys)
    return bool((keys == keys[0]).all())


# A text is fixed if at least this share of all samples have the same keys; the others were mistyped.
MOST = 0.8


def same_keys(keystrokes: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask of the samples with the most common sequence of keys; empty if it has less than four fifths."""
    starts = sample_starts(keystrokes)
    lengths = sample_lengths(starts, len(keystrokes))
    sizes, counts = np.unique(lengths, return_counts=True)
    usual = np.flatnonzero(lengths == sizes[np.argmax(counts)])
    same = np.zeros(len(starts), dtype=bool)
    if len(usual) < MOST * len(starts):
        return same
    codes = pd.factorize(keystrokes["keyname"])[0]
    keys = codes[starts[usual][:, None] + np.arange(lengths[usual[0]])]
    _, texts, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    same[usual[texts == np.argmax(counts)]] = True
    return same if same.sum() >= MOST * len(starts) else np.zeros_like(same)


def fixed_text_vectors(
    keystrokes: pd.DataFrame, timings: Sequence[str] = ("duration", "tau"), sensors: Sequence[str] = ()
) -> pd.DataFrame:
    """The vectors of samples of a fixed text: each timing and sensor at each key, by (user, session).

    Intervals begin with the second key, so that 11 keys give 11 durations and 10 intervals of each kind.
    Columns are called `duration_0`, `tau_1` and so on, by position.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import fixed_text_vectors
    >>> vectors = fixed_text_vectors(make_typists(2, 3), timings=["duration", "tau"])
    >>> vectors.shape
    (6, 21)
    >>> vectors.columns[:2].tolist(), vectors.columns[-2:].tolist()
    (['duration_0', 'duration_1'], ['tau_9', 'tau_10'])
    """
    starts = sample_starts(keystrokes)
    if not is_fixed_text(keystrokes):
        odd = _first_odd_sample(keystrokes, starts)
        raise ValueError(
            f"not a fixed text: user {odd[0]}, session {odd[1]} has different keys from the first sample"
        )
    n_samples, n_keys = len(starts), len(keystrokes) // len(starts)
    table = timing_features(keystrokes, first="missing")
    columns = {}
    for name in (*timings, *sensors):
        source = table if name in table else keystrokes
        values = source[name].to_numpy(dtype=np.float64).reshape(n_samples, n_keys)
        for position in range(1 if name in INTERVALS else 0, n_keys):
            columns[f"{name}_{position}"] = values[:, position]
    index = pd.MultiIndex.from_frame(keystrokes.iloc[starts][SAMPLE])
    return pd.DataFrame(columns, index=index)


def mostly_fixed_vectors(
    keystrokes: pd.DataFrame, same: NDArray[np.bool_], sensors: Sequence[str] = ()
) -> pd.DataFrame:
    """The vectors of the samples marked by `same_keys`; those of the others are missing."""
    starts = sample_starts(keystrokes)
    index = pd.MultiIndex.from_frame(keystrokes.iloc[starts][SAMPLE])
    rows = same[sample_of_row(starts, len(keystrokes))]
    vectors = fixed_text_vectors(keystrokes[rows].reset_index(drop=True), sensors=sensors)
    full = np.full((len(index), vectors.shape[1]), np.nan)
    full[same] = vectors.to_numpy()
    return pd.DataFrame(full, index=index, columns=vectors.columns)


def _first_odd_sample(keystrokes: pd.DataFrame, starts: np.ndarray) -> tuple[str, str]:
    names = np.split(keystrokes["keyname"].to_numpy(dtype=object), starts[1:])
    odd = next(s for s, keys in enumerate(names) if not np.array_equal(keys, names[0]))
    user, session = (str(keystrokes[column].iloc[starts[odd]]) for column in SAMPLE)
    return user, session
