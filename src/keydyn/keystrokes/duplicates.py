"""Samples that are the same recording."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.schema import SAMPLE, sample_lengths, sample_starts

# Shorter samples can be alike by chance on a coarse clock.
SHORTEST = 5
# Counting from a different first press changes the last digits of a fraction: times are compared to 1 µs.
DECIMALS = 3


def find_duplicates(keystrokes: pd.DataFrame) -> pd.DataFrame:
    """The samples with the same keys and times as an earlier one, counted from each sample's first press.

    One row per copy, in order: `user`, `session`, `same_as_user`, `same_as_session`. Samples of fewer than
    five keystrokes are not compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes.duplicates import find_duplicates
    >>> typed = make_typists(1, 1)
    >>> find_duplicates(pd.concat([typed, typed.assign(user=7)])).values.tolist()
    [[7, 0, 0, 0]]
    """
    starts = sample_starts(keystrokes)
    copies, originals = _copies(keystrokes, starts)
    samples = keystrokes[SAMPLE].iloc[starts].reset_index(drop=True)
    duplicates = samples.iloc[copies].reset_index(drop=True)
    duplicates[["same_as_user", "same_as_session"]] = samples.iloc[originals].reset_index(drop=True)
    return duplicates


def is_duplicate(keystrokes: pd.DataFrame) -> NDArray[np.bool_]:
    """For each sample, whether it is the copy of an earlier one."""
    starts = sample_starts(keystrokes)
    flags = np.zeros(len(starts), dtype=bool)
    flags[_copies(keystrokes, starts)[0]] = True
    return flags


def _copies(keystrokes: pd.DataFrame, starts: Integers) -> tuple[Integers, Integers]:
    """The numbers of the samples that are copies, and of the first sample each is a copy of."""
    lengths = sample_lengths(starts, len(keystrokes))
    first = np.repeat(keystrokes["timepress"].to_numpy()[starts], lengths)
    rows = pd.DataFrame(
        {
            "place": np.arange(len(keystrokes)) - np.repeat(starts, lengths),
            "keyname": pd.factorize(keystrokes["keyname"])[0],
            "timepress": np.round(keystrokes["timepress"].to_numpy() - first, DECIMALS),
            "timerelease": np.round(keystrokes["timerelease"].to_numpy() - first, DECIMALS),
        }
    )
    hashes = np.add.reduceat(pd.util.hash_pandas_object(rows, index=False).to_numpy(), starts)
    alike = pd.DataFrame({"hash": hashes, "length": lengths}).groupby(["hash", "length"], sort=False)
    numbers = pd.Series(np.arange(len(starts)))
    original = numbers.groupby(alike.ngroup()).transform("first").to_numpy()
    copies = np.flatnonzero((original != numbers.to_numpy()) & (lengths >= SHORTEST))
    # Equal hashes only make a copy likely: the rows decide.
    mine, theirs = (_rows_of(rows, starts, lengths, which) for which in (copies, original[copies]))
    same = ((mine == theirs) | (np.isnan(mine) & np.isnan(theirs))).all(axis=1)
    of_copy = np.repeat(np.arange(len(copies)), lengths[copies])
    wrong = np.zeros(len(copies), dtype=bool)
    wrong[of_copy[~same]] = True
    return copies[~wrong], original[copies[~wrong]]


def _rows_of(rows: pd.DataFrame, starts: Integers, lengths: Integers, samples: Integers) -> Floats:
    """The rows of some samples, one sample after another."""
    ends = np.cumsum(lengths[samples])
    shift = np.repeat(starts[samples] - (ends - lengths[samples]), lengths[samples])
    chosen: Floats = rows.to_numpy(dtype=np.float64)[np.arange(len(shift)) + shift]
    return chosen
