"""Continuous verification as it happens: one event at a time against a population.

The time and memory that an event takes do not depend on how many came before. The numbers are those that
`rank_penalty` and `trust` give for the whole sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.continuous.penalty import HIGHEST, WINDOW, TrustSettings, beaten, check_window, ranks


class EventScores(Protocol):
    """Something that scores one event after another, such as `OnlineFilter`."""

    def update(self, x: ArrayLike, event: Any = None) -> float: ...


class Streaming(Protocol):
    """Something that can start a stream, such as a fitted `POHMM`."""

    def online(self) -> EventScores: ...


class ModelStreams:
    """One session under the models of a whole population: `update(x, event)` gives the scores of all."""

    def __init__(self, models: Sequence[Streaming]) -> None:
        if not models:
            raise ValueError("there are no models to rank")
        self._streams = [model.online() for model in models]
        self._out_of_step = False

    def __len__(self) -> int:
        return len(self._streams)

    def update(self, x: ArrayLike, event: Any = None) -> Floats:
        """Take the next event: ln P(x_n | x_1..n−1, Ω) under each model, (U,).

        If the first model refuses an event, none has taken it and the session can continue. If a later one
        refuses it, the models are no longer at the same event, and the session is over.
        """
        if self._out_of_step:
            raise ValueError("some models refused an earlier event that others took: begin a new session")
        scores = np.empty(len(self._streams))
        for u, stream in enumerate(self._streams):
            self._out_of_step = u > 0
            scores[u] = stream.update(x, event)
        self._out_of_step = False
        return scores


class OnlinePenalties:
    """The rank penalty of many sessions that advance together or apart.

    Attributes
    ----------
    n_events : (B,) events seen in each session
    penalty : (B, U) sum of each template's ranks over the last `window` events

    Examples
    --------
    >>> from keydyn.evaluation import OnlinePenalties
    >>> sessions = OnlinePenalties(n_sessions=2, n_templates=3, window=25)
    >>> sessions.update([[-1.0, -3.0, -2.0], [-5.0, -1.0, -1.0]]).tolist()
    [[0.0, 2.0, 1.0], [2.0, 0.5, 0.5]]
    """

    def __init__(self, n_sessions: int, n_templates: int, window: int = WINDOW) -> None:
        _check_sizes(n_sessions, n_templates)
        check_window(window)
        self.n_events = np.zeros(n_sessions, dtype=np.int64)
        self.penalty = np.zeros((n_sessions, n_templates))
        self._recent = np.zeros((n_sessions, window, n_templates))

    def update(self, event_scores: ArrayLike, sessions: ArrayLike | None = None) -> Floats:
        """One event in each of some sessions (all unless named): scores (B, U) → penalties (B, U)."""
        scores, which = _checked(event_scores, sessions, self.penalty.shape)
        ranked = ranks(scores)
        # The event that enters takes the place of the one that leaves the window.
        place = self.n_events[which] % self._recent.shape[1]
        self.penalty[which] += ranked - self._recent[which, place]
        self._recent[which, place] = ranked
        self.n_events[which] += 1
        return self.penalty[which].copy()

    def restart(self, sessions: ArrayLike | None = None) -> None:
        """Begin some sessions again (all unless named), as after a lock-out."""
        which = _numbers(sessions, len(self.penalty))
        self.n_events[which], self.penalty[which], self._recent[which] = 0, 0.0, 0.0


class OnlineTrusts:
    """The penalty-and-reward function of many sessions that advance together or apart.

    Attributes
    ----------
    n_events : (B,) events seen in each session
    trust : (B, U) the trust in each template's claim, 0 to 100

    Examples
    --------
    >>> from keydyn.evaluation import OnlineTrusts
    >>> sessions = OnlineTrusts(n_sessions=1, n_templates=3)
    >>> trust = sessions.update([[-1.0, -3.0, -2.0]])[0]
    >>> bool(trust[0] > trust[2] > trust[1])
    True
    """

    def __init__(self, n_sessions: int, n_templates: int, settings: TrustSettings | None = None) -> None:
        _check_sizes(n_sessions, n_templates)
        self._settings = settings or TrustSettings()
        self.n_events = np.zeros(n_sessions, dtype=np.int64)
        self.trust = np.full((n_sessions, n_templates), HIGHEST)

    def update(self, event_scores: ArrayLike, sessions: ArrayLike | None = None) -> Floats:
        """One event in each of some sessions (all unless named): scores (B, U) → trust (B, U)."""
        scores, which = _checked(event_scores, sessions, self.trust.shape)
        change = self._settings.change(beaten(ranks(scores)))
        self.trust[which] = np.clip(self.trust[which] + change, 0.0, HIGHEST)
        self.n_events[which] += 1
        return self.trust[which].copy()

    def restart(self, sessions: ArrayLike | None = None) -> None:
        """Begin some sessions again (all unless named), with full trust."""
        which = _numbers(sessions, len(self.trust))
        self.n_events[which], self.trust[which] = 0, HIGHEST


class OnlinePenalty:
    """The rank penalty of one session: `update(scores)` takes the (U,) scores of an event.

    `OnlinePenalty.watching(models)` takes the events themselves, `update_event(x, event)`.

    Examples
    --------
    >>> from keydyn.evaluation import OnlinePenalty
    >>> watch = OnlinePenalty(n_templates=3, window=2)
    >>> for _ in range(3):
    ...     penalty = watch.update([-1.0, -3.0, -2.0])
    >>> penalty.tolist(), watch.n_events
    ([0.0, 4.0, 2.0], 3)
    """

    def __init__(self, n_templates: int, window: int = WINDOW) -> None:
        self._sessions = OnlinePenalties(1, n_templates, window)
        self._stream: ModelStreams | None = None

    @classmethod
    def watching(cls, models: Sequence[Streaming], window: int = WINDOW) -> OnlinePenalty:
        """A session under the models of a population."""
        stream = ModelStreams(models)
        session = cls(len(stream), window)
        session._stream = stream
        return session

    def update(self, event_scores: ArrayLike) -> Floats:
        """Each template's penalty, (U,), after an event with these scores, (U,)."""
        penalty: Floats = self._sessions.update(np.asarray(event_scores, dtype=np.float64)[None])[0]
        return penalty

    def update_event(self, x: ArrayLike, event: Any = None) -> Floats:
        """Each template's penalty, (U,), after an event: its feature values and its type."""
        if self._stream is None:
            raise ValueError("this session has no models; make it by OnlinePenalty.watching(models)")
        return self.update(self._stream.update(x, event))

    @property
    def penalty(self) -> Floats:
        """Each template's penalty now, (U,); 0 before the first event."""
        penalty: Floats = self._sessions.penalty[0].copy()
        return penalty

    @property
    def n_events(self) -> int:
        return int(self._sessions.n_events[0])

    def restart(self) -> None:
        """Empty the window, as after a lock-out; what the models know of the session stays."""
        self._sessions.restart()


def _check_sizes(n_sessions: int, n_templates: int) -> None:
    for name, size in (("n_sessions", n_sessions), ("n_templates", n_templates)):
        if size < 1:
            raise ValueError(f"{name} must be 1 or more, not {size}")


def _checked(
    event_scores: ArrayLike, sessions: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[Floats, Integers]:
    which = _numbers(sessions, shape[0])
    scores = np.asarray(event_scores, dtype=np.float64)
    if scores.shape != (len(which), shape[1]):
        raise ValueError(
            f"event scores must have shape {(len(which), shape[1])}, a row per session and a column "
            f"per template, not {scores.shape}"
        )
    return scores, which


def _numbers(sessions: ArrayLike | None, n_sessions: int) -> Integers:
    if sessions is None:
        return np.arange(n_sessions)
    which = np.asarray(sessions)
    if which.ndim != 1 or which.dtype.kind not in "iu":
        raise ValueError("sessions must be a list of whole numbers")
    if len(which) and (which.min() < 0 or which.max() >= n_sessions):
        raise ValueError(f"sessions are numbered 0 to {n_sessions - 1}")
    if len(np.unique(which)) < len(which):
        raise ValueError("a session is named twice; one event each in a call")
    return which.astype(np.int64)
