"""A single watched session (`Watch`), and a pool of sessions that come and go (`WatchedPool`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.decision import Typed
from keydyn.decisions.liveness.copies import SHORTEST_SECRET, Fingerprints
from keydyn.decisions.watching.playback import PlaybackCheck
from keydyn.decisions.watching.sessions import WatchedSessions
from keydyn.decisions.watching.watched import Watched, Watching
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.population.shared_parameters import Template

if TYPE_CHECKING:
    import pandas as pd

TRUSTED, LOCKED = "trusted", "locked"
# The number of places in the smallest pool.
FEWEST_PLACES = 64


class Watch:
    """A single watched session, which is locked by suspicion or because its keys were not typed.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> verifier, typing = Verifier.shipped(), make_typists(1, 2, "free", 80)
    >>> enrolled = verifier.enrol("ada", typing[:80])
    >>> watch = verifier.watch("ada")
    >>> watched = watch.update(typing[80:])
    >>> watch.standing, watch.locked_at
    ('trusted', None)
    """

    def __init__(self, session: WatchedSessions, playback: PlaybackCheck | None = None) -> None:
        if len(session) != 1:
            raise ValueError(f"a watch follows one session, not {len(session)}")
        # Without fingerprints of the person, only repetitions within the session are recognised.
        self._playback = playback or PlaybackCheck(Fingerprints.none(), bytes(SHORTEST_SECRET))
        self._sessions = session
        #: The reason why the session was locked, if its keys were not typed: "a recording", "too regular",
        #: "pasted" or "forged", with an explanation; else None.
        self.reason: str | None = None

    def __repr__(self) -> str:
        """The standing of the session and, if it is locked, the key at which it was."""
        return f"<Watch: {self.standing}{f' at key {self.locked_at}' if self.locked_at else ''}>"

    @property
    def standing(self) -> str:
        """Whether the session is "trusted" or "locked"."""
        return TRUSTED if self.locked_at is None else LOCKED

    @property
    def pausing(self) -> float:
        """Probability that the typist paused at the key before the last.

        It is NaN before there were two keys, and if the population has no hidden states.
        """
        states = self._sessions.states[0]
        return float(states[1]) if len(states) > 1 else np.nan

    @property
    def typed(self) -> Typed:
        """Whether the session is typed by hand, judged by its last block; "unsure" before there is one."""
        return self._sessions.typed()

    @property
    def locked_at(self) -> int | None:
        """The key, from 1, at which the session was locked; None if it is not."""
        return int(self._sessions.locked_at[0]) or None

    def update(self, keystrokes: pd.DataFrame) -> Watched:
        """Take the next keystrokes, one or more, as `WatchedSessions.update_keystrokes` does.

        Recordings, and keys that are too regular or pasted, are noticed only here, because this needs presses
        and releases; forged typing is also noticed by `update_values`.
        """
        was_locked = self.locked_at is not None
        found = self._sessions.update_keystrokes(keystrokes, np.zeros(len(keystrokes), dtype=np.int64))
        self._note(found, was_locked)
        columns = ("keyname", "timepress", "timerelease")
        not_typed = self._playback.take(*(keystrokes[name].tolist() for name in columns))
        if not_typed is None:
            return found
        at, reason = not_typed
        if not found.locked[at]:
            self.reason = reason
            self._sessions.lock(0, len(keystrokes) - at)
        return replace(found, locked=found.locked | (np.arange(len(keystrokes)) >= at))

    def update_values(self, values: ArrayLike, keys: Any) -> Watched:
        """Take the next events, given as values (B, F) and keys."""
        was_locked = self.locked_at is not None
        rows = np.asarray(values, dtype=np.float64)
        found = self._sessions.update(rows, keys, np.zeros(len(rows), dtype=np.int64))
        self._note(found, was_locked)
        return found

    def _note(self, found: Watched, was_locked: bool) -> None:
        """Remember the reason if these events locked the session because they were forged."""
        if found.looks and not was_locked and found.locked[-1]:
            self.reason = found.forged(int(np.argmax(found.locked)))

    def restart(self) -> None:
        """Begin another session of the same person, trusted; what was typed so far is remembered."""
        self._sessions.restart()
        self._playback.restart()
        self.reason = None

    def state(self) -> bytes:
        """The state that another process needs to continue the session."""
        return self._playback.packed_with(self._sessions.state())

    def resume(self, contents: bytes) -> None:
        """Continue from a `state`; a `ValueError` says what does not fit."""
        self._sessions.resume(self._playback.resume(contents))


class NotWatchableError(ValueError):
    """Raised when sessions of a background or person cannot be watched in a pool."""


class WatchedPool:
    """A pool of watched sessions that join and leave; threads must not use it at the same time."""

    def __init__(self, background: Background, watching: Watching) -> None:
        self._cohort = [_template(one) for one in background.others]
        if len(background.population.parameters.features) > 2:
            raise NotWatchableError("the population expects more than the times of keys")
        self._background, self._watching = background, watching
        self._claimed: list[Template] = []
        self._left_out: list[int] = []
        self._free: list[int] = []
        self._sessions: WatchedSessions | None = None

    def __len__(self) -> int:
        """The number of sessions."""
        return len(self._claimed) - len(self._free)

    def join(self, claimed: Detector, left_out: int, state: bytes | None) -> tuple[int, bool]:
        """Add a session; return its place, and whether it continues from the state, if that fits."""
        template = _template(claimed)
        if not self._free:
            self._grow()
        place = self._free.pop()
        sessions = self._all
        try:
            sessions.restart([place], [template], [left_out])
        except ValueError:
            self._free.append(place)
            raise
        self._claimed[place], self._left_out[place] = template, left_out
        if state is None:
            return place, False
        try:
            sessions.resume(state, [place])
        except ValueError:
            sessions.restart([place])
            return place, False
        return place, True

    def leave(self, place: int) -> None:
        """Remove a session, so that its place is free again."""
        self._all.restart([place], [self._cohort[0]], [-1])
        self._claimed[place], self._left_out[place] = self._cohort[0], -1
        self._free.append(place)

    def restart(self, place: int) -> None:
        """Begin a session anew, trusted."""
        self._all.restart([place])

    def typed(self, place: int) -> Typed:
        """Whether a session is typed by hand."""
        return self._all.typed(place)

    def states(self, places: Sequence[int]) -> list[bytes]:
        """The state that another process needs to continue each of these sessions."""
        return self._all.states_of(places)

    def advance(self, places: Integers, names: list[str], times: Floats) -> Watched:
        """Take keystrokes: places (B,), keys and times (2, B); a `ValueError` leaves everything unchanged."""
        return self._all.update_typed(names, times[0], times[1], places)

    @property
    def _all(self) -> WatchedSessions:
        if self._sessions is None:
            raise ValueError("there are no sessions")
        return self._sessions

    def _grow(self) -> None:
        """Double the places; the sessions in them stay where they are."""
        n = len(self._claimed)
        more = max(n, FEWEST_PLACES)
        claimed, left_out = self._claimed + self._cohort[:1] * more, self._left_out + [-1] * more
        known = self._background
        grown = WatchedSessions(
            known.population, claimed, self._cohort, known.calibrations.typical, self._watching, left_out
        )
        if self._sessions is not None:
            grown.resume(self._sessions.states_of(), np.arange(n))
        self._sessions, self._claimed, self._left_out = grown, claimed, left_out
        self._free = list(range(n + more - 1, n - 1, -1))


def _template(one: Detector) -> Template:
    if not isinstance(one, PopulationDetector):
        raise NotWatchableError(f"templates of {one.name} cannot be followed")
    return one.template_
