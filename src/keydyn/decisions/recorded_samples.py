"""Samples as decisions need them, from keystrokes in the schema."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE, sample_starts


def recorded_samples(keystrokes: pd.DataFrame | Samples, sensors: tuple[str, ...] = ()) -> Samples:
    """Samples without vectors, which templates that can be stored do not need; samples stay as they are."""
    if isinstance(keystrokes, Samples):
        samples = keystrokes
    else:
        index = pd.MultiIndex.from_frame(keystrokes.iloc[sample_starts(keystrokes)][SAMPLE])
        samples = Samples.of(keystrokes, sensors, vectors=pd.DataFrame(index=index))
    _refuse_zero_times(samples)
    return samples


def _refuse_zero_times(samples: Samples) -> None:
    """A time of 0 ms has no logarithm; a `ValueError` says where it is and what can be done."""
    sequences = samples.sequences
    zero = (sequences.X <= 0) & (np.array(samples.emission) == "lognormal")
    if zero.any():
        row, k = (int(place) for place in np.argwhere(zero)[0])
        s = int(np.searchsorted(sequences.offsets, row, side="right")) - 1
        user, session = samples.index[s]
        name = (sequences.feature_names or ())[k]
        raise ValueError(
            f"user {user}, session {session}, keystroke {row - int(sequences.offsets[s]) + 1}: {name} is "
            "0 ms, which no model of times can take; --clean leaves such times out, as do the rules "
            "equal_presses and zero_durations of keydyn.keystrokes.clean"
        )
