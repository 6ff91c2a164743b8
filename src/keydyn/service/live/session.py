"""What a session needs of the person, a live session, its frames that wait, and what was found about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.watching.watch import WatchedPool
from keydyn.decisions.watching.watched import Watching
from keydyn.service.live.peer import Peer
from keydyn.service.live.protocol import Keys
from keydyn.service.problems import Problem
from keydyn.service.storage.sealing import DataKey
from keydyn.service.wire.frames import Hello

LOCKED, UNLOCKED = "locked", "unlocked"


@dataclass(frozen=True)
class Arrival:
    """What a client sent when it connected.

    Attributes
    ----------
    user : in the path, as it was sent
    headers : of the request; names in any case
    client : the peer's address, empty if it is not known
    hello : the first frame, whose fields have the right types and sizes, no more
    """

    user: str
    headers: Mapping[str, str]
    client: str
    hello: Hello


@dataclass(frozen=True, eq=False, repr=False)
class Admitted:
    """What a session needs of the person it is in the name of.

    Attributes
    ----------
    session_id : of a session to continue; None for a new one
    enrolled : made with the background's population
    background_id : which tells backgrounds apart
    left_out : the person's place in the background's cohort, −1 for nowhere
    watching : sessions of one background, watched the same way, are advanced together
    actor : who connected, as the audit log names them
    may_unlock : whether this connection may unlock without a token
    """

    tenant_id: str
    user_id: str
    profile_id: str
    session_id: str | None
    enrolled: Enrolled
    background: Background
    background_id: str
    left_out: int
    watching: Watching
    data_key: DataKey
    actor: str
    may_unlock: bool


# A `Problem` refuses; both are called in a thread.
Admit = Callable[[Arrival], Admitted]
# Called with what was admitted, the session's id, and the token that is to unlock it.
CheckUnlock = Callable[[Admitted, str, str], None]


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
