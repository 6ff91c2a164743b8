"""Samples in the two forms that detectors take: sequences and feature vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.schema import COLUMNS, SAMPLE, check_keystrokes
from keydyn.keystrokes.timing import TIMINGS, sequences_of
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import Types

if TYPE_CHECKING:
    import pandas as pd

# The user and the session of each sample.
Names = list[tuple[Hashable, Hashable]]


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Samples of one or more users.

    Attributes
    ----------
    names : the user and the session of each sample, as a list; an index of the two is accepted too
    sequences : the samples as sequences; features in alphabetical order
    emission : the family of each of these features: log-normal for times, normal for sensors
    feature_table : the samples as feature vectors, one row each; None if there are none
    kind : the kind of vectors: "fixed text", "long text" or "given"

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
    # Results computed from a single sample, such as those of a population.
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    # Whether `without_impossible` has judged them. It must do so only once, because the times that it leaves
    # out look like times that were not seen.
    judged: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        if not isinstance(self.names, list):
            index: pd.MultiIndex = self.names
            if index.names != SAMPLE:
                raise ValueError(f"index must be of {' and '.join(SAMPLE)}, not of {index.names}")
            object.__setattr__(self, "names", index.tolist())
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
        """The numbers of samples and keystrokes, and the kind of vectors."""
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
        """Make samples from keystrokes in the schema.

        `sensors` are columns used in addition to the timings. `vectors`, indexed by (user, session), are used
        instead of our own if given; otherwise the vectors are all times of a fixed text, or descriptive
        statistics of other texts. `kind` is "fixed text" or "long text"; by default it is determined from the
        keys, but a single sample always looks fixed. If four fifths of all samples have the same keys, the
        text is fixed, and the vectors of the other samples are missing.
        """
        if kind not in (None, "fixed text", "long text"):
            raise ValueError(f"kind must be 'fixed text' or 'long text', not {kind!r}")
        from keydyn.keystrokes.fixed_text import fixed_text_vectors, mostly_fixed_vectors, same_keys
        from keydyn.keystrokes.long_text import long_text_vectors

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
        """Make samples from keystrokes in the schema, as sequences only; the parameters are those of `of`."""
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
        """Join several `Samples` in their order; a `ValueError` if their features differ."""
        if not several:
            raise ValueError("there are no samples")
        sequences = Sequences.concatenate([one.sequences for one in several])
        if len({one.emission for one in several}) > 1 or len({one.kind for one in several}) > 1:
            raise ValueError("samples of different kinds cannot be joined")
        names = [name for one in several for name in one.names]
        tables = [one.feature_table for one in several if one.feature_table is not None]
        table = None
        if len(tables) == len(several):
            import pandas as pd

            table = pd.concat(tables)
        judged = all(one.judged for one in several)
        return cls(names, sequences, several[0].emission, table, several[0].kind).as_judged(judged)

    def as_judged(self, judged: bool = True) -> Self:
        """Set whether `without_impossible` has judged these samples, and return them."""
        object.__setattr__(self, "judged", judged)
        return self

    @cached_property
    def index(self) -> pd.MultiIndex:
        """The user and the session of each sample."""
        import pandas as pd

        return pd.MultiIndex.from_tuples(self.names, names=SAMPLE)

    @property
    def table(self) -> pd.DataFrame:
        """The feature vector of each sample as a row; without columns if there are none."""
        import pandas as pd

        return pd.DataFrame(index=self.index) if self.feature_table is None else self.feature_table

    @cached_property
    def users(self) -> Types:
        """The user of each sample."""
        labels: list[Any] = [user for user, _ in self.names]
        kinds = set(map(type, labels))
        if kinds == {str}:
            return np.array(labels, dtype=object)
        if kinds == {int} and all(-(2**63) <= user < 2**63 for user in labels):
            return np.array(labels, dtype=np.int64)
        users: Types = self.index.get_level_values("user").to_numpy()
        return users

    @cached_property
    def people(self) -> tuple[Integers, Types]:
        """The number of each sample's user, (n,), and the users, both in the order of first appearance."""
        places: dict[Hashable, int] = {}
        codes = [places.setdefault(user, len(places)) for user in self.users.tolist()]
        first = np.unique(codes, return_index=True)[1]
        return np.array(codes, dtype=np.int64), self.users[first]

    @property
    def vectors(self) -> Floats:
        """The feature vectors, (n, d), without gaps; a `ValueError` names a sample that lacks a value."""
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
        """The number of each sample among those of its user, from 0, in the order given."""
        codes, _ = self.people
        order = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[order], codes[order])
        numbers = np.empty(len(codes), dtype=np.int64)
        numbers[order] = np.arange(len(codes)) - begins
        return numbers

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Samples]:
        """Iterate over single samples; a single sample yields itself, with its cached results."""
        return iter([self]) if len(self) == 1 else (self[n : n + 1] for n in range(len(self)))

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
        some = Samples(names, self.sequences[chosen], self.emission, table, self.kind)
        return some.as_judged(self.judged)

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
        first = Samples(self.names[: len(whole)], Sequences(*parts), self.emission)
        return first.as_judged(self.judged)


def families_of(features: Sequence[str]) -> tuple[str, ...]:
    """The family of distributions of each feature: log-normal for times, normal for sensors."""
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
    """Raise a `ValueError` if a name cannot be that of a sensor, or is listed twice."""
    for n, name in enumerate(sensors):
        if name in (*COLUMNS, *TIMINGS) or name in sensors[:n]:
            raise ValueError(
                f"{name!r} is not a sensor: it is one of the schema's columns or timings, or is listed twice"
            )


def _check_sensors(keystrokes: pd.DataFrame, sensors: Sequence[str]) -> None:
    from pandas.api.types import is_numeric_dtype

    check_sensor_names(sensors)
    for name in sensors:
        if name in keystrokes and not is_numeric_dtype(keystrokes[name]):
            raise ValueError(f"{name!r} is not a sensor: the column does not hold numbers")
