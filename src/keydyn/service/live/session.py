"""A live session: the person it is for, the frames that wait to be judged, and the answers to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.watching.playback import PlaybackCheck
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
    """An admitted connection: the person that it watches, and what it may do.

    Attributes
    ----------
    session_id : the id of the session to continue; None to open a new one
    enrolled : the person's enrolment, made with the background's population
    background_id : an id that tells backgrounds apart
    left_out : the person's place in the background's cohort; −1 if they are not part of it
    watching : how to watch; sessions with the same background and the same settings are advanced together
    actor : the caller, as the audit log names them
    may_unlock : whether this connection may unlock the session without a token
    secret : the secret that keys the fingerprints of the person's samples
    key_id : the key that opened the connection or made its token; the session ends when it is revoked
    expires_at : when the token expires, in milliseconds since 1970; None for a key
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
        """Describe an event of a session on this connection."""
        ids = self.tenant_id, self.user_id, session_id
        return SessionEvent(what, *ids, at, keystroke, self.actor, self.data_key, reason)


# Both functions are called in a thread, and raise a `Problem` to refuse. A connection is admitted by the user
# in the path, the headers, the client's address ("" if unknown) and the first frame.
Admit = Callable[[str, Mapping[str, str], str, Hello], Admitted]
# Called with the admitted connection, the session's id, and the token that should unlock it (None for the
# connection's own key). Returns the number of the lock that may be opened, or None for any.
CheckUnlock = Callable[[Admitted, str, str | None], int | None]


@dataclass(eq=False, repr=False, slots=True)
class Live:
    """A session that is live in this process; used on the event loop only.

    Attributes
    ----------
    playback : detects recordings, with fingerprints of earlier samples and of this session's keys
    client : the connection; None when it has gone and only the last save is left to do
    accepted, judged, durable : the numbers of the last keystroke taken, judged and made durable
    locked_at : when the session was locked, in milliseconds since 1970; None if it is not locked
    locks : how often the session was locked
    states : whether the client asked for the hidden states
    typed : whether a hand types, according to the last check
    event : "locked" or "unlocked" until that is durable; answers are held back until then
    event_keystroke, event_reason : the keystroke of the event, and the reason for a lock other than suspicion
    moved_at : when the oldest change that is not durable was made (monotonic clock); None if there is none
    held : the answers that are held back until the event is durable
    waiting : the number of frames that wait to be judged
    lost : whether another connection has the session now, or it no longer exists; nothing more is stored
    """

    id: str
    epoch: int
    admitted: Admitted
    pool: WatchedPool
    place: int
    playback: PlaybackCheck
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
    # `quiet` is set when no frame waits; `settled` are done when all is durable, or the session is lost.
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    settled: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class Waiting:
    """A frame that waits for its turn, with the new keystrokes, if any, or the problem to answer."""

    live: Live
    first: int
    last: int
    keys: Keys | None
    problem: Problem | None
    read_at: float


@dataclass(frozen=True, eq=False, slots=True)
class FrameAnswer:
    """The result of judging a frame."""

    frame: Waiting
    trust: list[float]
    suspicion: list[float]
    pausing: float | None
    locked: bool
    states: list[float | None] | None = None
    reason: str | None = None
    # Whether a hand types; None if that was not checked.
    typed: TypedBy | None = None
