"""One event at a time: the forward recursion as an object, for one stream or many.

The recursion runs in the log domain throughout, so that no event needs a second look. Time and memory for
an event do not depend on how many came before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.model import vocabulary
from keydyn.model.arrays import Floats, Integers
from keydyn.model.lattice import log_densities
from keydyn.model.log_kernels import filter_step
from keydyn.model.parameters import Parameters
from keydyn.model.settings import is_whole

STATE_VERSION = 1


class OnlineFilters:
    """Many streams that advance together or apart, under one model.

    Attributes
    ----------
    n_events : (B,) events seen in each stream
    log_likelihood : (B,) ln P of each stream so far
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
        self._floor = density_floor
        self._reject_unknown = reject_unknown
        self._fingerprint = fingerprint
        self._log_filtered = np.zeros((n_streams, parameters.n_states))
        self._last = np.full(n_streams, parameters.n_types, dtype=np.int64)
        self.n_events = np.zeros(n_streams, dtype=np.int64)
        self.log_likelihood = np.zeros(n_streams)

    def __len__(self) -> int:
        return len(self.n_events)

    @property
    def proba(self) -> Floats:
        """Probability of each state in each stream now, (B, M); before its first event the marginal start."""
        impossible = np.flatnonzero(np.isneginf(self.log_likelihood))
        if len(impossible):
            raise ValueError(
                f"the events of stream {impossible[0]} so far have probability zero under the model"
            )
        probabilities: Floats = np.exp(self._log_filtered)
        if (self.n_events == 0).any():
            probabilities[self.n_events == 0] = self._parameters.known_marginal().startprob
        return probabilities

    def update(self, x: ArrayLike, events: Any = None, streams: ArrayLike | None = None) -> Floats:
        """One event in each of some streams (all of them unless named): ln P(x_n | x_1..n−1, Ω) of each.

        `x` is (B, K), `events` one label a stream, `streams` the distinct numbers of the streams.
        """
        which = np.arange(len(self)) if streams is None else np.asarray(streams)
        values = np.asarray(x, dtype=np.float64)
        self._check(values, which)
        codes = self._encode(events, which)
        log_density = log_densities(self._parameters, values, codes, self._floor)
        if self._parameters.marginal is None and (codes == self._parameters.n_types).any():
            self._parameters.known_marginal()
        begun = self.n_events[which] > 0
        steps = self._steps(self._last[which], codes, begun)
        filtered = self._log_filtered[which]
        increments = np.empty(len(which))
        filter_step(filtered, begun, self._parameters.start_table[codes], steps, log_density, increments)
        self._log_filtered[which] = filtered
        self._last[which] = codes
        self.n_events[which] += 1
        self.log_likelihood[which] += increments
        return increments

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later, as plain values that JSON can hold."""
        return {
            "version": STATE_VERSION,
            "model": self._fingerprint,
            "log_filtered": [[_plain(v) for v in row] for row in self._log_filtered],
            "last": self._last.tolist(),
            "n_events": self.n_events.tolist(),
            "log_likelihood": [_plain(v) for v in self.log_likelihood],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a `state()` of the same model; a `ValueError` says what does not fit."""
        try:
            version, model = state["version"], state["model"]
            log_filtered = np.array([[_float(v) for v in row] for row in state["log_filtered"]])
            last, n_events = (_whole(state[name]) for name in ("last", "n_events"))
            log_likelihood = np.array([_float(v) for v in state["log_likelihood"]])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"this is no saved state of an online filter: {error!r}") from None
        if version != STATE_VERSION:
            raise ValueError(f"the state has version {version!r}; this reads {STATE_VERSION}")
        if model != self._fingerprint:
            raise ValueError("the state belongs to another model")
        n = len(last)
        if log_filtered.shape != (n, self._parameters.n_states) or not (
            len(n_events) == len(log_likelihood) == n
        ):
            raise ValueError("the state's parts have different lengths")
        self._check_state(log_filtered, last, n_events, log_likelihood)
        self._log_filtered, self._last = log_filtered, last
        self.n_events, self.log_likelihood = n_events, log_likelihood

    def _check_state(
        self, log_filtered: Floats, last: Integers, n_events: Integers, log_likelihood: Floats
    ) -> None:
        total = np.exp(np.minimum(log_filtered, 1.0)).sum(axis=1)
        right = np.isneginf(log_likelihood) & (total == 0.0)
        right |= np.isfinite(log_likelihood) & (np.abs(total - 1.0) < 1e-9)
        right &= n_events > 0
        right |= (n_events == 0) & (log_filtered == 0.0).all(axis=1) & (log_likelihood == 0.0)
        right &= (last >= 0) & (last <= self._parameters.n_types)
        if len(right) == 0 or not right.all():
            raise ValueError("the state has values out of range")

    def _check(self, values: Floats, which: Integers) -> None:
        if which.ndim != 1 or which.dtype.kind not in "iu":
            raise ValueError("streams must be a list of whole numbers")
        shape = (len(which), len(self._parameters.emission))
        if values.shape != shape:
            raise ValueError(f"x must have shape {shape}, one row a stream, not {values.shape}")
        if len(which) and (which.min() < 0 or which.max() >= len(self)):
            raise ValueError(f"streams are numbered 0 to {len(self) - 1}")
        if len(np.unique(which)) < len(which):
            raise ValueError("a stream is named twice; one event each in a call")
        for k, emission in enumerate(self._parameters.emission):
            family = emission.distribution
            bad = family.outside(values[:, k])
            if bad.any():
                row = int(np.argmax(bad))
                raise ValueError(
                    f"stream {which[row]}, column {k}: {values[row, k]} is no value of a {family.name} "
                    f"emission, which is {family.domain}"
                )

    def _encode(self, events: Any, which: Integers) -> Integers:
        known, known_places = self._parameters.event_types, self._parameters.type_places
        labels = np.full(len(which), None) if events is None else vocabulary.as_labels(events)
        if len(labels) != len(which):
            raise ValueError(f"events must be one label a stream: {len(which)} streams, {len(labels)} labels")
        codes, types = vocabulary.encode(labels)
        places, unseen = vocabulary.find(codes, types, known, known_places)
        if self._reject_unknown and unseen.any():
            row = int(np.argmax(unseen))
            raise ValueError(f"stream {which[row]}: event type {labels[row]!r} was not seen in fitting")
        return places

    def _steps(self, before: Integers, after: Integers, begun: Any) -> Floats:
        steps = np.zeros((len(before), self._parameters.n_states, self._parameters.n_states))
        if begun.any():
            steps[begun] = self._parameters.transmat_of(before[begun], after[begun])
        return steps


class OnlineFilter:
    """One stream: `update(x, event)` gives ln P(x_n | x_1..n−1, Ω), `proba` the states' probabilities now."""

    def __init__(self, streams: OnlineFilters) -> None:
        self._streams = streams

    def update(self, x: ArrayLike, event: Any = None) -> float:
        """Take the next event, its feature values and its type."""
        events = np.empty(1, dtype=object)
        events[0] = event
        return float(self._streams.update(np.atleast_2d(np.asarray(x, dtype=np.float64)), events)[0])

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


def _plain(value: float) -> float | None:
    """JSON has no minus infinity."""
    return None if value == -np.inf else float(value)


def _float(value: float | None) -> float:
    return -np.inf if value is None else float(value)


def _whole(values: Any) -> Integers:
    if not all(isinstance(value, int) for value in values):
        raise ValueError(f"{values!r} are not whole numbers")
    return np.array(values, dtype=np.int64)
