"""The other end of a connection: frames to send to it, how long that takes, and how it ends."""

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
    check_s : after which it is noticed that a key was revoked, a token has ended or a person is gone
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
    """Why the server ends a connection; if `abrupt`, without waiting for the client to read the rest."""

    code: int
    reason: str = ""
    abrupt: bool = False


class Peer:
    """A connected client, on the event loop; `took` is called for each frame that is to be answered."""

    def __init__(self, websocket: WebSocket, limits: LiveLimits) -> None:
        self._websocket, self._limits = websocket, limits
        self._outbox: deque[tuple[str, bool]] = deque()
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._in_flight = 0
        # How many keystrokes may be read at once, as of the last frame.
        self._allowed = limits.burst
        self._sending_since: float | None = None
        self.heard_at = time.monotonic()
        self.ending: Ending | None = None
        self.ended = asyncio.Event()

    def took(self, keystrokes: int = 1) -> None:
        """A frame was read, and is to be answered."""
        now, limits = time.monotonic(), self._limits
        earned = (now - self.heard_at) * limits.keystrokes_per_s
        self._allowed = min(self._allowed + earned, limits.burst) - keystrokes
        self._in_flight += 1
        self.heard_at = now

    async def room(self) -> None:
        """Return when another frame may be read: few answers are due, and not too much has been sent."""
        while self._in_flight >= self._limits.in_flight:
            self._room.clear()
            await self._room.wait()
        if self._allowed < 0:
            await asyncio.sleep(-self._allowed / self._limits.keystrokes_per_s)

    def send(self, text: str, answers: bool = False) -> None:
        """Send a frame, after those before it; `answers` says whether it is the answer to one."""
        self._outbox.append((text, answers))
        self._wake.set()

    def refuse(self, problem: Problem, answers: bool = False) -> None:
        """Send a problem."""
        self.send(problem_frame(problem), answers)

    def end(self, ending: Ending) -> None:
        """End the connection, after what is to be sent; only the first reason counts."""
        if self.ending is None:
            self.ending = ending
            self._wake.set()
            if ending.abrupt:
                self.ended.set()

    def stuck_for(self, now: float) -> float:
        """Seconds for which the client has not taken what is sent."""
        return 0.0 if self._sending_since is None else now - self._sending_since

    async def write(self) -> None:
        """Send what is to be sent, until the connection ends."""
        while True:
            while self._outbox:
                text, answers = self._outbox.popleft()
                self._sending_since = time.monotonic()
                try:
                    await self._websocket.send({"type": "websocket.send", "text": text})
                except (WebSocketDisconnect, RuntimeError):
                    # The client has gone: the reader hears of it too.
                    return
                self._sending_since = None
                if answers:
                    self._in_flight -= 1
                    self._room.set()
            if self.ending is not None:
                return
            self._wake.clear()
            await self._wake.wait()
