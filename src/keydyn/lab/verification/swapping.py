"""Sessions in which one person takes another's place at the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.keystrokes.schema import SAMPLE, sample_lengths, sample_starts

Sample = tuple[Any, Any]


def swapped(keystrokes: pd.DataFrame, pairs: Sequence[tuple[Sample, Sample]], keys: int) -> pd.DataFrame:
    """One session for each pair of samples, (user, session) each: the first `keys` keystrokes of the first,
    then the second from there on.

    The second person's first interval is the one that they typed, as if they had come without a pause: a
    pause would give the change away. `user` is the first person, `session` the number of the pair.
    """
    if not pairs:
        raise ValueError("there are no pairs of samples")
    starts = sample_starts(keystrokes)
    lengths = sample_lengths(starts, len(keystrokes))
    names = keystrokes.iloc[starts][SAMPLE].itertuples(index=False, name=None)
    places = {name: (start, length) for name, start, length in zip(names, starts, lengths, strict=True)}
    rows, shifts, numbers, users = [], [], [], []
    press = keystrokes["timepress"].to_numpy()
    for number, pair in enumerate(pairs):
        for name in pair:
            if name not in places or not 0 < keys < places[name][1]:
                raise ValueError(f"user {name[0]} has no session {name[1]} with more than {keys} keystrokes")
        (first, _), (second, length) = (places[name] for name in pair)
        some = np.concatenate([np.arange(first, first + keys), np.arange(second + keys, second + length)])
        shift = np.zeros(len(some), dtype=press.dtype)
        shift[keys:] = press[first + keys - 1] - press[second + keys - 1]
        rows.append(some)
        shifts.append(shift)
        numbers += [number] * len(some)
        users += [pair[0][0]] * len(some)
    joined = keystrokes.iloc[np.concatenate(rows)].reset_index(drop=True)
    shift = np.concatenate(shifts)
    return joined.assign(
        user=users,
        session=numbers,
        timepress=joined["timepress"] + shift,
        timerelease=joined["timerelease"] + shift,
    )
