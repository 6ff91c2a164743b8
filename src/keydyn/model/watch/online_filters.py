"""One event at a time: the forward recursion as an object, for one stream or many.

Time and memory for an event do not depend on how many came before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.data.settings import is_whole
from keydyn.model.engine.online_step import update_one
from keydyn.model.theta.parameters import Parameters
from keydyn.model.watch import online_state
from keydyn.model.watch.filter_bank import FilterBank, Watched

FLOAT = np.dtype(np.float64)


class OnlineFilters:
    """Many streams that advance together or apart, under one model.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.lognormal(np.where(rng.random((300, 1)) < 0.3, 7.0, 5.0), 0.3)
    >>> streams = HMM().fit(x).online(n_streams=3)
    >>> streams.update([[140.0], [90.0]], streams=[0, 2]).shape
    (2,)
    >>> streams.n_events.tolist()
    [1, 0, 1]
    """

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
        self._fingerprint = fingerprint
        self._bank = FilterBank(
            [Watched(parameters, density_floor, reject_unknown)],
            parameters.event_types,
            np.zeros((n_streams, 1), dtype=np.int64),
            "stream",
            name_models=False,
        )

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
        return self._bank.proba()

    def encode(self, events: Any) -> Integers:
        """The code of each label, for `update(codes=…)`: worth it where labels come in large numbers."""
        return self._bank.labels.many(events)

    def update(
        self,
        x: ArrayLike,
        events: Any = None,
        streams: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
    ) -> Floats:
        """One event in each of some streams (all of them unless named): ln P(x_n | x_1..n−1, Ω) of each.

        `x` is (B, K), `events` one label per stream, `streams` the distinct numbers of the streams. `codes`
        from `encode` may stand in place of `events`.
        """
        increments: Floats = self._bank.update(x, events, streams, codes)[:, 0]
        return increments

    def state(self) -> dict[str, Any]:
        """All that is needed to resume later, as plain values that JSON can hold."""
        return online_state.to_plain(self._bank, self._fingerprint)

    def resume(self, state: dict[str, Any]) -> None:
        """Resume from a `state()` of the same model; a `ValueError` says what does not fit."""
        parameters = self._parameters
        filters = online_state.from_plain(state, self._fingerprint, parameters.n_states, parameters.n_types)
        self._bank.resume(filters)


class OneStream:
    """What one of many streams tells, for streams of one."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams

    @property
    def proba(self) -> Floats:
        """The probability of each state given all events so far, (M,); the start before the first event."""
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
        """All that is needed to resume later; give it to `model.online(state)`."""
        state: dict[str, Any] = self._streams.state()
        return state


class OnlineFilter(OneStream):
    """One stream: `update(x, event)` gives ln P(x_n | x_1..n−1, Ω), `proba` the states' probabilities now.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.lognormal(np.where(rng.random((300, 1)) < 0.3, 7.0, 5.0), 0.3)
    >>> watch = HMM().fit(x).online()
    >>> score = watch.update([140.0])
    >>> watch.n_events, watch.proba.shape, score == watch.log_likelihood
    (1, (2,), True)
    """

    def __init__(self, streams: OnlineFilters) -> None:
        super().__init__(streams)
        bank = streams._bank
        self._label = bank.labels.one
        self._own = bank.translation[0].tolist()
        # From this code on, and with families that are not compiled, an event goes the general way.
        refuses = bank.rejects.any() or bank.no_marginal.any()
        self._end = 0 if bank.custom else bank.labels.missing if refuses else bank.labels.unseen + 1
        self._rest = (float(bank.log_floors[0]), bank.features, *bank.models, bank.filters)

    def update(self, x: ArrayLike, event: Any = None) -> float:
        """Take the next event, its feature values and its type."""
        # The compiled step sees one kind of array: anything else is copied.
        values: Any = x
        if type(x) is not ndarray or x.dtype is not FLOAT:
            values = as_numbers("x", x)
        elif not x.flags.carray:
            values = x.copy()
        code = self._label(event)
        if code < self._end and values.ndim == 1:
            increment = update_one(values, self._own[code], *self._rest)
            # Only NaN differs from itself.
            if increment == increment:
                return increment
        # What is unusual or wrong: the general way takes it, or says what is wrong with it.
        events = np.empty(1, dtype=object)
        events[0] = event
        return float(self._streams.update(np.atleast_2d(values), events)[0])
