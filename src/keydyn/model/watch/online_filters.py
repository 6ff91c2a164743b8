"""One event at a time: the forward recursion as an object, for one stream or many.

Time and memory for an event do not depend on how many came before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers, Truths
from keydyn.files import anything, many, record, whole
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.data.settings import check_number
from keydyn.model.engine.online_step import EXTRA, update_one
from keydyn.model.theta.parameters import Parameters
from keydyn.model.watch.filter_bank import FilterBank, FollowedModel

STATE_VERSION = 1
# Logarithms of probabilities that are also saved exactly agree with them to this.
ROUNDING = 1e-9


def to_plain(bank: FilterBank, fingerprint: str, rows: slice = slice(None)) -> dict[str, Any]:
    """All that is needed to resume later.

    `filtered` is what `log_filtered` is the logarithm of, to the last digit; None where only logarithms
    can hold it.
    """
    kept, in_logs, counts = bank.kept[rows], bank.in_logs[rows], bank.counts[rows]
    logs = np.where(in_logs[:, None], kept, 0.0)
    plain = (counts > 0) & ~in_logs
    with np.errstate(divide="ignore"):
        logs[plain] = np.log(kept[plain])
    return {
        "version": STATE_VERSION,
        "model": fingerprint,
        "log_filtered": plain_numbers(logs),
        "filtered": [None if log else row.tolist() for row, log in zip(kept, in_logs, strict=True)],
        "last": bank.last[rows].astype(np.int64).tolist(),
        "n_events": counts.astype(np.int64).tolist(),
        "log_likelihood": plain_numbers(bank.totals[rows]),
    }


def from_plain(state: dict[str, Any], fingerprint: str, n_states: int, n_types: int) -> Floats:
    """The filters of a saved state, (B, M + EXTRA); a `ValueError` says what does not fit."""
    try:
        # A state without `filtered` was saved before it was kept.
        values = FIELDS("", {"filtered": None, **state} if isinstance(state, dict) else state)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this is not a saved state of a stream: {error}") from None
    if values["version"] != STATE_VERSION:
        raise ValueError(f"the state has version {values['version']!r}; this reads {STATE_VERSION}")
    if values["model"] != fingerprint:
        raise ValueError("the state belongs to another model")
    log_filtered, log_likelihood = values["log_filtered"], values["log_likelihood"]
    last, n_events = values["last"], values["n_events"]
    n = len(n_events)
    exact = _exact(values["filtered"], n, n_states)
    if log_filtered.shape != (n, n_states) or not last.shape == log_likelihood.shape == (n,) or n == 0:
        raise ValueError("the state's parts have different lengths")
    probabilities = np.exp(np.minimum(log_filtered, 1.0))
    held = np.isneginf(log_likelihood) | (n_events == 0) | np.isnan(exact).all(axis=1)
    held |= ((np.abs(exact - probabilities) < ROUNDING) & (exact >= 0.0)).all(axis=1)
    right = consistent(log_filtered, log_likelihood, n_events) & held & (last >= 0) & (last <= n_types)
    if not right.all():
        raise ValueError("the state has values out of range")
    filters = np.zeros((n, n_states + EXTRA))
    begun = n_events > 0
    # Only what can be held without logarithms was saved exactly; an impossible stream has nothing to hold.
    in_logs = begun & (np.isnan(exact).any(axis=1) | np.isneginf(log_likelihood))
    filters[:, :n_states] = np.where(in_logs[:, None], log_filtered, np.where(begun[:, None], exact, 0.0))
    filters[:, n_states:] = np.stack([in_logs, last, n_events, log_likelihood], axis=1)
    return filters


def consistent(log_filtered: Floats, log_likelihood: Floats, n_events: Integers) -> Truths:
    """(B,) whether the states of a stream have probabilities, unless it is impossible or has not begun."""
    total = np.exp(np.minimum(log_filtered, 1.0)).sum(axis=1)
    possible = np.isfinite(log_likelihood) & (np.abs(total - 1.0) < ROUNDING)
    impossible = np.isneginf(log_likelihood) & (total == 0.0)
    fresh = (n_events == 0) & (log_filtered == 0.0).all(axis=1) & (log_likelihood == 0.0)
    found: Truths = ((n_events > 0) & (possible | impossible)) | fresh
    return found


def plain_numbers(values: Floats) -> Any:
    """Nested lists; JSON has no minus infinity, so it is null."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def logarithms(name: str, nested: Any) -> Floats:
    """A field of logarithms in lists; null stands for minus infinity."""
    array = np.array(nested, dtype=object)
    return np.where(array == None, -np.inf, array).astype(np.float64)  # noqa: E711


def wholes(name: str, values: Any) -> Integers:
    """A field with a list of whole numbers."""
    return np.array(many(whole())(name, values), dtype=np.int64)


def _exact(rows: Any, n: int, n_states: int) -> Floats:
    """(B, M) the probabilities that were saved exactly, NaN where only logarithms were."""
    try:
        listed = [None] * n if rows is None else list(rows)
        exact = np.array([[np.nan] * n_states if row is None else [float(v) for v in row] for row in listed])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this is not a saved state of a stream: filtered: {error}") from None
    if exact.shape != (n, n_states):
        raise ValueError("the state's parts have different lengths")
    return exact


FIELDS = record(
    {
        "version": anything,
        "model": anything,
        "log_filtered": logarithms,
        "filtered": anything,
        "last": wholes,
        "n_events": wholes,
        "log_likelihood": logarithms,
    }
)
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
        self, parameters: Parameters, n_streams: int, floor: float | None, strict: bool, fingerprint: str
    ) -> None:
        check_number("n_streams", n_streams)
        self._parameters = parameters
        self._fingerprint = fingerprint
        self._bank = FilterBank(
            [FollowedModel(parameters, floor, strict)],
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
        self, x: ArrayLike, events: Any = None, streams: Given = None, *, codes: Given = None
    ) -> Floats:
        """One event in each of some streams (all of them unless named): ln P(x_n | x_1..n−1, Ω) of each.

        `x` is (B, K), `events` one label per stream, `streams` the distinct numbers of the streams. `codes`
        from `encode` may stand in place of `events`.
        """
        increments: Floats = self._bank.update(x, events, streams, codes)[:, 0]
        return increments

    def state(self) -> dict[str, Any]:
        """All that is needed to resume later, as plain values that JSON can hold."""
        return to_plain(self._bank, self._fingerprint)

    def resume(self, state: dict[str, Any]) -> None:
        """Resume from a `state()` of the same model; a `ValueError` says what does not fit."""
        parameters = self._parameters
        filters = from_plain(state, self._fingerprint, parameters.n_states, parameters.n_types)
        if len(filters) != len(self):
            raise ValueError(f"the state has {len(filters)} streams, not {len(self)}")
        self._bank.filters[:] = filters


class OnlineFilter:
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
        self._streams = streams
        bank = streams._bank
        self._label = bank.labels.one
        self._own = bank.translation[0].tolist()
        # From this code on, and with families that are not compiled, an event goes the general way.
        refuses = bank.rejects.any() or bank.no_marginal.any()
        self._end = 0 if bank.custom else bank.labels.missing if refuses else bank.labels.unseen + 1
        self._rest = (float(bank.log_floors[0]), bank.features, *bank.models, bank.filters)

    def __repr__(self) -> str:
        return f"<OnlineFilter: {self.n_events} events, log-likelihood {self.log_likelihood:.4g}>"

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
        return self._streams.state()

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
