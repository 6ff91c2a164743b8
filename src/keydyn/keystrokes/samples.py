"""Samples in the two forms that detectors take: as sequences, and as feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.fixed_text import fixed_text_vectors, mostly_fixed_vectors, same_keys
from keydyn.keystrokes.long_text import long_text_vectors
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, check_keystrokes
from keydyn.keystrokes.timing import TIMINGS, sequences_of
from keydyn.model import Sequences
from keydyn.model.data.vocabulary import Types


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

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(2, 4))
    >>> samples.kind, len(samples), samples.vectors.shape
    ('fixed text', 8, (8, 21))
    >>> samples.sequences.feature_names, samples.emission
    (('duration', 'tau'), ('lognormal', 'lognormal'))
    >>> len(samples[samples.users == 0])
    4
    """

    index: pd.MultiIndex
    sequences: Sequences
    emission: tuple[str, ...]
    table: pd.DataFrame
    kind: str
    # What a population has made of a single sample, by the population's SHA-256.
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts belong together, whoever made them."""
        n = len(self.index)
        if self.index.names != SAMPLE:
            raise ValueError(f"index must be of {' and '.join(SAMPLE)}, not of {self.index.names}")
        if not n == len(self.sequences) == len(self.table):
            raise ValueError(
                f"there are {n} samples in index, {len(self.sequences)} in sequences and "
                f"{len(self.table)} in table"
            )
        if len(self.emission) != self.sequences.n_features:
            raise ValueError(
                f"emission names {len(self.emission)} families for {self.sequences.n_features} features"
            )

    @classmethod
    def of(
        cls,
        keystrokes: pd.DataFrame,
        sensors: Sequence[str] = (),
        vectors: pd.DataFrame | None = None,
        events: str = "key",
        first: str = "median",
        kind: str | None = None,
    ) -> Samples:
        """From keystrokes in the schema.

        `sensors` are columns used in addition to the timings. `vectors`, indexed by (user, session), are used
        instead of our own if given; otherwise a fixed text has all its times as its vector, other texts their
        descriptive statistics. `kind`, "fixed text" or "long text", says which it is, because a single sample
        always looks fixed; by default it is determined from the keys. Where four fifths of all samples have
        the same keys, the text is fixed, and the vectors of the other samples are missing.
        """
        if kind not in (None, "fixed text", "long text"):
            raise ValueError(f"kind must be 'fixed text' or 'long text', not {kind!r}")
        keystrokes = check_keystrokes(keystrokes)
        _check_sensors(keystrokes, sensors)
        features = sorted(["duration", "tau", *sensors])
        sequences = sequences_of(keystrokes, features, events, first)
        index = pd.MultiIndex.from_tuples(sequences.names or [], names=SAMPLE)
        emission = tuple("lognormal" if name in ("duration", "tau") else "normal" for name in features)
        if vectors is not None:
            absent = ~index.isin(vectors.index)
            if absent.any():
                user, session = index[int(np.argmax(absent))]
                raise ValueError(f"there is no vector for user {user}, session {session}")
            twice = vectors.index.duplicated() & vectors.index.isin(index)
            if twice.any():
                user, session = vectors.index[int(np.argmax(twice))]
                raise ValueError(f"there are two vectors for user {user}, session {session}")
            return cls(index, sequences, emission, vectors.loc[index], "given")
        if kind == "fixed text":
            fixed = fixed_text_vectors(keystrokes, sensors=sensors)
            return cls(index, sequences, emission, fixed, "fixed text")
        if kind is None and (same := same_keys(keystrokes)).any():
            fixed = mostly_fixed_vectors(keystrokes, same, sensors)
            return cls(index, sequences, emission, fixed, "fixed text")
        return cls(index, sequences, emission, long_text_vectors(keystrokes), "long text")

    @classmethod
    def joined(cls, several: Sequence[Samples]) -> Samples:
        """The samples of several, in their order; a `ValueError` if their features differ."""
        if not several:
            raise ValueError("there are no samples")
        sequences = Sequences.concatenate([one.sequences for one in several])
        if len({one.emission for one in several}) > 1 or len({one.kind for one in several}) > 1:
            raise ValueError("samples of different kinds cannot be joined")
        names = [name for one in several for name in one.index.tolist()]
        index = pd.MultiIndex.from_tuples(names, names=SAMPLE)
        if several[0].table.shape[1]:
            table = pd.concat([one.table for one in several])
        else:
            table = pd.DataFrame(index=index)
        return cls(index, sequences, several[0].emission, table, several[0].kind)

    @property
    def users(self) -> Types:
        """The user of each sample."""
        users: Types = self.index.get_level_values("user").to_numpy()
        return users

    @property
    def vectors(self) -> Floats:
        """(n, d) feature vectors, complete; a `ValueError` names the sample that lacks a value."""
        values = self.table.to_numpy(dtype=np.float64)
        wrong = ~np.isfinite(values)
        if wrong.any():
            s, k = (int(place) for place in np.argwhere(wrong)[0])
            user, session = self.index[s]
            problem = "is missing" if np.isnan(values[s, k]) else "is infinite"
            raise ValueError(
                f"user {user}, session {session}: {self.table.columns[k]} {problem}; vectors must be complete"
            )
        return values

    @property
    def numbers(self) -> Integers:
        """The number of each sample within its user, from 0, in the order given."""
        counted = pd.Series(self.users).groupby(self.users, sort=False).cumcount()
        return np.asarray(counted, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, which: Any) -> Samples:
        """Some of the samples, given as a slice, an array of numbers or a boolean array."""
        chosen: Any = which
        if not isinstance(which, slice):
            chosen = np.atleast_1d(np.arange(len(self))[which])
            # Consecutive samples are not copied.
            if len(chosen) and (np.diff(chosen) == 1).all():
                chosen = slice(int(chosen[0]), int(chosen[-1]) + 1)
        return Samples(
            self.index[chosen], self.sequences[chosen], self.emission, self.table.iloc[chosen], self.kind
        )


def check_sensor_names(sensors: Sequence[str]) -> None:
    """`ValueError` if a column of this name can be no sensor."""
    for n, name in enumerate(sensors):
        if name in (*COLUMNS, *TIMINGS) or name in sensors[:n]:
            raise ValueError(
                f"{name!r} is not a sensor: it is one of the schema's columns or timings, or is listed twice"
            )


def _check_sensors(keystrokes: pd.DataFrame, sensors: Sequence[str]) -> None:
    check_sensor_names(sensors)
    for name in sensors:
        if name in keystrokes and not is_numeric_dtype(keystrokes[name]):
            raise ValueError(f"{name!r} is not a sensor: the column does not hold numbers")
