"""Contexts: functions of the events so far that choose the tables for the next event.

A context has one row of parameters for each of its values, one for "none yet", and one that pools them all
and is used for values that no training event had.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import is_whole
from keydyn.model.data.input_forms import as_numbers, whole_numbers
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import MISSING, Types
from keydyn.short_repr import short_repr


@dataclass(frozen=True)
class Past:
    """The past of each of N events, within its sequence and without the event itself.

    Attributes
    ----------
    values : (N, L, K) the L previous events, the latest last; NaN where a value is missing or there was no
        event yet
    events : (N, L) their event types; None where there is none
    last : (N, K) the last value seen of each feature, however long ago; NaN if none was seen yet
    begun : (N,) whether there was a previous event at all

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
    begun: Truths

    __repr__ = short_repr

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


def _last_seen(X: Floats, first: Integers) -> Floats:
    """The last value of each feature before each event in its sequence, which begins at row `first`."""
    place = np.arange(len(X))[:, None]
    newest = np.maximum.accumulate(np.where(np.isnan(X), -1, place), axis=0)
    before = np.full(X.shape, -1)
    before[1:] = newest[:-1]
    seen = before >= first[:, None]
    return np.where(seen, np.take_along_axis(X, np.maximum(before, 0), axis=0), np.nan)


Function = Callable[[Past], Any]


@dataclass(frozen=True)
class LearntContext(ABC):
    """A learnt context, which assigns a table to each event: its values, then "none yet", then the pool."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows that can be learnt, without the pooled one."""

    @abstractmethod
    def rows(self, past: Past) -> Integers:
        """The row of each event, `n_rows` if its context has no row."""

    def tables(self, past: Past) -> Integers:
        """`rows`, checked, because a caller's own context may name a table that does not exist."""
        rows = whole_numbers("the rows of a context", self.rows(past))
        if len(rows) != len(past.last) or (len(rows) and (rows.min() < 0 or rows.max() >= self.n_tables)):
            raise ValueError(
                f"a {type(self).__name__} must name one of its {self.n_tables} tables for each of "
                f"{len(past.last)} events"
            )
        return rows

    @abstractmethod
    def names(self) -> list[str]:
        """Readable names of the tables; the pooled one is the last."""

    @property
    def n_tables(self) -> int:
        """The number of all rows, including the pooled one."""
        return self.n_rows + 1


# The contexts of emissions and of transitions.
Contexts = tuple[LearntContext, LearntContext]


@dataclass(frozen=True)
class NoContext(LearntContext):
    """The trivial context: one row for all events, including the first of a sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import ContextHMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = ContextHMM(emission_context=2, transition_context=None).fit(x)
    >>> model.transition_context_
    NoContext()
    """

    @property
    def n_rows(self) -> int:
        return 1

    @property
    def n_tables(self) -> int:
        return 1

    def rows(self, past: Past) -> Integers:
        return np.zeros(len(past.last), dtype=np.int64)

    def names(self) -> list[str]:
        return ["any"]


@dataclass(frozen=True)
class Bins(LearntContext):
    """A context that bins the last value seen of one feature; a value on an edge belongs to the lower bin.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import ContextHMM
    >>> from keydyn.model import Bins
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = ContextHMM(emission_context=Bins((150.0,))).fit(x)
    >>> model.emission_context_.names()
    ['up to 150', 'above 150', 'none yet', 'pooled']
    """

    edges: tuple[float, ...]
    feature: int = 0

    def __post_init__(self) -> None:
        edges = as_numbers("edges", self.edges)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(f"edges must be finite and rising, not {self.edges!r}")
        if not is_whole(self.feature) or self.feature < 0:
            raise ValueError(f"feature must be the number of a feature, not {self.feature!r}")

    @property
    def n_rows(self) -> int:
        return len(self.edges) + 2

    def rows(self, past: Past) -> Integers:
        values = past.last[:, self.feature]
        rows = np.searchsorted(np.array(self.edges, dtype=np.float64), values, side="left")
        return np.where(np.isnan(values), len(self.edges) + 1, rows).astype(np.int64)

    def names(self) -> list[str]:
        bounds = [f"{edge:g}" for edge in self.edges]
        between = [f"{a} to {b}" for a, b in pairwise(bounds)]
        bins = [f"up to {bounds[0]}", *between, f"above {bounds[-1]}"] if bounds else ["any value"]
        return [*bins, "none yet", "pooled"]


@dataclass(frozen=True)
class Labels(LearntContext):
    """A context given by a function that labels the past; `labels` are the labels it returned in fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import ContextHMM
    >>> def after_a_pause(past):
    ...     return ["yes" if value > 200.0 else "no" for value in past.last[:, 0]]
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = ContextHMM(emission_context=after_a_pause, transition_context=1).fit(x)
    >>> model.emission_context_.labels
    ('no', 'yes')
    """

    function: Function
    labels: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        return len(self.labels) + 1

    def rows(self, past: Past) -> Integers:
        codes, types = named(self.function, past)
        known = vocabulary.places_of(np.array(self.labels)) if self.labels else {}
        none, unseen = len(self.labels), len(self.labels) + 1
        table = np.array([known.get(label, unseen) for label in types.tolist()] + [none], dtype=np.int64)
        return table[codes]

    def names(self) -> list[str]:
        return [*map(str, self.labels), "none yet", "pooled"]


def check_context(parameter: str, given: Any) -> None:
    """Raise `ValueError` if a constructor's parameter does not describe a context."""
    known = (
        given is None
        or isinstance(given, LearntContext)
        or callable(given)
        or (is_whole(given) and given >= 1)
    )
    if not known:
        raise ValueError(f"{parameter} must be a number of bins, None, a Bins or a callable, not {given!r}")


def learnt(given: Any, past: Past, X: Floats, weights: Floats, feature: int) -> LearntContext:
    """The context that a constructor's parameter describes, learnt from the training events."""
    if given is None or (is_whole(given) and given == 1):
        return NoContext()
    if isinstance(given, (NoContext, Bins)):
        return given
    if is_whole(given):
        return Bins(quantile_edges(X[:, feature], weights, int(given)), feature)
    function = given.function if isinstance(given, Labels) else given
    return Labels(function, tuple(named(function, past)[1].tolist()))


def named(function: Function, past: Past) -> tuple[Integers, NDArray[Any]]:
    """A function's labels as codes and distinct labels; the first event of a sequence has none (−1)."""
    labels = vocabulary.as_labels(function(past))
    if len(labels) != len(past.begun):
        raise ValueError(f"the context function gave {len(labels)} labels for {len(past.begun)} events")
    if labels.dtype.kind == "b":
        labels = labels.astype(np.int64)
    given = labels.astype(object)
    given[~past.begun] = None
    try:
        codes, types = vocabulary.encode(given)
    except ValueError as error:
        raise ValueError(f"the context function's answer is not a context: {error}") from None
    return np.where(past.begun, codes, MISSING), types


def quantile_edges(values: Floats, weights: Floats, n_bins: int) -> tuple[float, ...]:
    """Edges between `n_bins` bins of equal weight; fewer if many values are equal.

    Each edge is a value that occurred: the smallest with at least its share of the weight up to it.
    """
    present = ~np.isnan(values)
    order = np.argsort(values[present], kind="stable")
    ordered = values[present][order]
    below = np.cumsum(weights[present][order])
    shares = np.arange(1, n_bins) / n_bins
    edges = np.unique(ordered[np.searchsorted(below, shares * below[-1], side="left")])
    return tuple(edges[edges < ordered[-1]].tolist())
