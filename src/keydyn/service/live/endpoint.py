"""The WebSocket on which sessions are watched."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from keydyn.service.live import frame_text
from keydyn.service.live.live_sessions import LiveSessions
from keydyn.service.live.peer import Ending, Peer
from keydyn.service.live.session import Admit, CheckUnlock, Live
from keydyn.service.problems import Problem
from keydyn.service.storage.database import DatabaseUnavailableError
from keydyn.service.wire import watch_frames

# The time limit for closing a connection, in seconds.
CLOSING = 2.0


class HungUp(Exception):  # noqa: N818  (it is no error)
    """Raised when the client has gone."""


def watch_router(engine: LiveSessions, admit: Admit, check_unlock: CheckUnlock) -> APIRouter:
    """The WebSocket route; `admit` and `check_unlock` run in threads and raise a `Problem` to refuse."""
    router = APIRouter()
    logging.getLogger("uvicorn.error").addFilter(_of_the_server)

    @router.websocket("/v1/users/{user}/watch")
    async def watch(websocket: WebSocket, user: str) -> None:
        await websocket.accept()
        client = Peer(websocket, engine.limits)
        connection = _Connection(engine, admit, check_unlock, websocket, client)
        works = connection.read(user), client.write(), client.ended.wait()
        work: list[asyncio.Task[Any]] = [asyncio.create_task(one) for one in works]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            if work[0].done() and not client.ended.is_set():
                # Let the writer send what is still in the outbox.
                client.end(Ending(frame_text.ENDED))
                await asyncio.wait(work[1:], timeout=CLOSING, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            connection.left()
            await asyncio.gather(*work, return_exceptions=True)
        await _closed(websocket, client.ending or Ending(frame_text.ENDED))
        for task in work[:1]:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    return router


class _Connection:
    """Reads the frames of one connection and hands them to the engine."""

    def __init__(
        self,
        engine: LiveSessions,
        admit: Admit,
        check_unlock: CheckUnlock,
        websocket: WebSocket,
        client: Peer,
    ) -> None:
        self._engine, self._admit, self._check_unlock = engine, admit, check_unlock
        self._websocket, self._client = websocket, client
        self._live: Live | None = None

    def left(self) -> None:
        """Let go of the session when the connection is over."""
        if self._live is not None:
            self._engine.leave(self._live)

    async def read(self, user: str) -> None:
        """Read and handle frames until the connection ends, and record why it ends."""
        client = self._client
        try:
            live = self._live = await self._welcomed(user)
            await self._follow(live)
        except HungUp:
            client.end(Ending(frame_text.ENDED))
        except Problem as problem:
            client.refuse(problem)
            client.end(Ending(frame_text.close_code(problem.status), problem.title))
        except DatabaseUnavailableError:
            client.refuse(
                Problem(503, "database-unavailable", "The database is not available", "Connect again later.")
            )
            client.end(Ending(frame_text.LATER, "the database is not available"))

    async def _welcomed(self, user: str) -> Live:
        try:
            async with asyncio.timeout(self._engine.limits.hello_s):
                hello = await self._frame()
        except TimeoutError:
            raise Problem(408, "no-hello", "No hello was received", "the first frame must be hello") from None
        if not isinstance(hello, watch_frames.Hello):
            raise frame_text.bad("the first frame must be of type hello")
        peer = self._websocket.client
        address, headers = peer.host if peer else "", self._websocket.headers
        admitted = await run_in_threadpool(self._admit, user, headers, address, hello)
        live = await self._engine.join(admitted, self._client, hello.states)
        limits = self._engine.limits
        welcome = watch_frames.Welcome(
            session=live.id,
            durable=live.durable,
            locked=live.locked_at is not None,
            restarted=live.restarted,
            level=admitted.watching.level,
            keys_per_frame=watch_frames.KEYS_PER_FRAME,
            frames_in_flight=limits.in_flight,
            idle_s=limits.idle_s,
        )
        self._client.send(frame_text.composed(welcome))
        return live

    async def _follow(self, live: Live) -> None:
        bad = 0
        while True:
            await self._client.room()
            try:
                frame = await self._frame()
                if isinstance(frame, frame_text.Keys):
                    self._client.took(len(frame.names))
                    self._engine.take(live, frame)
                elif isinstance(frame, watch_frames.Unlock):
                    await self._unlock(live, frame.token)
                elif isinstance(frame, watch_frames.Bye):
                    durable = await self._engine.finish(live)
                    self._client.send(frame_text.composed(watch_frames.Durable(durable)))
                    return
                else:
                    raise frame_text.bad("hello was already sent")
            except Problem as problem:
                bad += problem.status == 400
                if problem.status == 413 or bad == frame_text.BAD_FRAMES:
                    raise
                self._client.took()
                self._engine.refuse(live, problem)

    async def _frame(self) -> frame_text.Frame:
        try:
            message = await self._websocket.receive()
        except (WebSocketDisconnect, RuntimeError):
            raise HungUp from None
        if message["type"] != "websocket.receive":
            raise HungUp
        return frame_text.parsed(message.get("text"))

    async def _unlock(self, live: Live, token: str | None) -> None:
        admitted = live.admitted
        if token is None and not admitted.may_unlock:
            detail = "it needs a token with the purpose unlock"
            raise Problem(403, "may-not-unlock", "This connection may not unlock", detail)
        lock = await run_in_threadpool(self._check_unlock, admitted, live.id, token)
        await self._engine.unlock(live, lock)
        if not live.lost:
            self._client.send(frame_text.composed(watch_frames.Unlocked()))


def _of_the_server(record: logging.LogRecord) -> bool:
    """Return False for log lines about clients whose text is not UTF-8, which are merely disconnected."""
    return not record.getMessage().startswith("Invalid UTF-8")


async def _closed(websocket: WebSocket, ending: Ending) -> None:
    """Close the connection, unless the client has gone or no longer reads."""
    with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
        async with asyncio.timeout(CLOSING):
            await websocket.close(ending.code, ending.reason)
