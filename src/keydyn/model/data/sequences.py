"""Ragged sequences as one flat array plus offsets.

Every accepted form of input (a flat array with lengths, a list of arrays, a data frame) is converted to a
`Sequences` here, once. All other code works on flat arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import check_number
from keydyn.model.data.input_forms import (
    as_numbers,
    check_columns,
    check_lengths,
    place_of,
    read_arrays,
    whole_numbers,
)
from keydyn.model.data.vocabulary import MISSING, Types

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of feature vectors and event types, encoded.

    The arrays are checked, owned by the object, and read-only.

    Attributes
    ----------
    X : (N, K) feature values of all sequences, one after the other; NaN where a value is missing
    codes : (N,) index into `event_types`, −1 where the event has no type
    event_types : (m,) the distinct event types, sorted; empty if no events were given
    offsets : (S + 1,) sequence s is rows offsets[s] to offsets[s + 1] − 1
    feature_names : the names of the features, or None
    names : the name of each sequence in the data frame it came from, or None

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import Sequences
    >>> sequences = Sequences.from_arrays(np.ones((5, 1)), events=list("abcab"), lengths=[3, 2])
    >>> len(sequences), sequences.n_events, sequences.event_types.tolist()
    (2, 5, ['a', 'b', 'c'])
    >>> sequences[1].labels().tolist()
    ['a', 'b']
    """

    X: Floats
    codes: Integers
    event_types: Types
    offsets: Integers
    feature_names: tuple[str, ...] | None = None
    names: list[Any] | None = None
    _owned: tuple[Any, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        """Check and copy the arguments; raises `ValueError` if they do not form sequences."""
        X = as_numbers("X", self.X)
        if X.ndim != 2 or X.shape[1] == 0:
            raise ValueError(f"X must be an (N, K) array; its shape is {X.shape}")
        codes, offsets = whole_numbers("codes", self.codes), whole_numbers("offsets", self.offsets)
        types = vocabulary.check_types(self.event_types) if len(self.event_types) else np.array([], dtype=str)
        if len(codes) != len(X):
            raise ValueError(f"there are {len(X)} rows in X and {len(codes)} codes")
        if len(codes) and (codes.min() < MISSING or codes.max() >= len(types)):
            raise ValueError(
                f"codes are numbered 0 to {len(types) - 1}; {MISSING} is an event without a type"
            )
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(X) or (np.diff(offsets) <= 0).any():
            raise ValueError(f"offsets must rise from 0 to the number of rows, {len(X)}")
        features = None if self.feature_names is None else tuple(self.feature_names)
        if features is not None and len(features) != X.shape[1]:
            raise ValueError(f"there are {X.shape[1]} features and {len(features)} feature_names")
        names = None if self.names is None else list(self.names)
        if names is not None and len(names) != len(offsets) - 1:
            raise ValueError(f"there are {len(offsets) - 1} sequences and {len(names)} names")
        object.__setattr__(self, "feature_names", features)
        object.__setattr__(self, "names", names)
        self._take(X, codes, types, offsets)
        self._check_finite()

    @classmethod
    def of_checked(
        cls,
        X: Floats,
        codes: Integers,
        event_types: Types,
        offsets: Integers,
        feature_names: tuple[str, ...] | None,
        names: list[Any] | None = None,
    ) -> Self:
        """Sequences from arrays that were checked already and belong to no other object."""
        made = object.__new__(cls)
        made._take(X, codes, event_types, offsets)
        object.__setattr__(made, "feature_names", feature_names)
        object.__setattr__(made, "names", names)
        return made

    def _take(self, X: Floats, codes: Integers, event_types: Types, offsets: Integers) -> None:
        # Compiled functions expect writeable arrays, though they never write to these.
        owned = (X, codes, offsets)
        object.__setattr__(self, "_owned", owned)
        for name, array in zip(("X", "codes", "offsets"), owned, strict=True):
            object.__setattr__(self, name, _read_only(array))
        object.__setattr__(self, "event_types", _read_only(event_types))

    def _check_finite(self) -> None:
        if not np.isinf(self.X).any():
            return
        row, column = (int(k) for k in np.argwhere(np.isinf(self.X))[0])
        raise ValueError(f"{self.place(row, column)}: the value is infinite (inf); a missing value is NaN")

    def __reduce__(self) -> Any:
        X, codes, offsets = self._owned
        return type(self).of_checked, (X, codes, self.event_types, offsets, self.feature_names, self.names)

    def with_values(self, X: Floats) -> Sequences:
        """The sequences with other values of the same shape; everything else is shared."""
        X = as_numbers("X", X)
        if X.shape != self.X.shape:
            raise ValueError(f"the values must have shape {self.X.shape}, not {X.shape}")
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("extremes", None)
        object.__setattr__(made, "_owned", (X, *self._owned[1:]))
        object.__setattr__(made, "X", _read_only(X))
        made._check_finite()
        return made

    @property
    def engine_arrays(self) -> tuple[Floats, Integers, Integers]:
        """X, codes and offsets as writeable arrays for the engine, which only reads them."""
        X, codes, offsets = self._owned
        return X, codes, offsets

    @classmethod
    def from_arrays(cls, X: Any, events: Any = None, lengths: Given = None) -> Sequences:
        """Encode a flat (N, K) array with `lengths`, or a list of (n_i, K) arrays.

        `events` has the same form as `X`: one flat array, or a list of arrays. Without `lengths` a flat
        array is one sequence.
        """
        return as_sequences(X, events, lengths)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        features: Sequence[str],
        event: str | None = None,
        sequence: str | Sequence[str] | None = None,
    ) -> Sequences:
        """Encode a data frame with one row per event.

        `features` names the columns of values, `event` the column of event types, and `sequence` the column
        or columns that identify sequences. Sequences are in order of first appearance, their rows in the
        frame's order; rows of a sequence need not be contiguous.
        """
        features = [features] if isinstance(features, str) else list(features)
        keys = [] if sequence is None else [sequence] if isinstance(sequence, str) else list(sequence)
        check_columns(frame, [*features, *([event] if event is not None else []), *keys])
        if not features:
            raise ValueError("features is empty: name at least one column")
        lengths: NDArray[Any] = np.array([len(frame)])
        names = None
        if keys:
            for key in keys:
                if frame[key].isna().any():
                    row = int(np.argmax(frame[key].isna().to_numpy()))
                    raise ValueError(f"row {row}, column {key!r}: the sequence it belongs to is missing")
            groups = frame.groupby(keys, sort=False, observed=True)
            number = groups.ngroup().to_numpy()
            frame = frame.iloc[np.argsort(number, kind="stable")]
            lengths = np.bincount(number)
            first = frame[keys].iloc[np.concatenate([[0], np.cumsum(lengths)[:-1]])]
            names = list(first.itertuples(index=False, name=None))
            if isinstance(sequence, str):
                names = [name[0] for name in names]
        events = None if event is None else frame[event].to_numpy()
        encoded = as_sequences(frame[features], events, lengths)
        X, codes, offsets = encoded.engine_arrays
        return cls.of_checked(X, codes, encoded.event_types, offsets, tuple(features), names)

    @classmethod
    def concatenate(cls, parts: Sequence[Sequences]) -> Sequences:
        """All sequences of several `Sequences`, with a joint vocabulary."""
        if len({part.n_features for part in parts}) > 1:
            raise ValueError(
                f"these have different numbers of features: {sorted({p.n_features for p in parts})}"
            )
        named = {part.feature_names for part in parts if part.feature_names is not None}
        if len(named) > 1:
            raise ValueError(f"these have different features: {' and '.join(map(str, sorted(named)))}")
        types = np.array([], dtype=str)
        for part in parts:
            types = vocabulary.union(types, part.event_types)
        types = np.sort(types)
        codes = []
        for part in parts:
            table = vocabulary.translation(part.event_types, types)
            table[MISSING] = MISSING
            codes.append(table[part.codes])
        names = [name for part in parts for name in part.names or []]
        kinds = {type(part) for part in parts}
        kind = kinds.pop() if len(kinds) == 1 else Sequences
        return kind.of_checked(
            np.concatenate([part.X for part in parts]),
            np.concatenate(codes),
            types,
            np.concatenate([[0], np.cumsum(np.concatenate([part.lengths for part in parts]))]),
            named.pop() if named else None,
            names if all(part.names is not None for part in parts) else None,
        )

    @cached_property
    def lengths(self) -> Integers:
        """The number of events in each sequence, (S,)."""
        lengths: Integers = _read_only(self.offsets[1:] - self.offsets[:-1])
        return lengths

    @cached_property
    def longest(self) -> int:
        """The number of events in the longest sequence."""
        return int(self.lengths.max(initial=0))

    @cached_property
    def extremes(self) -> Floats:
        """The smallest and the largest value of each feature, (2, K); NaN if it has no value."""
        return np.array([np.fmin.reduce(self.X, axis=0), np.fmax.reduce(self.X, axis=0)])

    @property
    def n_events(self) -> int:
        """The total number of events."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Sequences]:
        return (self[s] for s in range(len(self)))

    def __getitem__(self, which: Any) -> Sequences:
        """The sequences selected by a number, a slice, or an array of numbers or truth values.

        A single sequence or a contiguous slice is not copied.
        """
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            number = range(len(self))[which]
            return self._run(number, number + 1)
        if isinstance(which, slice) and which.step in (None, 1):
            first, end, _ = which.indices(len(self))
            return self._run(first, max(first, end))
        chosen = np.atleast_1d(np.arange(len(self))[which])
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        names = None if self.names is None else [self.names[s] for s in chosen]
        types, features = self.event_types, self.feature_names
        return self.of_checked(self.X[rows], self.codes[rows], types, offsets, features, names)

    def _run(self, first: int, end: int) -> Sequences:
        """The sequences from `first` up to, but not including, `end`."""
        begin, stop = self.offsets[first], self.offsets[end]
        X, codes, offsets = self._owned
        return self.of_checked(
            X[begin:stop],
            codes[begin:stop],
            self.event_types,
            offsets[first : end + 1] - begin,
            self.feature_names,
            None if self.names is None else self.names[first:end],
        )

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        """Refuse conversion to an array: sequences differ in length and have event types."""
        raise TypeError(
            "a Sequences is not an array: its attribute X has the values of all sequences, and with_values "
            "takes others, such as scaled ones"
        )

    def __repr__(self) -> str:
        return (
            f"Sequences({len(self)} sequences, {self.n_events} events, {self.n_features} features, "
            f"{len(self.event_types)} event types)"
        )

    def without_events(self) -> Sequences:
        """The sequences with every event type missing."""
        X, codes, offsets = self._owned
        codes = np.full_like(codes, MISSING)
        return Sequences.of_checked(X, codes, self.event_types[:0], offsets, self.feature_names, self.names)

    @property
    def groups(self) -> Types:
        """The first part of each sequence's name, (S,): the user, for sequences from `sequences_of`.

        They serve as the labels for a classifier or the groups of a cross-validation. Not to be confused
        with `labels`, which has event types.
        """
        if self.names is None:
            raise ValueError("these sequences have no names: make them with from_frame or sequences_of")
        first = [name[0] if isinstance(name, tuple) else name for name in self.names]
        return np.array(first, dtype=None if len(set(map(type, first))) == 1 else object)

    def labels(self) -> Types:
        """The event type of each event, (N,); an array of objects with None if some events have no type."""
        if (self.codes == MISSING).any():
            types = np.append(self.event_types.astype(object), [None])
            return types[self.codes]
        labels: Types = self.event_types[self.codes]
        return labels

    def place(self, row: int, column: int | None = None) -> str:
        """A description of the place of a value, for messages."""
        text = place_of(self.offsets, row)
        if column is not None:
            name = f" ({self.feature_names[column]!r})" if self.feature_names else ""
            text += f", column {column}{name}"
        return text


def as_sequences(X: Any, events: Any = None, lengths: Given = None) -> Sequences:
    """Any accepted form of input as `Sequences`; raises a `ValueError` that names the place of an error."""
    if isinstance(X, Sequences):
        if events is not None or lengths is not None:
            raise ValueError("X is a Sequences, which holds its events and lengths: do not give them again")
        return X
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(item, Sequences) for item in X):
        if events is not None or lengths is not None:
            raise ValueError(
                "X is a list of Sequences, which hold their events and lengths: do not give them again"
            )
        return Sequences.concatenate(X)
    sequences = Sequences.of_checked(*read_arrays(X, events, lengths))
    sequences._check_finite()
    return sequences


def to_draw(n_features: int, n_events: int, events: Any, lengths: Given) -> Sequences:
    """Sequences without values, of the requested lengths, with the given event types if any."""
    if events is None:
        total = check_number("n_events", n_events) if lengths is None else int(check_lengths(lengths).sum())
        return as_sequences(np.full((total, n_features), np.nan), None, lengths)
    if lengths is None and isinstance(events, (list, tuple)) and len(events) and np.ndim(events[0]) == 1:
        return as_sequences([np.full((len(e), n_features), np.nan) for e in events], events)
    return as_sequences(np.full((len(events), n_features), np.nan), events, lengths)


def check_weights(sample_weight: Given, n_sequences: int) -> Floats:
    """The weights of sequences, checked to be finite, not negative and not all zero; ones if None."""
    if sample_weight is None:
        return np.ones(n_sequences)
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n_sequences,):
        raise ValueError(
            f"sample_weight must be one number per sequence: {n_sequences} sequences, shape {weights.shape}"
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        s = int(np.argmax(bad))
        raise ValueError(f"sample_weight of sequence {s} is {weights[s]}; it must be finite and not negative")
    if not weights.any():
        raise ValueError("every sample_weight is zero: there is nothing to fit")
    return weights


def _read_only(array: Any) -> Any:
    """A view of the array that cannot be written to."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
