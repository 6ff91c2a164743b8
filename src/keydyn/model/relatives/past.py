"""What was seen before each event: all that a relative's conditions may depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import Types


@dataclass(frozen=True)
class Past:
    """What came before each of N events of the same sequence, the event itself excluded.

    Attributes
    ----------
    values : (N, L, K) the L events before, the newest last; NaN where a value is missing or there was no
        event yet
    events : (N, L) their event types; None where there is none
    last : (N, K) the last value seen of each feature, however long ago; NaN where none was seen yet
    begun : (N,) whether there was an event before at all

    Examples
    --------
    >>> from keydyn import Sequences
    >>> from keydyn.model import Past
    >>> past = Past.of(Sequences.from_arrays([[120.0], [90.0], [300.0]]), memory=1)
    >>> past.last[:, 0].tolist(), past.begun.tolist()
    ([nan, 120.0, 90.0], [False, True, True])
    """

    values: Floats
    events: Types
    last: Floats
    begun: NDArray[np.bool_]

    @classmethod
    def of(cls, sequences: Sequences, memory: int) -> Past:
        """The past of every event of some sequences; `memory` is L."""
        n_events, n_features = sequences.X.shape
        first = np.repeat(sequences.offsets[:-1], sequences.lengths)
        values = np.full((n_events, memory, n_features), np.nan)
        events = np.full((n_events, memory), None, dtype=object)
        labels = sequences.labels() if memory else events
        for back in range(1, memory + 1):
            rows = np.flatnonzero(np.arange(n_events) - back >= first)
            values[rows, -back] = sequences.X[rows - back]
            events[rows, -back] = labels[rows - back]
        return cls(values, events, _last_seen(sequences.X, first), np.arange(n_events) > first)

    @classmethod
    def none(cls, n: int, memory: int, n_features: int) -> Past:
        """The past of n events that are the first of their sequences."""
        return cls(
            np.full((n, memory, n_features), np.nan),
            np.full((n, memory), None, dtype=object),
            np.full((n, n_features), np.nan),
            np.zeros(n, dtype=bool),
        )

    def at(self, rows: Integers) -> Past:
        """The past of some of the events."""
        return Past(self.values[rows], self.events[rows], self.last[rows], self.begun[rows])

    def after(self, x: Floats, events: Types) -> Past:
        """The past of the events that follow, once these have been seen: `x` (N, K), `events` (N,)."""
        memory = self.values.shape[1]
        return Past(
            np.concatenate([self.values, x[:, None]], axis=1)[:, 1:] if memory else self.values,
            np.concatenate([self.events, events[:, None]], axis=1)[:, 1:] if memory else self.events,
            np.where(np.isnan(x), self.last, x),
            np.ones(len(x), dtype=bool),
        )


def _last_seen(X: Floats, first: Integers) -> Floats:
    """The last value before each event, of each feature, in its sequence; `first` is where that begins."""
    place = np.arange(len(X))[:, None]
    newest = np.maximum.accumulate(np.where(np.isnan(X), -1, place), axis=0)
    before = np.full(X.shape, -1)
    before[1:] = newest[:-1]
    seen = before >= first[:, None]
    return np.where(seen, np.take_along_axis(X, np.maximum(before, 0), axis=0), np.nan)
