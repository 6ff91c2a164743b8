"""One event at a time: the forward recursion as an object, for one stream or many.

Time and memory for an event do not depend on how many came before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.label_codes import Labels, translations
from keydyn.model.data.settings import is_whole
from keydyn.model.theta.parameters import Parameters
from keydyn.model.watch import online_state
from keydyn.model.watch.filter_bank import FilterBank
from keydyn.model.watch.online_kernels import update_one
from keydyn.model.watch.online_tables import Tables

FLOAT = np.dtype(np.float64)


class OnlineFilters:
    """Many streams that advance together or apart, under one model."""

    def __init__(
        self,
        parameters: Parameters,
        n_streams: int,
        density_floor: float | None,
        reject_unknown: bool,
        fingerprint: str,
    ) -> None:
        if not is_whole(n_streams) or n_streams < 1:
            raise ValueError(f"n_streams must be a whole number, 1 or more, not {n_streams!r}")
        self._parameters = parameters
        self._reject_unknown = reject_unknown and not vocabulary.is_single(parameters.event_types)
        self._fingerprint = fingerprint
        self._labels = Labels(parameters.event_types)
        self._bank = self._fresh(Tables.of([parameters], [density_floor], for_many=n_streams > 1), n_streams)

    def __len__(self) -> int:
        return len(self._bank)

    @property
    def n_events(self) -> Integers:
        """Events seen in each stream, (B,)."""
        return self._bank.counts.astype(np.int64)

    @property
    def log_likelihood(self) -> Floats:
        """ln P of each stream so far, (B,)."""
        return self._bank.totals.copy()

    @property
    def proba(self) -> Floats:
        """Probability of each state in each stream now, (B, M); before its first event the marginal start."""
        impossible = np.flatnonzero(np.isneginf(self._bank.totals))
        if len(impossible):
            raise ValueError(
                f"the events of stream {impossible[0]} so far have probability zero under the model"
            )
        probabilities = self._bank.proba()
        unbegun = self._bank.counts == 0
        if unbegun.any():
            probabilities[unbegun] = self._parameters.known_marginal().startprob
        return probabilities

    def encode(self, events: Any) -> Integers:
        """The code of each label, for `update(codes=…)`: worth it where labels come in large numbers."""
        return self._labels.many(events)

    def update(
        self,
        x: ArrayLike,
        events: Any = None,
        streams: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
    ) -> Floats:
        """One event in each of some streams (all of them unless named): ln P(x_n | x_1..n−1, Ω) of each.

        `x` is (B, K), `events` one label a stream, `streams` the distinct numbers of the streams. `codes`
        from `encode` may stand in place of `events`.
        """
        values, which = self._bank.check(x, streams)
        found = self._codes(events, codes, which)
        increments: Floats = self._bank.advance(values, which, found)[:, 0]
        return increments

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later, as plain values that JSON can hold."""
        return online_state.to_plain(self._bank, self._fingerprint)

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a `state()` of the same model; a `ValueError` says what does not fit."""
        parameters = self._parameters
        filters = online_state.from_plain(state, self._fingerprint, parameters.n_states, parameters.n_types)
        if len(filters) != len(self):
            self._bank = self._fresh(self._bank.tables, len(filters))
        self._bank.filters[:] = filters

    def _fresh(self, tables: Tables, n_streams: int) -> FilterBank:
        types = self._parameters.event_types
        own = translations([types], types)
        return FilterBank(tables, np.zeros((n_streams, 1), dtype=np.int64), own, "stream")

    def _codes(self, events: Any, codes: ArrayLike | None, which: Integers) -> Integers:
        n = len(which)
        if codes is not None:
            if events is not None:
                raise ValueError("give events or codes, not both")
            found = self._labels.check(codes, n, "stream")
        elif events is None:
            found = np.full(n, self._labels.missing)
        else:
            found = self._labels.many(events)
        if len(found) != n:
            raise ValueError(f"events must be one label a stream: {n} streams, {len(found)} labels")
        if self._reject_unknown and (found == self._labels.unseen).any():
            row = int(np.argmax(found == self._labels.unseen))
            label = "" if events is None else f" {vocabulary.as_labels(events)[row]!r}"
            raise ValueError(f"stream {which[row]}: event type{label} was not seen in fitting")
        if self._parameters.marginal is None and (found >= self._labels.missing).any():
            self._parameters.known_marginal()
        return found


class OnlineFilter:
    """One stream: `update(x, event)` gives ln P(x_n | x_1..n−1, Ω), `proba` the states' probabilities now."""

    def __init__(self, streams: OnlineFilters) -> None:
        self._streams = streams
        bank, labels = streams._bank, streams._labels
        tables = bank.tables
        self._label = labels.one
        self._own = bank.translation[0].tolist()
        # From this code on, and with families that are not compiled, an event goes the general way.
        everything = streams._parameters.marginal is not None and not streams._reject_unknown
        self._end = 0 if tables.custom else labels.unseen + 1 if everything else labels.missing
        self._shape = (len(tables.features),)
        self._filters, self._types, self._successors = bank.filters, tables.types, tables.successors
        self._steps, self._features, self._rules = tables.steps, tables.features, tables.rules

    def update(self, x: ArrayLike, event: Any = None) -> float:
        """Take the next event, its feature values and its type."""
        # A copy: whatever the array's strides and flags, the compiled step sees one kind of array.
        values = np.array(x, FLOAT)
        code = self._label(event)
        if code < self._end and values.shape == self._shape:
            increment = update_one(
                values,
                self._own[code],
                self._filters,
                self._types,
                self._successors,
                self._steps,
                self._features,
                self._rules,
            )
            # Only NaN differs from itself.
            if increment == increment:
                return increment
        # What is unusual or wrong: the general way takes it, or says what is wrong with it.
        events = np.empty(1, dtype=object)
        events[0] = event
        return float(self._streams.update(np.atleast_2d(values), events)[0])

    @property
    def proba(self) -> Floats:
        """P(z_n | x_1..n, Ω), (M,); the marginal start before the first event."""
        probabilities: Floats = self._streams.proba[0]
        return probabilities

    @property
    def n_events(self) -> int:
        return int(self._streams.n_events[0])

    @property
    def log_likelihood(self) -> float:
        """ln P of all events so far."""
        return float(self._streams.log_likelihood[0])

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later; give it to `model.online(state)`."""
        return self._streams.state()
