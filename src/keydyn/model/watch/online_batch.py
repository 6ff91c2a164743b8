"""Online scoring of one stream, or of many sessions that are each compared with several models.

Time and memory per event do not depend on the number of events before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import check_number
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.engine.online_step import update_one
from keydyn.model.fit.estimator import Estimator
from keydyn.model.theta.parameters import Parameters
from keydyn.model.watch.filter_bank import FilterBank, FollowedModel, check_rows

FLOAT = np.dtype(np.float64)


class OnlineBatch:
    """Online scores of S sessions, each under C of U models at the same time.

    `models` are fitted models with the same number of states and the same families. Each session is scored
    under all of them, or under those whose numbers are in `cohorts` (S, C): for example the model of the
    claimed user and those of the users to compare with, or with C = 1 the claimed user's alone. Memory is
    that of the models plus 8·(M + 5) bytes per filter, however long sessions last.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM, fit_many
    >>> from keydyn.model import OnlineBatch
    >>> rng = np.random.default_rng(0)
    >>> models = fit_many(HMM(), [rng.lognormal(5.0 + i, 0.4, (100, 1)) for i in range(3)])
    >>> sessions = OnlineBatch(models, n_sessions=2)
    >>> sessions.update([[140.0], [400.0]]).shape  # sessions, models
    (2, 3)
    """

    def __init__(
        self, models: Sequence[Estimator], n_sessions: int | None = None, *, cohorts: Given = None
    ) -> None:
        self._thetas = _alike(models)
        if cohorts is None:
            chosen = np.tile(np.arange(len(models)), (check_number("n_sessions", n_sessions), 1))
        else:
            chosen = _check_cohorts(cohorts, len(models), n_sessions)
        types = [theta.event_types for theta in self._thetas]
        named = [own for own in types if not vocabulary.is_single(own)] or types[:1]
        union = named[0]
        for own in named[1:]:
            union = vocabulary.union(union, own)
        self._bank = FilterBank(
            [
                FollowedModel(theta, model._floor, model.handle_unknown == "error")
                for theta, model in zip(self._thetas, models, strict=True)
            ],
            union,
            chosen,
        )

    def __len__(self) -> int:
        return len(self._bank)

    @property
    def cohorts(self) -> Integers:
        """The numbers of the models of each session, (S, C)."""
        return self._bank.chosen.copy()

    @property
    def n_events(self) -> Integers:
        """The number of events seen in each session, (S,)."""
        return self._grid(self._bank.counts)[:, 0].astype(np.int64)

    @property
    def log_likelihood(self) -> Floats:
        """ln P of each session so far under each of its models, (S, C)."""
        return self._grid(self._bank.totals).copy()

    @property
    def proba(self) -> Floats:
        """The current probability of each state, (S, C, M); before the first event the marginal start."""
        impossible = np.argwhere(np.isneginf(self._grid(self._bank.totals)))
        if len(impossible):
            session, c = impossible[0]
            raise ValueError(
                f"the events of session {session} so far have probability zero under model "
                f"{self._bank.chosen[session, c]}"
            )
        return self._bank.proba().reshape(*self._bank.chosen.shape, -1)

    def encode(self, events: Any) -> Integers:
        """The code of each label, for `update(codes=…)`, which saves time with large numbers of labels."""
        return self._bank.labels.many(events)

    def update(
        self, x: ArrayLike, events: Any = None, sessions: Given = None, *, codes: Given = None
    ) -> Floats:
        """Take the next event of B sessions, by default all; return ln P(x_n | x_1..n−1, Ω), (B, C).

        `x` is (B, K), `events` has one label per session, and `sessions` the distinct numbers of the
        sessions. `codes` from `encode` can replace `events`.
        """
        return self._bank.update(x, events, sessions, codes)

    def restart(self, sessions: Given = None, cohorts: Given = None) -> None:
        """Reset the named sessions, by default all; `cohorts` (B, C) assigns them other models."""
        which = np.arange(len(self)) if sessions is None else check_rows(sessions, len(self))
        if cohorts is not None:
            chosen = _check_cohorts(cohorts, len(self._thetas), len(which))
            if chosen.shape[1] != self._bank.chosen.shape[1]:
                raise ValueError(f"cohorts must have {self._bank.chosen.shape[1]} models per session")
            self._bank.chosen[which] = chosen
        self._bank.restart(which)

    def _grid(self, values: Floats) -> Floats:
        return values.reshape(self._bank.chosen.shape)


class OnlineFilter:
    """Online scores of one stream under one model.

    `update(x, event)` returns ln P(x_n | x_1..n−1, Ω); `proba` has the current probabilities of the states.

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

    def __init__(self, batch: OnlineBatch) -> None:
        self._batch = batch
        bank = batch._bank
        self._label = bank.labels.one
        self._own = bank.members.translation[0].tolist()
        # Codes from this one on, and all events with families that are not compiled, take the general path.
        codes = bank.labels.unseen + 1 if bank.takes_all_types else bank.labels.missing
        self._end = 0 if bank.custom else codes
        self._rest = (float(bank.members.log_floors[0]), bank.members.features, *bank.models, bank.filters)

    def __repr__(self) -> str:
        return f"<OnlineFilter: {self.n_events} events, log-likelihood {self.log_likelihood:.4g}>"

    @property
    def proba(self) -> Floats:
        """The probability of each state given all events so far, (M,); the start before the first event."""
        probabilities: Floats = self._batch.proba[0, 0]
        return probabilities

    @property
    def n_events(self) -> int:
        return int(self._batch.n_events[0])

    @property
    def log_likelihood(self) -> float:
        """ln P of all events so far."""
        return float(self._batch.log_likelihood[0, 0])

    def update(self, x: ArrayLike, event: Any = None) -> float:
        """Take the next event, with feature values `x` (K,) and its type; return ln P(x_n | x_1..n−1, Ω)."""
        # The compiled step takes one kind of array: anything else is copied.
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
        # Anything unusual or wrong takes the general path, which handles it or raises a clear error.
        events = np.empty(1, dtype=object)
        events[0] = event
        return float(self._batch.update(np.atleast_2d(values), events)[0, 0])


def _alike(models: Sequence[Estimator]) -> list[Parameters]:
    """The parameters of the models, after a check that they are fitted and have equal states and families."""
    if len(models) == 0:
        raise ValueError("models is empty")
    thetas = []
    for u, model in enumerate(models):
        if not isinstance(model, Estimator) or not model.__sklearn_is_fitted__():
            raise ValueError(f"model {u} is not a fitted POHMM")
        theta = model._parameters
        thetas.append(theta)
        if theta.n_states != thetas[0].n_states:
            raise ValueError(f"model {u} has {theta.n_states} states, model 0 has {thetas[0].n_states}")
        if theta.families != thetas[0].families:
            raise ValueError(f"model {u} has different features or families from model 0")
    return thetas


def _check_cohorts(cohorts: ArrayLike, n_models: int, n_sessions: int | None) -> Integers:
    chosen = np.asarray(cohorts)
    if chosen.ndim != 2 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise ValueError("cohorts must be a table of whole numbers, a row per session and a column per model")
    if n_sessions is not None and len(chosen) != n_sessions:
        raise ValueError(f"cohorts has {len(chosen)} rows for {n_sessions} sessions")
    if chosen.min() < 0 or chosen.max() >= n_models:
        raise ValueError(f"cohorts names models by their numbers, 0 to {n_models - 1}")
    return np.ascontiguousarray(chosen, dtype=np.int64)
