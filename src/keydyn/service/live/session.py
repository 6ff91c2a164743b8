"""A live session, its frames that wait to be judged, and what was found about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from keydyn.decisions.watching.watch import WatchedPool
from keydyn.service.live.admission import Admitted
from keydyn.service.live.peer import Peer
from keydyn.service.live.protocol import Keys
from keydyn.service.problems import Problem

LOCKED, UNLOCKED = "locked", "unlocked"


@dataclass(eq=False, repr=False, slots=True)
class Live:
    """A session that is live in this process; belongs to the event loop.

    Attributes
    ----------
    client : its connection; None when that has gone and only the last save is left to do
    accepted, judged, durable : the last keystroke that was taken, that was judged, that is durable
    locked_at : when it was locked, in milliseconds since 1970
    states : whether the client asked for the hidden states
    event : "locked" or "unlocked" while that is not durable: until then nothing is answered
    event_keystroke : the keystroke at which that happened
    moved_at : since when something is not durable, on the monotonic clock; None if everything is
    held : answers that wait until the event is durable
    waiting : the number of its frames that wait to be judged
    lost : whether it belongs to another connection now, or is gone: nothing of it is written
    """

    id: str
    epoch: int
    admitted: Admitted
    pool: WatchedPool
    place: int
    client: Peer | None
    accepted: int
    judged: int
    durable: int
    locked_at: int | None
    restarted: bool
    states: bool
    event: str = ""
    event_keystroke: int = 0
    moved_at: float | None = None
    held: list[Answer] = field(default_factory=list)
    waiting: int = 0
    lost: bool = False
    # Set when no frame waits; done when all is durable, or the session is lost.
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    settled: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class Waiting:
    """A frame that waits for its turn: keystrokes to judge, none if all are known, or what is wrong."""

    live: Live
    first: int
    last: int
    keys: Keys | None
    problem: Problem | None
    read_at: float


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What was found about a frame."""

    frame: Waiting
    trust: list[float]
    suspicion: list[float]
    pausing: float | None
    locked: bool
    states: list[float | None] | None = None
