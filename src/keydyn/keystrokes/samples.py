"""Samples in the forms that detectors take them: as sequences, and as feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.keystrokes.fixed_text import fixed_text_vectors, is_fixed_text
from keydyn.keystrokes.long_text import long_text_vectors
from keydyn.keystrokes.schema import SAMPLE
from keydyn.keystrokes.timing import sequences_of
from keydyn.model import Sequences
from keydyn.model.arrays import Floats
from keydyn.model.vocabulary import Types


@dataclass(frozen=True, eq=False)
class Samples:
    """Some samples of some users.

    Attributes
    ----------
    index : (user, session) of each sample
    sequences : the same samples as sequences; features in alphabetical order
    emission : the family of each of these features: log-normal for times, normal for sensors
    table : the same samples as feature vectors, one row each
    kind : which vectors these are: "fixed text", "long text" or "given"
    """

    index: pd.MultiIndex
    sequences: Sequences
    emission: tuple[str, ...]
    table: pd.DataFrame
    kind: str

    @classmethod
    def of(
        cls,
        keystrokes: pd.DataFrame,
        sensors: Sequence[str] = (),
        vectors: pd.DataFrame | None = None,
        events: str = "key",
        first: str = "median",
    ) -> Samples:
        """From keystrokes in the schema.

        `sensors` are columns used beside the timings. `vectors`, indexed by (user, session), are used
        instead of our own if given; otherwise a fixed text has all its times as its vector, other texts
        their descriptive statistics.
        """
        features = sorted(["duration", "tau", *sensors])
        sequences = sequences_of(keystrokes, features, events, first)
        index = pd.MultiIndex.from_tuples(sequences.names or [], names=SAMPLE)
        emission = tuple("lognormal" if name in ("duration", "tau") else "normal" for name in features)
        if vectors is not None:
            absent = ~index.isin(vectors.index)
            if absent.any():
                user, session = index[int(np.argmax(absent))]
                raise ValueError(f"there is no vector of user {user}, session {session}")
            return cls(index, sequences, emission, vectors.loc[index], "given")
        if is_fixed_text(keystrokes):
            return cls(
                index, sequences, emission, fixed_text_vectors(keystrokes, sensors=sensors), "fixed text"
            )
        return cls(index, sequences, emission, long_text_vectors(keystrokes), "long text")

    @property
    def users(self) -> Types:
        """The user of each sample."""
        users: Types = self.index.get_level_values("user").to_numpy()
        return users

    @property
    def vectors(self) -> Floats:
        """(n, d) feature vectors, all values there; a `ValueError` names the sample that lacks one."""
        values = self.table.to_numpy(dtype=np.float64)
        missing = np.isnan(values)
        if missing.any():
            s, k = (int(place) for place in np.argwhere(missing)[0])
            user, session = self.index[s]
            raise ValueError(
                f"user {user}, session {session}: {self.table.columns[k]} is missing; vectors must be whole"
            )
        return values

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, which: Any) -> Samples:
        """Some of the samples: a slice, an array of numbers or of truth values."""
        chosen = np.atleast_1d(np.arange(len(self))[which])
        return Samples(
            self.index[chosen], self.sequences[chosen], self.emission, self.table.iloc[chosen], self.kind
        )
