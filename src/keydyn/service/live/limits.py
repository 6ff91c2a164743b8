"""How much live sessions may take, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """Of one process.

    Attributes
    ----------
    sessions, sessions_per_user : so many at once
    hello_s : within so many seconds a client says who it is
    idle_s : after so many seconds without a frame the connection is closed
    in_flight : while so many frames of a connection are not answered, none is read from it
    keystrokes_per_s, burst : from who sends more keystrokes than this, less is read; so many may come at once
    slow_s : a client that takes nothing for so many seconds is dropped
    save_s : what has been typed is durable after about so many seconds
    not_durable_s : if nothing could be made durable for so many seconds, connections are closed
    tick_s : frames are collected for so many seconds, and then judged together
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
        """So many sessions are live now."""

    def answered(self, keystrokes: int, seconds: float) -> None:
        """A frame of so many keystrokes was answered, so long after it was read."""

    def happened(self, what: str) -> None:
        """One of "opened", "resumed", "restarted", "locked", "unlocked", "refused", "not_saved" …"""


class NoMeter:
    """Counts nothing."""

    def live(self, sessions: int) -> None:
        """Nothing."""

    def answered(self, keystrokes: int, seconds: float) -> None:
        """Nothing."""

    def happened(self, what: str) -> None:
        """Nothing."""
