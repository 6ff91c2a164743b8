"""Feature vectors of short fixed texts: every sample has the same keys, so its vector is all its times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from keydyn.keystrokes.schema import SAMPLE, sample_starts
from keydyn.keystrokes.timing import INTERVALS, timing_features


def is_fixed_text(keystrokes: pd.DataFrame) -> bool:
    """Whether all samples have the same keys in the same order."""
    starts = sample_starts(keystrokes)
    n_keys = len(keystrokes) // len(starts)
    if not np.array_equal(starts, np.arange(len(starts)) * n_keys) or n_keys * len(starts) != len(keystrokes):
        return False
    keys = keystrokes["keyname"].to_numpy(dtype=object).reshape(len(starts), n_keys)
    return bool((keys == keys[0]).all())


def fixed_text_vectors(
    keystrokes: pd.DataFrame,
    timings: Sequence[str] = ("duration", "tau"),
    sensors: Sequence[str] = (),
) -> pd.DataFrame:
    """One row per sample, indexed by (user, session): each timing and sensor at each key.

    Intervals begin with the second key, so that 11 keys give 11 durations and 10 intervals of each kind.
    Columns are called `duration_0`, `tau_1` and so on, by position.
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


def _first_odd_sample(keystrokes: pd.DataFrame, starts: np.ndarray) -> tuple[str, str]:
    names = np.split(keystrokes["keyname"].to_numpy(dtype=object), starts[1:])
    odd = next(s for s, keys in enumerate(names) if not np.array_equal(keys, names[0]))
    user, session = (str(keystrokes[column].iloc[starts[odd]]) for column in SAMPLE)
    return user, session
