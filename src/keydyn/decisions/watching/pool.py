"""Sessions of one background that come and go, with places to spare: all advance in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.watching.sessions import WatchedSessions
from keydyn.decisions.watching.watched import Watched, Watching
from keydyn.detectors import Detector, PopulationDetector
from keydyn.population.template import Template

# The number of places of the smallest pool.
FEWEST_PLACES = 64


class NotWatchableError(ValueError):
    """Sessions of this background or person cannot be watched here."""


class WatchedPool:
    """Sessions that join and leave; not for several threads at once."""

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
        """The place of a new session, and whether it continues from the state.

        It does not if the state is that of another template, population or cohort: then it begins trusted.
        """
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
        """Give a place back."""
        self._all.restart([place], [self._cohort[0]], [-1])
        self._claimed[place], self._left_out[place] = self._cohort[0], -1
        self._free.append(place)

    def restart(self, place: int) -> None:
        """Begin a session again, trusted."""
        self._all.restart([place])

    def states(self, places: Sequence[int]) -> list[bytes]:
        """What another process needs to continue each of these sessions."""
        return self._all.states_of(places)

    def advance(self, places: Integers, names: list[str], times: Floats) -> Watched:
        """Take the next keystrokes: their sessions' places (B,), their keys, and their times (2, B).

        A `ValueError` leaves all sessions as they were.
        """
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
        grown = WatchedSessions(
            self._background.population,
            claimed,
            self._cohort,
            self._background.calibration,
            self._watching,
            left_out,
        )
        if self._sessions is not None:
            grown.resume(self._sessions.states_of(), np.arange(n))
        self._sessions, self._claimed, self._left_out = grown, claimed, left_out
        self._free = list(range(n + more - 1, n - 1, -1))


def _template(one: Detector) -> Template:
    if not isinstance(one, PopulationDetector):
        raise NotWatchableError(f"templates of {one.name} cannot be followed")
    return one.template_
