"""Watching many sessions at once: one call advances all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Direct, Floats, Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.decision import NOT_JUDGED, Typed
from keydyn.decisions.watching.by_hand import ByHand, Look
from keydyn.decisions.watching.watched import ABSENT, Standing, Watched, Watching, watch
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.files import Tensors
from keydyn.keystrokes.one_sample import out_of_reach, times_given
from keydyn.keystrokes.schema import check_columns, refuse
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template
from keydyn.population.stream.session_state import joined, packed, packed_each, parsed, record_of
from keydyn.population.stream.streams import Runs, begins_of, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.decisions.watching.markov_streams import MarkovStreams, TermStreams

# The arrays with one row per session that `WatchedSessions` keeps besides its streams, in attributes of these
# names with an underscore.
NUMBERS = ("sums", "weights", "suspicion", "locked_at", "press")

_watch = Direct(watch)


class WatchedSessions:
    """S sessions, each in the name of one person, compared with a cohort that all share.

    With a population, the evidence of an event is known only with the next one, because it depends on the
    next key. Neither the time of an update nor memory grows with the length of sessions. People are not
    compared with their own templates: `left_out` gives for each session the claimed person's place in the
    cohort, −1 for none.

    Sessions may come and go: make as many as there can be at a time, and `restart` one in another person's
    name. If an update is refused or interrupted, every session stays as it was before.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> sessions = Verifier.shipped().watch_pool(2)  # `watch_many` begins in users' names
    >>> watched = sessions.update_keystrokes(make_typists(1, 1, "free", 80), [0] * 80)
    >>> sessions.locked_at.tolist()
    [0, 0]
    """

    # Only sessions of a population are checked for forgeries.
    _by_hand: ByHand | None = None

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
            raise ValueError("a claim is judged against a cohort, and there is no one in it")
        streams = population.online_many(claimed, cohort)
        self._begin(streams, population.parameters.features, calibration, watching, left_out)
        self._by_hand = ByHand(population, claimed, watching.alarms)

    @classmethod
    def over(
        cls, streams: MarkovStreams, calibration: Calibration, watching: Watching, left_out: ArrayLike
    ) -> WatchedSessions:
        """Watch sessions of hidden Markov models, which cannot be stored or given to another person."""
        made = cls.__new__(cls)
        made._begin(streams, streams.features, calibration, watching, left_out)
        return made

    def _begin(
        self,
        streams: TermStreams,
        features: tuple[str, ...],
        calibration: Calibration,
        watching: Watching,
        left_out: ArrayLike | None,
    ) -> None:
        self._streams, self._features = streams, features
        self._calibration, self._limits = calibration, watching.limits
        n, U = len(streams), streams.n_templates
        self._sums, self._weights = np.zeros((n, U + 1)), np.zeros((n, U - 1))
        self._suspicion, self._press = np.zeros(n), np.full(n, np.nan)
        self._locked_at: Integers = np.zeros(n, dtype=np.int64)
        self._changing = tuple(getattr(self, f"_{name}") for name in NUMBERS)
        self._left_out: Integers = np.full(n, -1)
        self._leave_out(np.arange(n), left_out)

    @cached_property
    def _record(self) -> np.dtype[Any]:
        """The layout of one session's state."""
        return record_of(self._state(np.zeros(0, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def locked_at(self) -> Integers:
        """(S,) the key, from 1, at which each session was locked; 0 if it is not."""
        return self._locked_at.copy()

    @property
    def states(self) -> Floats:
        """(S, 2) probability that each session's typist was active, or paused, at the key before the last.

        There is one column if the population has no hidden states.
        """
        return self._streams.states

    def typed(self, session: int = 0) -> Typed:
        """Whether a session is typed by hand, judged by its last block; "unsure" before there is one."""
        return NOT_JUDGED if self._by_hand is None else self._by_hand.typed(session)

    def encode(self, keys: Any) -> Integers:
        """The code of each key's name, for `update(codes=…)`."""
        return self._streams.encode(keys)

    def restart(
        self,
        sessions: ArrayLike | None = None,
        claimed: Sequence[Template] | None = None,
        left_out: ArrayLike | None = None,
    ) -> None:
        """Begin these sessions (all unless named) anew, trusted.

        `claimed` gives each another person's template, and `left_out` these people's places in the cohort.
        """
        which = self._streams.numbers(sessions)
        places = self._left_out[which] if claimed is None else self._places(left_out, len(which))
        self._streams.restart(which, claimed)
        for array in (self._sums, self._weights, self._suspicion, self._locked_at):
            array[which] = 0
        self._press[which] = np.nan
        if self._by_hand is not None:
            self._by_hand.restart(which, claimed)
        self._leave_out(which, places)

    def lock(self, session: int, back: int = 1) -> None:
        """Lock a session at its last event, or this many events from its end."""
        self._locked_at[session] = self._streams.n_events[session] - back + 1

    def update(
        self,
        values: ArrayLike,
        keys: Any = None,
        sessions: ArrayLike | None = None,
        *,
        codes: ArrayLike | None = None,
    ) -> Watched:
        """Take the next events of many sessions, in any order, as `PopulationStreams.update` does."""
        which = self._streams.numbers(sessions, distinct=False)
        return self._updated(values, keys, codes, which, None)

    def update_keystrokes(self, keystrokes: pd.DataFrame, sessions: ArrayLike) -> Watched:
        """Take the next keystrokes, in order of press.

        The columns are `keyname`, `timepress`, `timerelease` and other features. Times that are shorter or
        longer than hands can produce count as missing.
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
        """Take the next keystrokes from lists or arrays, which is faster than from a data frame.

        `codes` from `check_typed` or `encode` may replace `keys`, which are None then. `further` has the
        values of further features, (B, F − 2).
        """
        which = self._streams.numbers(sessions, distinct=False)
        pressed, released = _times(press, release, len(which))
        order = np.argsort(which, kind="stable")
        s, risen = which[order], pressed[order]
        first = begins_of(s)
        earlier = np.empty(len(s))
        earlier[1:] = risen[:-1]
        earlier[first] = self._press[s[first]]
        values = np.empty((len(which), len(self._features)))
        values[order, 0] = risen - earlier
        values[:, 1] = released - pressed
        wrong_intervals, wrong_holds = out_of_reach(values[:, 0], values[:, 1])
        values[wrong_intervals, 0] = np.nan
        values[wrong_holds, 1] = np.nan
        if len(self._features) > 2 or further is not None:
            others = np.asarray(further, dtype=np.float64)
            if others.shape != (len(which), len(self._features) - 2):
                raise ValueError(f"further must be {len(self._features) - 2} values per keystroke")
            values[:, 2:] = others
        return self._updated(values, keys, codes, which, pressed)

    def check_typed(self, keys: Any, press: ArrayLike, release: ArrayLike) -> tuple[Integers, Floats, Floats]:
        """Check keystrokes, and return codes, presses and releases as `update_typed` takes them.

        A `ValueError` says what is wrong with them. Keystrokes that pass here are not refused there, so a
        server that advances many sessions in one call can check each client's keystrokes on arrival, and one
        client's mistake does not hold up the others.
        """
        codes = self.encode(keys)
        return codes, *_times(press, release, len(codes))

    def state(self, sessions: ArrayLike | None = None) -> bytes:
        """The state that another process needs to continue these sessions (all unless named)."""
        return packed(self._state(self._streams.numbers(sessions)))

    def states_of(self, sessions: ArrayLike | None = None) -> list[bytes]:
        """The `state` of each of these sessions (all unless named), much faster than one at a time."""
        return packed_each(self._state(self._streams.numbers(sessions)))

    def resume(self, contents: bytes | Sequence[bytes], sessions: ArrayLike | None = None) -> None:
        """Continue these sessions (all unless named) from a `state`; a `ValueError` says what does not fit.

        If there are several states, as `states_of` gives them, either all are taken or none.
        """
        state = parsed(contents if isinstance(contents, bytes) else joined(contents), self._record)
        which = self._streams.numbers(sessions)
        if len(state["sums"]) != len(which):
            raise ValueError(f"the state of {len(state['sums'])} sessions does not fit {len(which)}")
        for name in NUMBERS:
            if not (np.isfinite(state[name]) | (np.isnan(state[name]) & (name == "press"))).all():
                raise ValueError(f"the state's {name} has values out of range")
        if (state["locked_at"] < 0).any() or (state["sums"][:, -1] < 0).any():
            raise ValueError("the state has values out of range: locked_at or sums")
        cohort = state["sums"][:, 1:-1].copy()
        there = np.flatnonzero(self._left_out[which] >= 0)
        cohort[there, self._left_out[which[there]]] = ABSENT
        # No sum of terms comes near ABSENT; one that did could count as absent after the next key.
        if (cohort <= ABSENT / 2).all(axis=1).any():
            raise ValueError("the state's sums leave nobody in the cohort")
        if self._by_hand is not None:
            self._by_hand.check(state)
        self._streams.restore(state, which)
        for name, array in self._own().items():
            array[which] = state[name]

    def _state(self, which: Integers) -> Tensors:
        return self._streams.state(which) | {name: array[which] for name, array in self._own().items()}

    def _updated(
        self, values: ArrayLike, keys: Any, codes: ArrayLike | None, which: Integers, press: Floats | None
    ) -> Watched:
        """Advance by the next events; if that fails, every session is as it was before."""
        rows, typed = self._streams.given(values, keys, codes, len(which))
        runs = Runs.of(which)
        own, order = runs.own, runs.order
        if len(order) > 1:
            rows, typed = rows[order], typed[order]
        kept = self._kept(runs)
        try:
            times = rows.astype(np.float32)
            before = self._streams.events_in(own)
            scored = self._streams.advance(runs, rows, typed)
            found = self._advanced(scored.events, runs, before)
            looks = [] if self._by_hand is None else self._by_hand.take(runs, typed, times)
            for look in looks:
                if look.forged:
                    self._lock_as_forged(look, runs, before, found)
            if press is not None:
                self._press[own] = press[order[runs.offsets[1:] - 1]]
        except BaseException:
            self._put_back(kept)
            raise
        pausing = scored.states[:, 1] if scored.states.shape[1] > 1 else np.full(len(which), np.nan)
        if len(order) > 1:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            found, pausing = found[:, back], pausing[back]
            looks = [look._replace(event=int(order[look.event])) for look in looks]
        ratio, n_keys, suspicion, locked = found
        return Watched(ratio, n_keys, suspicion, locked > 0, pausing, tuple(looks))

    def _lock_as_forged(self, look: Look, runs: Runs, before: Integers, found: Floats) -> None:
        """Lock a session from this look on, unless it is locked already, and note it in `found`."""
        run = int(np.searchsorted(runs.offsets, look.event, side="right")) - 1
        if found[3, look.event] == 0.0:
            self._locked_at[look.session] = before[run] + look.event - runs.offsets[run] + 1
        found[3, look.event : runs.offsets[run + 1]] = 1.0

    def _kept(self, runs: Runs) -> tuple[Any, ...]:
        """Copy what is needed to restore sessions if these events cannot be taken."""
        rows = rows_of(runs.own)
        by_hand = None if self._by_hand is None else self._by_hand.kept(rows, runs)
        own = [array[rows].copy() for array in self._changing]
        return rows, self._streams.kept(rows), own, by_hand

    def _put_back(self, kept: tuple[Any, ...]) -> None:
        rows, streams, own, by_hand = kept
        self._streams.put_back(rows, streams)
        for array, copy in zip(self._changing, own, strict=True):
            array[rows] = copy
        if self._by_hand is not None:
            self._by_hand.put_back(by_hand)

    def _advanced(self, terms: Floats, runs: Runs, before: Integers) -> Floats:
        """(4, B) results of `watch` after each event, from terms ordered by session."""
        own, found = runs.own, np.empty((4, len(terms)))
        sums, weights, suspicion, locked_at, _ = self._changing
        alone = len(self._left_out) == 1
        if not alone:
            sums, weights, suspicion, locked_at = sums[own], weights[own], suspicion[own], locked_at[own]
        standing = Standing(sums, weights, suspicion, locked_at, before, self._left_out[own])
        _watch(terms, runs.offsets, standing, self._limits, self._calibration.tables, found)
        if not alone:
            self._sums[own], self._weights[own], self._suspicion[own], self._locked_at[own] = standing[:4]
        return found

    def _places(self, places: ArrayLike | None, n: int) -> Integers:
        """Check places in the cohort; −1 stands for none."""
        found = np.full(n, -1) if places is None else np.asarray(places, dtype=np.int64)
        most = self._streams.n_templates - 2
        if found.shape != (n,) or (found < -1).any() or (found > most).any():
            raise ValueError(f"left_out must be places in the cohort, 0 to {most}, or -1")
        return found

    def _leave_out(self, which: Integers, places: ArrayLike | None) -> None:
        """Leave the claimed people out of the cohort at these places."""
        found = self._places(places, len(which))
        self._left_out[which] = found
        there = found >= 0
        self._weights[which[there], found[there]] = ABSENT

    def _own(self) -> dict[str, Any]:
        """The arrays of all sessions that belong to a state, besides those of the streams."""
        own = {name: getattr(self, f"_{name}") for name in NUMBERS}
        return own if self._by_hand is None else own | self._by_hand.tables()


def _times(press: ArrayLike, release: ArrayLike, n: int) -> tuple[Floats, Floats]:
    """Presses and releases of n keystrokes, checked; a release may be missing."""
    pressed, released = times_given(press, "timepress", n), times_given(release, "timerelease", n)
    refuse(np.isnan(pressed), "timepress", "is missing")
    return pressed, released


def watched_sessions(
    background: Background, claimed: Sequence[Detector], watching: Watching, left_out: ArrayLike
) -> WatchedSessions:
    """Watch sessions with a background's cohort; a `ValueError` if its detector cannot follow sessions."""
    everyone = [*claimed, *background.others]
    n, calibration = len(claimed), background.calibrations.typical
    of_population = [one.template_ for one in everyone if isinstance(one, PopulationDetector)]
    if len(of_population) == len(everyone):
        own, cohort = of_population[:n], of_population[n:]
        return WatchedSessions(background.population, own, cohort, calibration, watching, left_out)
    # Not loaded in the usual case, that of a population.
    from keydyn.decisions.watching.markov_streams import MarkovStreams
    from keydyn.detectors.markov import Markov

    models = [one for one in everyone if isinstance(one, Markov)]
    if len(models) < len(everyone):
        raise ValueError(f"sessions cannot be followed key by key with {background.pattern.name}")
    return WatchedSessions.over(MarkovStreams(models[:n], models[n:]), calibration, watching, left_out)
