"""Sessions watched as they are typed: how far each claim is believed, and which sessions are locked.

Two things are followed. The *ratio* says how much more probable the last keys are coming from the claimed
person than from somebody else, calibrated, older keys forgotten: it is what to show, and what to base other
decisions on. The *suspicion* is Page's sum (`sequential`), which notices a change of person soonest: a
session is locked when it rises above the level, and stays locked until it is restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration import Calibration
from keydyn.decisions.cohort import open_set_scores
from keydyn.decisions.sequential import KEEP, LEAST, faded, increments, suspicion
from keydyn.keystrokes.schema import check_columns
from keydyn.population.model import PopulationModel
from keydyn.population.stream_state import packed, parsed
from keydyn.population.template import Template

# From sums of log-likelihoods, (n, 1 + C), the claimed person's first, and how many keys they amount to,
# (n,), to calibrated log-likelihood ratios (n,).
Evidence = Callable[[Floats, Floats], Floats]
TRUSTED, LOCKED = "trusted", "locked"
# The term of somebody in the cohort who does not count.
ABSENT = -1e9
# How much of the ratio is left after each key: it is that of the last fifty, roughly.
RATIO_KEEPS = 0.98


def calibrated(calibration: Calibration) -> Evidence:
    """The ratios of fading sums: those of open-set scores after as many keys as the sums amount to."""

    def evidence(sums: Floats, keys: Floats) -> Floats:
        cohort = sums[:, 1:]
        scores = open_set_scores(sums[:, :1], cohort, cohort <= ABSENT)[:, 0]
        return calibration.llr(scores, np.rint(keys).astype(np.int64))

    return evidence


@dataclass(frozen=True)
class Watching:
    """How sessions are watched.

    Attributes
    ----------
    level : suspicion above which a session is locked
    accept : the suspicion restarts when it has fallen to −accept: 0 for Page's sum, Wald's bound for his test
    ratio_keeps : how much of the ratio is left after each key
    keep, least : see `sequential.increments`
    """

    level: float
    accept: float = 0.0
    ratio_keeps: float = RATIO_KEEPS
    keep: float = KEEP
    least: float = LEAST

    def __post_init__(self) -> None:
        if not self.level > 0.0:
            raise ValueError(f"level must be above 0, not {self.level}")


@dataclass(frozen=True, eq=False)
class Watched:
    """What is known after each of B events.

    Attributes
    ----------
    ratio : (B,) calibrated log-likelihood ratio of the last keys; NaN before there is a term
    keys : (B,) how many keys it amounts to
    suspicion : (B,) evidence against the claim
    locked : (B,) whether the session is locked
    """

    ratio: Floats
    keys: Floats
    suspicion: Floats
    locked: Truths


class WatchedSessions:
    """S sessions, each in the name of one person, beside a cohort that all share.

    An event says what the one before it was worth, because that needs the next key. Neither the time of an
    update nor memory grows with the length of sessions. Nobody is compared with themselves: `left_out` says
    for each session where in the cohort the person claimed is, −1 for nowhere.
    """

    def __init__(
        self,
        population: PopulationModel,
        claimed: Sequence[Template],
        cohort: Sequence[Template],
        calibration: Calibration,
        watching: Watching,
        left_out: ArrayLike | None = None,
    ) -> None:
        if len(cohort) == 0:
            raise ValueError("a claim is judged beside a cohort, and there is nobody in it")
        self._streams = population.online_many(claimed, cohort)
        self._features = population.parameters.features
        self._evidence, self._watching = calibrated(calibration), watching
        n, U = len(claimed), self._streams.n_templates
        self._sums, self._weights = np.zeros((n, U + 1)), np.zeros((n, U - 1))
        self._suspicion, self._press = np.zeros(n), np.full(n, np.nan)
        self._locked_at: Integers = np.zeros(n, dtype=np.int64)
        self._left_out: Integers = np.full(n, -1)
        self._leave_out(slice(None), left_out)

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def locked_at(self) -> Integers:
        """(S,) the key, from 1, at which each session was locked; 0 if it is not."""
        return self._locked_at.copy()

    @property
    def states(self) -> Floats:
        """(S, 2) probability that each session's typist was active, or paused, at the key before the last.

        One column if the population has no hidden states.
        """
        return self._streams.states

    def encode(self, keys: Any) -> Integers:
        """The code of each key's name, for `update(codes=…)`."""
        return self._streams.encode(keys)

    def restart(
        self,
        sessions: ArrayLike | None = None,
        claimed: Sequence[Template] | None = None,
        left_out: ArrayLike | None = None,
    ) -> None:
        """Begin these sessions (all unless named) again, trusted.

        `claimed` gives each another person, and `left_out` says where those are in the cohort.
        """
        self._streams.restart(sessions, claimed)
        which = slice(None) if sessions is None else np.asarray(sessions, dtype=np.int64)
        for array in (self._sums, self._weights, self._suspicion, self._locked_at):
            array[which] = 0
        self._press[which] = np.nan
        self._leave_out(which, self._left_out[which] if claimed is None else left_out)

    def update(
        self,
        values: ArrayLike,
        keys: Any = None,
        sessions: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
    ) -> Watched:
        """The next events, as `PopulationStreams.update` takes them: many sessions, in any order."""
        before = self._streams.n_events
        terms = self._streams.update(values, keys, sessions, codes=codes)
        which = np.arange(len(self)) if sessions is None else np.asarray(sessions, dtype=np.int64)
        order = np.argsort(which, kind="stable")
        own, counts = np.unique(which, return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        terms, settings = terms[order], self._watching
        absent = self._left_out[which[order]]
        there = absent >= 0
        terms[there, 1 + absent[there]] = ABSENT
        states = self._sums[own], self._weights[own], self._suspicion[own]
        sums, n_keys = faded(terms, offsets, settings.ratio_keeps, states[0])
        steps = increments(terms, offsets, settings.keep, settings.least, states[1])
        level = suspicion(steps, offsets, settings.accept, states[2])
        self._sums[own], self._weights[own], self._suspicion[own] = states
        ratio = np.full(len(terms), np.nan)
        known = n_keys > 0
        if known.any():
            ratio[known] = self._evidence(sums[known], n_keys[known])
        number = before[which[order]] + np.arange(len(which)) - np.repeat(offsets[:-1], counts) + 1
        at = self._first_lock(own, offsets, number, level)
        found = Watched(ratio, n_keys, level, (at > 0) & (at <= number))
        return _in_order(found, order)

    def update_keystrokes(self, keystrokes: pd.DataFrame, sessions: ArrayLike) -> Watched:
        """The next keystrokes, in order of press: `keyname`, `timepress`, `timerelease`, other features.

        A time that is 0 or negative, which no model of times can take, is taken as not seen.
        """
        names = ("keyname", "timepress", "timerelease")
        check_columns(keystrokes, (*names, *self._features[2:]))
        which = np.asarray(sessions)
        if which.shape != (len(keystrokes),) or (len(which) and which.dtype.kind not in "iu"):
            raise ValueError("sessions must be one whole number per keystroke")
        if len(which) and (which.min() < 0 or which.max() >= len(self)):
            raise ValueError(f"sessions are numbered 0 to {len(self) - 1}")
        press, release = (keystrokes[name].to_numpy(dtype=np.float64) for name in names[1:])
        order = np.argsort(which, kind="stable")
        s, pressed = which[order], press[order]
        earlier = np.concatenate([[np.nan], pressed[:-1]])
        first = np.concatenate([[True], s[1:] != s[:-1]])[: len(s)]
        earlier = np.where(first, self._press[s], earlier[: len(s)])
        values = np.empty((len(which), len(self._features)))
        values[order, 0] = pressed - earlier
        values[:, 1] = release - press
        values[:, :2][values[:, :2] <= 0] = np.nan
        for f, name in enumerate(self._features[2:], 2):
            values[:, f] = keystrokes[name].to_numpy(dtype=np.float64)
        found = self.update(values, keystrokes["keyname"].tolist(), which)
        self._press[s] = pressed
        return found

    def state(self, sessions: ArrayLike | None = None) -> bytes:
        """All that is needed to go on with these sessions (all unless named) anywhere."""
        state = self._streams.state(sessions)
        which = np.arange(len(self)) if sessions is None else np.asarray(sessions, dtype=np.int64)
        return packed(state | {name: array[which] for name, array in self._own().items()})

    def resume(self, contents: bytes, sessions: ArrayLike | None = None) -> None:
        """Let these sessions (all unless named) go on from a `state`, or a `ValueError` says why not."""
        state = parsed(contents)
        which = np.arange(len(self)) if sessions is None else np.asarray(sessions, dtype=np.int64)
        for name, array in self._own().items():
            found = state.get(name)
            if found is None or found.shape != (len(which), *array.shape[1:]) or found.dtype != array.dtype:
                raise ValueError(f"the state's {name} does not fit these sessions")
            finite = np.isfinite(found) | (np.isnan(found) if name == "press" else False)
            if not finite.all():
                raise ValueError(f"the state's {name} has values out of range")
        if (state["locked_at"] < 0).any() or (state["sums"][:, -1] < 0).any():
            raise ValueError("the state has values out of range: locked_at or sums")
        if (state["sums"][:, 1:-1] <= ABSENT).all(axis=1).any():
            raise ValueError("the state's sums leave nobody in the cohort")
        self._streams.restore(state, sessions)
        for name, array in self._own().items():
            array[which] = state[name]

    def _leave_out(self, which: slice | Integers, places: ArrayLike | None) -> None:
        """Where in the cohort the person claimed is, who does not count."""
        found = np.asarray(-1 if places is None else places, dtype=np.int64)
        if (found < -1).any() or (found >= self._streams.n_templates - 1).any():
            raise ValueError(
                f"left_out must be places in the cohort, 0 to {self._streams.n_templates - 2}, or -1"
            )
        self._left_out[which] = found
        sessions = np.arange(len(self))[which]
        there = sessions[self._left_out[sessions] >= 0]
        self._weights[there, self._left_out[there]] = ABSENT

    def _own(self) -> dict[str, Any]:
        return {
            "sums": self._sums,
            "weights": self._weights,
            "suspicion": self._suspicion,
            "locked_at": self._locked_at,
            "press": self._press,
        }

    def _first_lock(self, own: Integers, offsets: Integers, number: Integers, level: Floats) -> Integers:
        """(B,) the key at which the session of each event was locked, or is now; 0 if it is not."""
        if len(own) == 0:
            return number
        never = np.iinfo(np.int64).max
        above = np.where(level > self._watching.level, number, never)
        first = np.minimum.reduceat(above, offsets[:-1])
        earlier = self._locked_at[own]
        self._locked_at[own] = np.where(earlier > 0, earlier, np.where(first < never, first, 0))
        return np.repeat(self._locked_at[own], np.diff(offsets))


class Watch:
    """One session: `WatchedSessions` of one."""

    def __init__(self, session: WatchedSessions) -> None:
        if len(session) != 1:
            raise ValueError(f"a watch follows one session, not {len(session)}")
        self._sessions = session

    @property
    def standing(self) -> str:
        """Whether the session is "trusted" or "locked"."""
        return LOCKED if self._sessions.locked_at[0] else TRUSTED

    @property
    def pausing(self) -> float:
        """Probability that the typist paused at the key before the last.

        NaN before there were two keys, and if the population has no hidden states.
        """
        states = self._sessions.states[0]
        return float(states[1]) if len(states) > 1 else np.nan

    @property
    def locked_at(self) -> int | None:
        """The key, from 1, at which it was locked; None if it is not."""
        return int(self._sessions.locked_at[0]) or None

    def update(self, keystrokes: pd.DataFrame) -> Watched:
        """The next keystrokes, one or more, as `WatchedSessions.update_keystrokes` takes them."""
        return self._sessions.update_keystrokes(keystrokes, np.zeros(len(keystrokes), dtype=np.int64))

    def update_values(self, values: ArrayLike, keys: Any) -> Watched:
        """The next events as values (B, F) and keys."""
        rows = np.asarray(values, dtype=np.float64)
        return self._sessions.update(rows, keys, np.zeros(len(rows), dtype=np.int64))

    def restart(self) -> None:
        """Another session of the same person, trusted."""
        self._sessions.restart()

    def state(self) -> bytes:
        """All that is needed to go on anywhere."""
        return self._sessions.state()

    def resume(self, contents: bytes) -> None:
        """Go on from a `state`; a `ValueError` says what does not fit."""
        self._sessions.resume(contents)


def _in_order(found: Watched, order: Integers) -> Watched:
    """Rows that were taken in another order, in their own."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Watched(found.ratio[place], found.keys[place], found.suspicion[place], found.locked[place])
