"""A fake service, which records its effects and fails on request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


class FakeService:
    """Answers requests about users as in docs/service.md, and watches sessions without judging them.

    Attributes
    ----------
    effects : ids of users created, in order
    requests : method, path and headers of each request; its body and query are in `bodies` and `queries`
    failures : answers to the next requests: (status, headers, body), or seconds to wait before a correct
        answer
    """

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[Any] = []
        self.queries: list[str] = []
        self.failures: list[tuple[int, dict[str, str], str] | float] = []
        self.answers: dict[tuple[str, str], Any] = {}
        self._before: dict[str, Any] = {}
        self.session = FakeSession()
        self.app = Starlette(
            routes=[
                WebSocketRoute("/v1/users/{id}/watch", self.session.watch),
                Route("/{path:path}", self._answer, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        self.requests.append((request.method, request.scope["path"], dict(request.headers)))
        self.queries.append(request.scope["query_string"].decode())
        self.bodies.append(json.loads(body) if body else None)
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, tuple):
            status, headers, text = failure
            return PlainTextResponse(text, status, headers)
        answer, status = self._effect(request, body)
        if failure is not None:
            await asyncio.sleep(failure)
        return JSONResponse(answer, status)

    def _effect(self, request: Request, body: bytes) -> tuple[Any, int]:
        if (request.method, request.url.path) in self.answers:
            return self.answers[request.method, request.url.path], 200
        key = request.headers.get("idempotency-key")
        if key is None or key not in self._before:
            id = json.loads(body)["id"]
            self.effects.append(id)
            user = {"id": id, "created_at": 0, "profiles": [], "failed_attempts": 0, "wait_s": 0}
            if key is None:
                return user, 201
            self._before[key] = user
        return self._before[key], 201


class FakeSession:
    """A watched session: every keystroke is stored at once, and trust is the keystroke's number.

    Attributes
    ----------
    stored : names of the keys, in order
    locks_at : the number of the keystroke at which it locks
    durable_lag : the number of keystrokes that are not durable yet
    refuse : the frame, or none, and the code with which all connections end
    """

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.hellos: list[dict[str, Any]] = []
        self.frames = 0
        self.locks_at: int | None = None
        self.locked = False
        self.unlocked = 0
        self.durable = self.durable_lag = 0
        self.refuse: tuple[Any, int] | None = None

    async def watch(self, socket: WebSocket) -> None:
        """Serve one connection."""
        await socket.accept()
        try:
            hello = await socket.receive_json()
            self.hellos.append({**hello, "authorization": socket.headers.get("authorization")})
            if self.refuse is not None:
                frame, code = self.refuse
                if frame is not None:
                    await socket.send_json(frame)
                await socket.close(code, "refused")
                return
            # What was not durable is lost with the connection, as in a service that was killed.
            del self.stored[self.durable :]
            await socket.send_json(
                {
                    "type": "welcome",
                    "session": "5e55",
                    "durable": self.durable,
                    "locked": self.locked,
                    "keys_per_frame": 10,
                    "frames_in_flight": 3,
                }
            )
            while await self._frame(socket, await socket.receive_json()):
                pass
            await socket.close()
        except WebSocketDisconnect:
            pass

    async def _frame(self, socket: WebSocket, frame: dict[str, Any]) -> bool:
        self.frames += 1
        if frame["type"] == "bye":
            self.durable = len(self.stored)
            await socket.send_json({"type": "bye", "durable": self.durable})
            return False
        if frame["type"] == "unlock":
            self.locked, self.locks_at = False, None
            self.unlocked += 1
            await socket.send_json({"type": "unlocked"})
            return True
        await self._keys(socket, frame["first"], frame["keys"])
        return True

    async def _keys(self, socket: WebSocket, first: int, keys: list[Any]) -> None:
        expected = len(self.stored) + 1
        if first > expected:
            problem = {
                "type": "problem",
                "problem": "urn:keydyn:problem:gap",
                "status": 409,
                "expected": expected,
            }
            await socket.send_json(problem)
            return
        new = keys[expected - first :]
        self.stored += [key for key, _, _ in new]
        self.durable = max(self.durable, len(self.stored) - self.durable_lag)
        last, judged = len(self.stored), [] if self.locked else list(range(expected, expected + len(new)))
        locks = self.locks_at is not None and not self.locked and self.locks_at <= last
        if locks:
            self.locked = True
            judged = [number for number in judged if number <= (self.locks_at or 0)]
        answer = {
            "type": "trust",
            "first": expected,
            "last": max(last, first + len(keys) - 1),
            "trust": judged,
            "suspicion": [0.0] * len(judged),
            "pausing": None,
            "locked": self.locked,
            "durable": self.durable,
        }
        await socket.send_json(answer)
        if locks:
            await socket.send_json({"type": "lock", "at": self.locks_at})
