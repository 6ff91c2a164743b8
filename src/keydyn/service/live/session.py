"""A live session: whom it is for, its frames that wait to be judged, and the answers to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.watching.recordings import Recording
from keydyn.decisions.watching.watch import WatchedPool
from keydyn.decisions.watching.watched import Watching
from keydyn.service.live.frame_text import Keys
from keydyn.service.live.peer import Peer
from keydyn.service.live.session_rows import SessionEvent
from keydyn.service.problems import Problem
from keydyn.service.storage.sealing import DataKey
from keydyn.service.wire.answers import TypedBy
from keydyn.service.wire.watch_frames import Hello

LOCKED, UNLOCKED = "locked", "unlocked"


@dataclass(frozen=True, eq=False, repr=False)
class Admitted:
    """What a session needs to know about the person it is for.

    Attributes
    ----------
    session_id : of a session to continue; None for a new one
    enrolled : made with the background's population
    background_id : which tells backgrounds apart
    left_out : the person's place in the background's cohort, −1 for nowhere
    watching : sessions of one background, watched the same way, are advanced together
    actor : who connected, as the audit log names them
    may_unlock : whether this connection may unlock without a token
    secret : that keys the fingerprints of the person's samples
    key_id : the key that it was opened with, or that made its token; the session ends with it
    expires_at : when its token ends, in milliseconds since 1970; None for a key
    coarse : whether trust is reported in coarse steps only
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
    secret: bytes
    key_id: str
    expires_at: int | None
    coarse: bool = False

    def event(
        self, what: str, session_id: str, at: int, keystroke: int, reason: str | None = None
    ) -> SessionEvent:
        """What happened to a session on this connection."""
        ids = self.tenant_id, self.user_id, session_id
        return SessionEvent(what, *ids, at, keystroke, self.actor, self.data_key, reason)


# A `Problem` refuses; both are called in a thread. A connection is admitted by the user in the path, the
# headers, the client's address ("" if it is not known) and the first frame.
Admit = Callable[[str, Mapping[str, str], str, Hello], Admitted]
# Called with what was admitted, the session's id, and the token that is to unlock it, None for the key of the
# connection; the lock that this opens, None for any.
CheckUnlock = Callable[[Admitted, str, str | None], int | None]


@dataclass(eq=False, repr=False, slots=True)
class Live:
    """A session that is live in this process; belongs to the event loop.

    Attributes
    ----------
    recording : what is remembered of its keys, by which a recording is noticed
    client : its connection; None when that has gone and only the last save is left to do
    accepted, judged, durable : the last keystroke that was taken, that was judged, that is durable
    locked_at : when it was locked, in milliseconds since 1970
    locks : how often it was locked
    states : whether the client asked for the hidden states
    typed : whether a hand types, as the last keys were found
    event : "locked" or "unlocked" while that is not durable: until then nothing is answered
    event_keystroke, event_reason : the keystroke at which that happened, and why it was not suspicion
    moved_at : since when something is not durable, on the monotonic clock; None if everything is
    held : answers that wait until the event is durable
    waiting : the number of its frames that wait to be judged
    lost : whether another connection has taken it over, or it no longer exists: nothing more is stored
    """

    id: str
    epoch: int
    admitted: Admitted
    pool: WatchedPool
    place: int
    recording: Recording
    client: Peer | None
    accepted: int
    judged: int
    durable: int
    locked_at: int | None
    locks: int
    restarted: bool
    states: bool
    typed: TypedBy = "unsure"
    event: str = ""
    event_keystroke: int = 0
    event_reason: str | None = None
    moved_at: float | None = None
    held: list[FrameAnswer] = field(default_factory=list)
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
class FrameAnswer:
    """What was found about a frame."""

    frame: Waiting
    trust: list[float]
    suspicion: list[float]
    pausing: float | None
    locked: bool
    states: list[float | None] | None = None
    reason: str | None = None
    # Whether a hand types, if that was looked at.
    typed: TypedBy | None = None
