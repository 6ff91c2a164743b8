"""Streams of the log-likelihoods of events under several templates, with which sessions are followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keydyn.arrays import Floats, Integers
from keydyn.detectors import Markov
from keydyn.files import Tensors
from keydyn.model.watch.online_batch import OnlineBatch
from keydyn.population.score.kernel import Asked
from keydyn.population.shared_parameters import Template
from keydyn.population.stream.streams import PopulationStreams, Rows, Runs, session_numbers


class MarkovStreams:
    """Sessions followed with hidden Markov models: the claimed person's first, then the cohort's.

    The terms of an event are known at once. A session cannot be given another model, nor its state stored. An
    update that is refused changes nothing; one that is interrupted may have advanced some sessions.
    """

    n_states = 1

    def __init__(self, claimed: Sequence[Markov], cohort: Sequence[Markov]) -> None:
        n, C = len(claimed), len(cohort)
        chosen = np.column_stack([np.arange(n), np.tile(np.arange(n, n + C), (n, 1))])
        self._batch = OnlineBatch([one.model_ for one in (*claimed, *cohort)], cohorts=chosen)
        # Values arrive as interval, hold and sensors; the models expect alphabetical order.
        names = list(claimed[0].model_.feature_names_in_)
        times = [name for name in ("tau", "duration") if name in names]
        self.features = (*times, *(name for name in names if name not in times))
        self._places = [self.features.index(name) for name in names]
        self.n_templates = 1 + C

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def states(self) -> Floats:
        """(S, 1) NaN, because these models do not tell pauses."""
        return np.full((len(self), 1), np.nan)

    @property
    def n_events(self) -> Integers:
        """(S,) the number of events in each session."""
        return self._batch.n_events

    def encode(self, keys: Any) -> Integers:
        """The code of each key's name."""
        return self._batch.encode(keys)

    def numbers(self, sessions: ArrayLike | None, distinct: bool = True) -> Integers:
        """The numbers of these sessions (all unless named); a `ValueError` if one does not exist."""
        return session_numbers(sessions, len(self), distinct=False)

    def restart(self, sessions: ArrayLike | None = None, claimed: Sequence[Template] | None = None) -> None:
        """The next event of these sessions (all unless named) is the first of another sample."""
        if claimed is not None:
            self._refuse()
        self._batch.restart(sessions)

    def given(self, values: ArrayLike, keys: Any, codes: ArrayLike | None, n: int) -> tuple[Floats, Integers]:
        """The values of n events and the codes of their keys; a `ValueError` if they do not fit."""
        rows = np.asarray(values, dtype=np.float64)
        if rows.shape != (n, len(self.features)):
            raise ValueError(f"an event has {len(self.features)} values, not {rows.shape[1:]}")
        if np.isinf(rows).any():
            raise ValueError("values must be finite, or NaN if missing")
        typed = self.encode(keys) if codes is None else np.asarray(codes, dtype=np.int64)
        if len(typed) != n:
            raise ValueError(f"there are {len(typed)} keys for {n} events")
        return rows, typed

    def advance(self, runs: Runs, rows: Floats, codes: Integers) -> Asked:
        """The terms that `update` gives; all arrays are ordered in runs, and states are NaN."""
        terms = self._terms(np.repeat(runs.own, runs.sizes), rows, codes)
        return Asked(events=terms, states=np.full((len(rows), 1), np.nan))

    def events_in(self, s: Integers) -> Integers:
        """The number of events in each of these sessions so far."""
        return self._batch.n_events[s]

    def _terms(self, which: Integers, rows: Floats, codes: Integers) -> Floats:
        terms = np.empty((len(which), self.n_templates))
        # Each session advances by one event at a time.
        turn = _turns(which)
        for number in range(int(turn.max(initial=-1)) + 1):
            now = np.flatnonzero(turn == number)
            terms[now] = self._batch.update(rows[now][:, self._places], None, which[now], codes=codes[now])
        return terms

    def state(self, sessions: ArrayLike | None = None) -> Tensors:
        """Refused: only a population's sessions can be stored."""
        self._refuse()

    def restore(self, state: Tensors, sessions: ArrayLike | None = None) -> None:
        """Refused: only a population's sessions can be stored."""
        self._refuse()

    def kept(self, s: Rows) -> tuple[NDArray[Any], ...]:
        """Keep nothing: an update that is refused has not changed anything."""
        return ()

    def put_back(self, s: Rows, kept: tuple[NDArray[Any], ...]) -> None:
        """Do nothing: there is nothing to put back."""

    def _refuse(self) -> NoReturn:
        raise ValueError("sessions are stored, or given to another person, with a population only")


# The streams with which `WatchedSessions` follows sessions.
TermStreams = PopulationStreams | MarkovStreams


def _turns(sessions: Integers) -> Integers:
    """(B,) number of earlier events of the same session, for each event."""
    order = np.argsort(sessions, kind="stable")
    s = sessions[order]
    turns = np.empty(len(s), dtype=np.int64)
    turns[order] = np.arange(len(s)) - np.searchsorted(s, s)
    return turns
