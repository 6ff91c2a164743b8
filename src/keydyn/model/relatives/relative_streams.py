"""One event at a time under a relative, for one stream or many, in the log domain.

A stream remembers the last values seen and as many events as a context looks back; time and memory for an
event do not depend on how many came before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.files import truth
from keydyn.model.data import vocabulary
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.data.settings import check_number
from keydyn.model.data.vocabulary import MISSING
from keydyn.model.families.family import not_a_value
from keydyn.model.relatives.contexts import Contexts, Past
from keydyn.model.theta.lattice import log_densities
from keydyn.model.watch.filter_bank import check_rows
from keydyn.model.watch.online_filters import (
    STATE_VERSION,
    OneStream,
    checked_state,
    consistent,
    numbers,
    plain_numbers,
)


class StreamModel(NamedTuple):
    """What streams need of a relative; `labelled` says whether they take labels."""

    theta: Any
    contexts: Contexts
    memory: int
    density_floor: float | None
    fingerprint: str
    labelled: bool


class RelativeStreams:
    """Many streams that advance together or apart, under one model.

    Attributes
    ----------
    n_events : (B,) events seen in each stream
    log_likelihood : (B,) ln P of each stream so far
    """

    def __init__(self, model: StreamModel, n_streams: int) -> None:
        check_number("n_streams", n_streams)
        self._theta, self._contexts, memory, self._floor, self._fingerprint, self._labelled = model
        self._past = Past.none(n_streams, memory, len(self._theta.emission))
        self._log_filtered = np.zeros((n_streams, len(self._theta.startprob)))
        self.n_events = np.zeros(n_streams, dtype=np.int64)
        self.log_likelihood = np.zeros(n_streams)

    def __len__(self) -> int:
        return len(self.n_events)

    @property
    def proba(self) -> Floats:
        """Probability of each state in each stream now, (B, M); before its first event the start."""
        impossible = np.flatnonzero(np.isneginf(self.log_likelihood))
        if len(impossible):
            raise ValueError(
                f"the events of stream {impossible[0]} so far have probability zero under the model"
            )
        probabilities: Floats = np.exp(self._log_filtered)
        probabilities[self.n_events == 0] = self._theta.startprob
        return probabilities

    def update(
        self, x: ArrayLike, events: Any = None, streams: Given = None, *, labels: Any = None
    ) -> Floats:
        """One event in each of some streams (all of them unless named): ln P(x_n | x_1..n−1) of each.

        `x` is (B, K); `events` and `labels` are one per stream, for models that look at them; `streams` the
        distinct numbers of the streams.
        """
        which = np.arange(len(self)) if streams is None else check_rows(streams, len(self), "stream")
        values = as_numbers("x", x)
        self._check(values, which)
        kinds = (
            np.full(len(which), None, dtype=object) if events is None else _labels("events", events, which)
        )
        if self._past.events.shape[1]:
            # What is no event type must not be remembered: the next event would be refused for it.
            vocabulary.encode(kinds)
        past = self._past.at(which)
        rows, steps = (context.tables(past) for context in self._contexts)
        tables = self._theta.tables_for(past.last)
        log_density = log_densities(tables, values, rows, self._floor)
        factor = self._theta.log_factor(self._states_named(labels, which))
        if factor is not None:
            log_density = log_density + factor
        with np.errstate(divide="ignore"):
            start, transmat = np.log(tables.startprob), np.log(tables.transmat[steps])
        # The forward step, in the log domain.
        onward = np.logaddexp.reduce(self._log_filtered[which, :, None] + transmat, axis=1)
        joint = np.where(past.begun[:, None], onward, start) + log_density
        increments: Floats = np.logaddexp.reduce(joint, axis=1)
        possible = increments[:, None] > -np.inf
        self._log_filtered[which] = np.subtract(joint, increments[:, None], out=joint, where=possible)
        after = past.after(values, kinds)
        for name in ("values", "events", "last", "begun"):
            getattr(self._past, name)[which] = getattr(after, name)
        self.n_events[which] += 1
        self.log_likelihood[which] += increments
        return increments

    def state(self) -> dict[str, Any]:
        """All that is needed to resume later, as plain values that JSON can hold."""
        return {
            "version": STATE_VERSION,
            "model": self._fingerprint,
            "labelled": self._labelled,
            "log_filtered": plain_numbers(self._log_filtered),
            "values": plain_numbers(self._past.values),
            "events": self._past.events.tolist(),
            "last": plain_numbers(self._past.last),
            "n_events": self.n_events.tolist(),
            "log_likelihood": plain_numbers(self.log_likelihood),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a `state()` of the same model; a `ValueError` says what does not fit."""
        own = {"labelled": truth, "values": numbers(np.nan), "events": _types, "last": numbers(np.nan)}
        found = checked_state(state, own, self._fingerprint)
        if found["labelled"] is not self._labelled:
            raise ValueError("the state belongs to another model")
        log_filtered, log_likelihood = found["log_filtered"], found["log_likelihood"]
        values, last, events, n_events = (found[name] for name in ("values", "last", "events", "n_events"))
        n, memory, n_features = len(n_events), *self._past.values.shape[1:]
        fits = (
            n > 0 and log_likelihood.shape == (n,) and log_filtered.shape == (n, len(self._theta.startprob))
        )
        fits = fits and values.size == n * memory * n_features and last.shape == (n, n_features)
        if not fits or events.size != n * memory:
            raise ValueError("the state's parts do not fit each other or the model")
        right = consistent(log_filtered, log_likelihood, n_events)
        seen = (values.reshape(-1, n_features), last)
        outside = [e.distribution.outside(x[:, k]) for k, e in enumerate(self._theta.emission) for x in seen]
        if not right.all() or any(bad.any() for bad in outside) or any(np.isinf(x).any() for x in seen):
            raise ValueError("the state has values out of range")
        shape = (n, memory)
        self._past = Past(values.reshape(*shape, n_features), events.reshape(shape), last, n_events > 0)
        self._log_filtered, self.n_events, self.log_likelihood = log_filtered, n_events, log_likelihood

    def _states_named(self, labels: Any, which: Integers) -> Integers | None:
        """The state that each stream's label names, −1 for none; None where streams have no labels."""
        if not self._labelled:
            if labels is not None:
                raise ValueError("these streams have no labels: ask for online(labelled=True)")
            return None
        given = [None] * len(which) if labels is None else _labels("labels", labels, which).tolist()
        states = np.full(len(which), MISSING, dtype=np.int64)
        for b, label in enumerate(given):
            if label is not None and not (isinstance(label, float) and np.isnan(label)):
                if label not in self._theta.names:
                    raise ValueError(f"stream {which[b]}: label {label!r} names no state")
                states[b] = self._theta.names.index(label)
        return states

    def _check(self, values: Floats, which: Integers) -> None:
        shape = (len(which), len(self._theta.emission))
        if values.shape != shape:
            raise ValueError(f"x must have shape {shape}, one row per stream, not {values.shape}")
        if len(np.unique(which)) < len(which):
            raise ValueError("a stream is named twice; one event each in a call")
        for k, emission in enumerate(self._theta.emission):
            bad = emission.distribution.outside(values[:, k]) | np.isinf(values[:, k])
            if bad.any():
                row = int(np.argmax(bad))
                place = f"stream {which[row]}, column {k}"
                raise not_a_value(place, values[row, k], emission.distribution)


class RelativeStream(OneStream):
    """One stream: `update(x)` gives ln P(x_n | x_1..n−1), `proba` the states' probabilities now."""

    def update(self, x: ArrayLike, event: Any = None, *, label: Any = None) -> float:
        """Take the next event: its feature values, and its type or label where the model looks at them."""
        events, labels = np.empty(1, dtype=object), np.empty(1, dtype=object)
        events[0], labels[0] = event, label
        values = np.atleast_2d(as_numbers("x", x))
        return float(self._streams.update(values, events, labels=None if label is None else labels)[0])


def _labels(name: str, given: Any, which: Integers) -> Any:
    labels = vocabulary.as_labels(given).astype(object)
    if len(labels) != len(which):
        raise ValueError(f"{name} must be one per stream: {len(which)} streams, {len(labels)} {name}")
    return labels


def _types(name: str, nested: Any) -> Any:
    """A field of event types in lists."""
    events = np.array(nested, dtype=object)
    vocabulary.encode(events.ravel())
    return events
