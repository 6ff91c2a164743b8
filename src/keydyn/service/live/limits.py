"""Limits of live sessions, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """Limits of one process; names that end in `_s` are seconds.

    Attributes
    ----------
    sessions, sessions_per_user : the most sessions at once
    hello_s : in which a client must say who it is
    idle_s : without a frame, after which the connection is closed
    in_flight : the number of unanswered frames of a connection at which reading from it pauses
    keystrokes_per_s, burst : the rate above which reading from a connection slows down, and how many
        keystrokes may come at once
    slow_s : after which a client that takes nothing is dropped
    save_s : after which keystrokes are durable, about
    not_durable_s : after which connections are closed if nothing could be made durable
    tick_s : for which frames are collected before they are judged together
    """

    sessions: int = 5000
    sessions_per_user: int = 20
    hello_s: float = 10.0
    idle_s: float = 300.0
    in_flight: int = 8
    keystrokes_per_s: float = 100.0
    burst: float = 6000.0
    slow_s: float = 10.0
    save_s: float = 1.0
    not_durable_s: float = 30.0
    tick_s: float = 0.02


class Meter(Protocol):
    """What is counted; called on the event loop, so it must be quick."""

    def live(self, sessions: int) -> None:
        """The number of live sessions has changed."""

    def answered(self, keystrokes: int, seconds: float) -> None:
        """A frame of this many keystrokes was answered, this long after it was read."""

    def happened(self, what: str) -> None:
        """One of "opened", "resumed", "restarted", "locked", "unlocked", "refused", "not_saved" …"""


class NoMeter:
    """Counts nothing."""

    def live(self, sessions: int) -> None:
        """Do nothing."""

    def answered(self, keystrokes: int, seconds: float) -> None:
        """Do nothing."""

    def happened(self, what: str) -> None:
        """Do nothing."""
