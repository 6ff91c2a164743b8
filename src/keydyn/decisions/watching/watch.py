"""One session, watched while it is typed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from keydyn.decisions.watching.sessions import WatchedSessions
from keydyn.decisions.watching.watched import Watched

TRUSTED, LOCKED = "trusted", "locked"


class Watch:
    """A single session.

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
        """Take the next keystrokes, one or more, as `WatchedSessions.update_keystrokes` does."""
        return self._sessions.update_keystrokes(keystrokes, np.zeros(len(keystrokes), dtype=np.int64))

    def update_values(self, values: ArrayLike, keys: Any) -> Watched:
        """Take the next events, given as values (B, F) and keys."""
        rows = np.asarray(values, dtype=np.float64)
        return self._sessions.update(rows, keys, np.zeros(len(rows), dtype=np.int64))

    def restart(self) -> None:
        """Begin another session of the same person, trusted."""
        self._sessions.restart()

    def state(self) -> bytes:
        """What another process needs to continue the session."""
        return self._sessions.state()

    def resume(self, contents: bytes) -> None:
        """Continue from a `state`; a `ValueError` says what does not fit."""
        self._sessions.resume(contents)
