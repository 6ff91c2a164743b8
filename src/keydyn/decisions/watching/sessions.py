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
from scipy.special import expit

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.cohort import open_set_scores
from keydyn.decisions.calibration.sequential import KEEP, LEAST, faded, increments, suspicion
from keydyn.files import Tensors
from keydyn.keystrokes.one_sample import times_given
from keydyn.keystrokes.schema import check_columns, refuse
from keydyn.population.model import PopulationModel
from keydyn.population.stream.session_state import joined, packed, packed_each, parsed, record_of
from keydyn.population.template import Template

# From sums of log-likelihoods, (n, 1 + C), the claimed person's first, and how many keys they amount to,
# (n,), to calibrated log-likelihood ratios (n,).
Evidence = Callable[[Floats, Floats], Floats]
TRUSTED, LOCKED = "trusted", "locked"
# The term of somebody in the cohort who does not count.
ABSENT = -1e9
# How much of the ratio is left after each key: it is that of the last fifty, roughly.
RATIO_KEEPS = 0.98
# A longer time, milliseconds, is no time between keys: it is taken as not seen.
LONGEST = 1e12


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

    Examples
    --------
    >>> from keydyn.decisions import Targets, Verifier
    >>> often = Verifier.shipped(at=Targets(lockouts_per_hour=5.0)).watching
    >>> rarely = Verifier.shipped(at=Targets(lockouts_per_hour=0.5)).watching
    >>> often.level < rarely.level
    True
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
    pausing : (B,) probability that the typist paused at the key before; NaN if there is none

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(1, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[typing["session"] < 5])
    >>> watched = verifier.watch("ada").update(typing[typing["session"] == 5])
    >>> watched.trust.shape, bool(watched.trust[-1] > 0.5), bool(watched.locked.any())
    ((80,), True, False)
    """

    ratio: Floats
    keys: Floats
    suspicion: Floats
    locked: Truths
    pausing: Floats

    @property
    def trust(self) -> Floats:
        """(B,) probability that the claimed person typed the last keys, if both were equally probable before.

        It is 1 / (1 + e^−ratio), and 0.5 before there is a ratio: nothing is known yet.
        """
        trust: Floats = expit(np.where(np.isnan(self.ratio), 0.0, self.ratio))
        return trust


class WatchedSessions:
    """S sessions, each in the name of one person, beside a cohort that all share.

    An event says what the one before it was worth, because that needs the next key. Neither the time of an
    update nor memory grows with the length of sessions. Nobody is compared with themselves: `left_out` says
    for each session where in the cohort the person claimed is, −1 for nowhere.

    Sessions may come and go: make as many as there can be at a time, and `restart` one in the name of whoever
    comes. An update is refused, or interrupted, as a whole: every session is then as it was before.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(1, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[typing["session"] < 5])
    >>> sessions = verifier.watch_many(["ada", "ada"])
    >>> watched = sessions.update_keystrokes(typing[typing["session"] == 5], [0] * 80)
    >>> sessions.locked_at.tolist()
    [0, 0]
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
        self._leave_out(np.arange(n), left_out)
        self._record = record_of(self._state(np.zeros(0, dtype=np.int64)))

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
        which = self._streams.numbers(sessions)
        places = self._left_out[which] if claimed is None else self._places(left_out, len(which))
        self._streams.restart(which, claimed)
        for array in (self._sums, self._weights, self._suspicion, self._locked_at):
            array[which] = 0
        self._press[which] = np.nan
        self._leave_out(which, places)

    def update(
        self,
        values: ArrayLike,
        keys: Any = None,
        sessions: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
    ) -> Watched:
        """The next events, as `PopulationStreams.update` takes them: many sessions, in any order."""
        which = self._streams.numbers(sessions, distinct=False)
        return self._updated(values, keys, codes, which, None)

    def update_keystrokes(self, keystrokes: pd.DataFrame, sessions: ArrayLike) -> Watched:
        """The next keystrokes, in order of press: `keyname`, `timepress`, `timerelease`, other features.

        A time that is 0 or negative, which no model of times can take, is taken as not seen.
        """
        names = ("keyname", "timepress", "timerelease")
        others = self._features[2:]
        check_columns(keystrokes, (*names, *others))
        press, release, *further = (
            keystrokes[name].to_numpy(dtype=np.float64) for name in (*names[1:], *others)
        )
        columns = np.column_stack(further) if others else None
        return self.update_typed(keystrokes["keyname"].tolist(), press, release, sessions, further=columns)

    def update_typed(
        self,
        keys: Any,
        press: ArrayLike,
        release: ArrayLike,
        sessions: ArrayLike,
        *,
        codes: ArrayLike | None = None,
        further: ArrayLike | None = None,
    ) -> Watched:
        """The same from lists or arrays, without the time that data frames take.

        `codes` from `check_typed` or `encode` may stand in place of `keys`, which then are None. `further`
        are (B, F − 2), the values of further features.
        """
        which = self._streams.numbers(sessions, distinct=False)
        pressed, released = _times(press, release, len(which))
        order = np.argsort(which, kind="stable")
        s, risen = which[order], pressed[order]
        first = _begins(s)
        earlier = np.empty(len(s))
        earlier[1:] = risen[:-1]
        earlier[first] = self._press[s[first]]
        values = np.empty((len(which), len(self._features)))
        values[order, 0] = risen - earlier
        values[:, 1] = released - pressed
        times = values[:, :2]
        times[(times <= 0) | (times > LONGEST)] = np.nan
        if len(self._features) > 2 or further is not None:
            others = np.asarray(further, dtype=np.float64)
            if others.shape != (len(which), len(self._features) - 2):
                raise ValueError(f"further must be {len(self._features) - 2} values per keystroke")
            values[:, 2:] = others
        return self._updated(values, keys, codes, which, pressed)

    def check_typed(self, keys: Any, press: ArrayLike, release: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """Codes, presses and releases as `update_typed` takes them; a `ValueError` says what is wrong.

        What passes here is not refused there: whoever advances many sessions in one call checks what each
        has sent when it comes, so that nobody's mistake holds up the others.
        """
        codes = self.encode(keys)
        return codes, *_times(press, release, len(codes))

    def state(self, sessions: ArrayLike | None = None) -> bytes:
        """All that is needed to go on with these sessions (all unless named) anywhere."""
        return packed(self._state(self._streams.numbers(sessions)))

    def states_of(self, sessions: ArrayLike | None = None) -> list[bytes]:
        """The `state` of each of these sessions (all unless named) for itself, in a fraction of the time."""
        return packed_each(self._state(self._streams.numbers(sessions)))

    def resume(self, contents: bytes | Sequence[bytes], sessions: ArrayLike | None = None) -> None:
        """Let these sessions (all unless named) go on from a `state`, or a `ValueError` says why not.

        Several states, as `states_of` gives them, are taken all or none.
        """
        state = parsed(contents if isinstance(contents, bytes) else joined(contents), self._record)
        which = self._streams.numbers(sessions)
        for name, array in self._own().items():
            found = state[name]
            if found.shape != (len(which), *array.shape[1:]):
                raise ValueError(f"the state's {name} does not fit these sessions")
            if not (np.isfinite(found) | (np.isnan(found) & (name == "press"))).all():
                raise ValueError(f"the state's {name} has values out of range")
        if (state["locked_at"] < 0).any() or (state["sums"][:, -1] < 0).any():
            raise ValueError("the state has values out of range: locked_at or sums")
        if (state["sums"][:, 1:-1] <= ABSENT).all(axis=1).any():
            raise ValueError("the state's sums leave nobody in the cohort")
        self._streams.restore(state, which)
        for name, array in self._own().items():
            array[which] = state[name]

    def _state(self, which: Integers) -> Tensors:
        return self._streams.state(which) | {name: array[which] for name, array in self._own().items()}

    def _updated(
        self, values: ArrayLike, keys: Any, codes: ArrayLike | None, which: Integers, press: Floats | None
    ) -> Watched:
        """After the next events, or as it was if that does not succeed."""
        order = np.argsort(which, kind="stable")
        s = which[order]
        begins = np.flatnonzero(_begins(s))
        own, offsets = s[begins], np.append(begins, len(s))
        kept = self._streams.kept(own), {name: array[own] for name, array in self._own().items()}
        try:
            found = self._advanced(values, keys, codes, which, order, own, offsets)
            if press is not None:
                self._press[own] = press[order[offsets[1:] - 1]]
        except BaseException:
            self._streams.put_back(own, kept[0])
            for name, array in self._own().items():
                array[own] = kept[1][name]
            raise
        return found

    def _advanced(
        self,
        values: ArrayLike,
        keys: Any,
        codes: ArrayLike | None,
        which: Integers,
        order: Integers,
        own: Integers,
        offsets: Integers,
    ) -> Watched:
        """The same, with the sessions that have events, and where their events begin in this order."""
        before, settings = self._streams.n_events[own], self._watching
        hidden = np.empty((len(which), self._streams.n_states))
        terms = self._streams.update(values, keys, which, codes=codes, states=hidden)[order]
        absent = self._left_out[which[order]]
        there = np.flatnonzero(absent >= 0)
        terms[there, 1 + absent[there]] = ABSENT
        states = self._sums[own], self._weights[own], self._suspicion[own]
        sums, n_keys = faded(terms, offsets, settings.ratio_keeps, states[0])
        steps = increments(terms, offsets, settings.keep, settings.least, states[1])
        level = suspicion(steps, offsets, settings.accept, states[2])
        ratio = np.full(len(terms), np.nan)
        known = n_keys > 0
        if known.any():
            ratio[known] = self._evidence(sums[known], n_keys[known])
        number = np.repeat(before - offsets[:-1], np.diff(offsets)) + np.arange(len(terms)) + 1
        self._sums[own], self._weights[own], self._suspicion[own] = states
        at = self._first_lock(own, offsets, number, level)
        pausing = hidden[order, 1] if hidden.shape[1] > 1 else np.full(len(order), np.nan)
        return _in_order(Watched(ratio, n_keys, level, (at > 0) & (at <= number), pausing), order)

    def _places(self, places: ArrayLike | None, n: int) -> Integers:
        """Places in the cohort, −1 for nowhere."""
        found = np.full(n, -1) if places is None else np.asarray(places, dtype=np.int64)
        most = self._streams.n_templates - 2
        if found.shape != (n,) or (found < -1).any() or (found > most).any():
            raise ValueError(f"left_out must be places in the cohort, 0 to {most}, or -1")
        return found

    def _leave_out(self, which: Integers, places: ArrayLike | None) -> None:
        """Where in the cohort the person claimed is, who does not count."""
        found = self._places(places, len(which))
        self._left_out[which] = found
        there = found >= 0
        self._weights[which[there], found[there]] = ABSENT

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
    """One session: `WatchedSessions` of one.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(1, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[typing["session"] < 5])
    >>> watch = verifier.watch("ada")
    >>> watched = watch.update(typing[typing["session"] == 5])
    >>> watch.standing, watch.locked_at
    ('trusted', None)
    """

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


def _times(press: ArrayLike, release: ArrayLike, n: int) -> tuple[Floats, Floats]:
    """Presses and releases of n keystrokes, checked; a release may be missing."""
    pressed, released = times_given(press, "timepress", n), times_given(release, "timerelease", n)
    refuse(np.isnan(pressed), "timepress", "is missing")
    return pressed, released


def _begins(sessions: Integers) -> Truths:
    """Where another session begins among sessions that are in order."""
    begins = np.ones(len(sessions), dtype=bool)
    begins[1:] = sessions[1:] != sessions[:-1]
    return begins


def _in_order(found: Watched, order: Integers) -> Watched:
    """Rows that were taken in another order, in their own."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Watched(
        found.ratio[place],
        found.keys[place],
        found.suspicion[place],
        found.locked[place],
        found.pausing[place],
    )
