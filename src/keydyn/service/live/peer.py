"""The client's end of a connection: the frames to send to it, and the limits that it must keep."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect

from keydyn.service.live.frame_text import problem_frame
from keydyn.service.problems import Problem


@dataclass(frozen=True)
class LiveLimits:
    """Limits of one process; names that end in `_s` are durations in seconds.

    Attributes
    ----------
    sessions, sessions_per_user : the largest number of sessions at once
    hello_s : the time in which a client must send the first frame
    idle_s : the time without a frame after which the connection is closed
    in_flight : the number of unanswered frames of a connection at which reading from it pauses
    keystrokes_per_s, burst : the rate above which reading from a connection slows down, and the number of
        keystrokes that may come at once
    slow_s : the time after which a client that does not read answers is dropped
    save_s : the interval at which keystrokes are made durable
    not_durable_s : the time after which connections are closed if nothing could be made durable
    tick_s : the time for which frames are collected, to be judged together
    check_s : the interval of the checks for keys that were revoked, tokens that expired and people who were
        erased
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
    check_s: float = 1.0


@dataclass(frozen=True)
class Ending:
    """The reason for ending a connection; if `abrupt`, the frames that are still to be sent are dropped."""

    code: int
    reason: str = ""
    abrupt: bool = False


class Peer:
    """A connected client, used on the event loop; call `took` for each frame that will be answered."""

    def __init__(self, websocket: WebSocket, limits: LiveLimits) -> None:
        self._websocket, self._limits = websocket, limits
        self._outbox: deque[tuple[str, bool]] = deque()
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._in_flight = 0
        # The number of keystrokes that may be read at once, as of the last frame.
        self._allowed = limits.burst
        self._sending_since: float | None = None
        self.heard_at = time.monotonic()
        self.ending: Ending | None = None
        self.ended = asyncio.Event()

    def took(self, keystrokes: int = 1) -> None:
        """Note that a frame was read, which will be answered."""
        now, limits = time.monotonic(), self._limits
        earned = (now - self.heard_at) * limits.keystrokes_per_s
        self._allowed = min(self._allowed + earned, limits.burst) - keystrokes
        self._in_flight += 1
        self.heard_at = now

    async def room(self) -> None:
        """Wait until another frame may be read: until few answers are due, and the client keeps the rate."""
        while self._in_flight >= self._limits.in_flight:
            self._room.clear()
            await self._room.wait()
        if self._allowed < 0:
            await asyncio.sleep(-self._allowed / self._limits.keystrokes_per_s)

    def send(self, text: str, answers: bool = False) -> None:
        """Send a frame, after those queued before it; `answers` says whether it answers a client's frame."""
        self._outbox.append((text, answers))
        self._wake.set()

    def refuse(self, problem: Problem, answers: bool = False) -> None:
        """Send a problem."""
        self.send(problem_frame(problem), answers)

    def end(self, ending: Ending) -> None:
        """End the connection once all queued frames are sent; only the first reason counts."""
        if self.ending is None:
            self.ending = ending
            self._wake.set()
            if ending.abrupt:
                self.ended.set()

    def stuck_for(self, now: float) -> float:
        """The number of seconds for which the client has not read the frame being sent."""
        return 0.0 if self._sending_since is None else now - self._sending_since

    async def write(self) -> None:
        """Send queued frames until the connection ends."""
        while True:
            while self._outbox:
                text, answers = self._outbox.popleft()
                self._sending_since = time.monotonic()
                try:
                    await self._websocket.send({"type": "websocket.send", "text": text})
                except (WebSocketDisconnect, RuntimeError):
                    # The client has gone; the reader notices that too.
                    return
                self._sending_since = None
                if answers:
                    self._in_flight -= 1
                    self._room.set()
            if self.ending is not None:
                return
            self._wake.clear()
            await self._wake.wait()
