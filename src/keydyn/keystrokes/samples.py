"""Samples in the two forms that detectors take: as sequences, and as feature vectors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.long_text import long_text_vectors
from keydyn.keystrokes.schema import (
    COLUMNS,
    SAMPLE,
    check_keystrokes,
    sample_lengths,
    sample_of_row,
    sample_starts,
)
from keydyn.keystrokes.timing import INTERVALS, TIMINGS, sequences_of, timing_features
from keydyn.model import Sequences
from keydyn.model.data.vocabulary import Types

# The user and the session of each sample.
Names = list[tuple[Hashable, Hashable]]


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


# A text is fixed if at least this share of all samples have the same keys: a few were mistyped.
MOST = 0.8


def same_keys(keystrokes: pd.DataFrame) -> NDArray[np.bool_]:
    """Which samples have the keys that most have, in order; none if these are less than four fifths."""
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
    """One row per sample, indexed by (user, session): each timing and sensor at each key.

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
    """The vectors of the samples with the same keys, by `same_keys`; those of the others are missing."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Samples of one or more users.

    Attributes
    ----------
    names : the user and the session of each sample, as a list; an index of the two is accepted too
    sequences : the samples as sequences; features in alphabetical order
    emission : the family of each of these features: log-normal for times, normal for sensors
    feature_table : the samples as feature vectors, one row each; None if there are none
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

    names: Names
    sequences: Sequences
    emission: tuple[str, ...]
    feature_table: pd.DataFrame | None = None
    kind: str = "given"
    # What has been computed from a single sample, such as what a population makes of it.
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        if isinstance(self.names, pd.MultiIndex):
            if self.names.names != SAMPLE:
                raise ValueError(f"index must be of {' and '.join(SAMPLE)}, not of {self.names.names}")
            object.__setattr__(self, "names", self.names.tolist())
        n = len(self.names)
        rows = n if self.feature_table is None else len(self.feature_table)
        if not n == len(self.sequences) == rows:
            raise ValueError(
                f"there are {n} samples in index, {len(self.sequences)} in sequences and {rows} in table"
            )
        if len(self.emission) != self.sequences.n_features:
            raise ValueError(
                f"emission names {len(self.emission)} families for {self.sequences.n_features} features"
            )

    def __repr__(self) -> str:
        """How much was typed, and which vectors there are."""
        return f"<Samples: {len(self)} with {self.sequences.n_events} keystrokes, vectors: {self.kind}>"

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
        plain = cls._of_checked(keystrokes, sensors, events, first)

        def with_table(table: pd.DataFrame, kind: str) -> Samples:
            return replace(plain, feature_table=table, kind=kind)

        if vectors is not None:
            return with_table(_chosen_vectors(vectors, plain.index), "given")
        if kind == "fixed text":
            return with_table(fixed_text_vectors(keystrokes, sensors=sensors), "fixed text")
        if kind is None and (same := same_keys(keystrokes)).any():
            return with_table(mostly_fixed_vectors(keystrokes, same, sensors), "fixed text")
        return with_table(long_text_vectors(keystrokes), "long text")

    @classmethod
    def without_vectors(
        cls, keystrokes: pd.DataFrame, sensors: Sequence[str] = (), events: str = "key", first: str = "median"
    ) -> Samples:
        """From keystrokes in the schema, as sequences only; the parameters are those of `of`."""
        return cls._of_checked(check_keystrokes(keystrokes), sensors, events, first)

    @classmethod
    def _of_checked(
        cls, keystrokes: pd.DataFrame, sensors: Sequence[str], events: str, first: str
    ) -> Samples:
        _check_sensors(keystrokes, sensors)
        features = sorted(["duration", "tau", *sensors])
        sequences = sequences_of(keystrokes, features, events, first)
        return cls(sequences.names or [], sequences, families_of(features))

    @classmethod
    def joined(cls, several: Sequence[Samples]) -> Samples:
        """Several `Samples` in one, in their order; a `ValueError` if their features differ."""
        if not several:
            raise ValueError("there are no samples")
        sequences = Sequences.concatenate([one.sequences for one in several])
        if len({one.emission for one in several}) > 1 or len({one.kind for one in several}) > 1:
            raise ValueError("samples of different kinds cannot be joined")
        names = [name for one in several for name in one.names]
        tables = [one.feature_table for one in several if one.feature_table is not None]
        table = pd.concat(tables) if len(tables) == len(several) else None
        return cls(names, sequences, several[0].emission, table, several[0].kind)

    @cached_property
    def index(self) -> pd.MultiIndex:
        """The user and the session of each sample."""
        return pd.MultiIndex.from_tuples(self.names, names=SAMPLE)

    @property
    def table(self) -> pd.DataFrame:
        """The feature vector of each sample as a row; without columns if there are none."""
        return pd.DataFrame(index=self.index) if self.feature_table is None else self.feature_table

    @cached_property
    def users(self) -> Types:
        """The user of each sample."""
        labels = [user for user, _ in self.names]
        if set(map(type, labels)) == {str}:
            return np.array(labels, dtype=object)
        users: Types = self.index.get_level_values("user").to_numpy()
        return users

    @property
    def vectors(self) -> Floats:
        """(n, d) feature vectors, complete; a `ValueError` names the sample that lacks a value."""
        values = self.table.to_numpy(dtype=np.float64)
        wrong = ~np.isfinite(values)
        if wrong.any():
            s, k = (int(place) for place in np.argwhere(wrong)[0])
            user, session = self.names[s]
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
        return len(self.names)

    def __getitem__(self, which: Any) -> Samples:
        """Some of the samples, given as a slice, an array of numbers or a boolean array."""
        chosen: Any = which
        if not isinstance(which, slice):
            chosen = np.atleast_1d(np.arange(len(self))[which])
            # Consecutive samples are not copied.
            if len(chosen) and (np.diff(chosen) == 1).all():
                chosen = slice(int(chosen[0]), int(chosen[-1]) + 1)
        names = self.names[chosen] if isinstance(chosen, slice) else [self.names[n] for n in chosen.tolist()]
        table = None if self.feature_table is None else self.feature_table.iloc[chosen]
        return Samples(names, self.sequences[chosen], self.emission, table, self.kind)

    def first_keys(self, n: int | None) -> Samples:
        """The first n keystrokes of all samples together, without vectors; all samples if n is None.

        Examples
        --------
        >>> from keydyn.datasets import make_typists
        >>> from keydyn.keystrokes import Samples
        >>> Samples.of(make_typists(1, 4)).first_keys(30).sequences.lengths.tolist()
        [11, 11, 8]
        """
        if n is None or n >= self.sequences.n_events:
            return self
        if n < 1:
            raise ValueError(f"the number of keystrokes must be 1 or more, not {n}")
        whole = self[: int(np.searchsorted(self.sequences.offsets, n))].sequences
        offsets = np.minimum(whole.offsets, n)
        parts = whole.X[:n], whole.codes[:n], whole.event_types, offsets, whole.feature_names, whole.names
        return Samples(self.names[: len(whole)], Sequences(*parts), self.emission)


def families_of(features: Sequence[str]) -> tuple[str, ...]:
    """The family that each feature is modelled by: log-normal for times, normal for sensors."""
    return tuple("lognormal" if name in ("duration", "tau") else "normal" for name in features)


def _chosen_vectors(vectors: pd.DataFrame, index: pd.MultiIndex) -> pd.DataFrame:
    """The given vector of each sample; a `ValueError` names a sample that has none, or two."""
    absent = ~index.isin(vectors.index)
    if absent.any():
        user, session = index[int(np.argmax(absent))]
        raise ValueError(f"there is no vector for user {user}, session {session}")
    twice = vectors.index.duplicated() & vectors.index.isin(index)
    if twice.any():
        user, session = vectors.index[int(np.argmax(twice))]
        raise ValueError(f"there are two vectors for user {user}, session {session}")
    return vectors.loc[index]


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
