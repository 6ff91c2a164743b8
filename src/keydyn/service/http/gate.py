"""What every request passes: limits of size, time and number, an id, headers, CORS by tenant, one log line.

The middleware is written against ASGI itself: it sees a request before anything parses it, and the body,
whole, once. Limits of the headers, which come before that, are those of the protocol.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keydyn.service.metrics import Metrics
from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("keydyn.service")
REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
# Seconds for which the origins of all tenants are cached here, and answers in browsers.
REMEMBERED, FOR_BROWSERS = 10.0, 600
# Bytes of a request before its body.
LARGEST_HEAD = 1 << 16


class Gate:
    """Middleware around the application."""

    def __init__(self, app: App, deployment: Deployment, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self._deployment = deployment
        self._hosts = {*LOOPBACK, deployment.host.lower(), *(name.lower() for name in deployment.names)}
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send, headers)
        else:
            await self._request(scope, receive, send, headers, request_id)

    async def _socket(self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]) -> None:
        if not self._knows(headers.get(b"host", b"")):
            await receive()
            await send({"type": "websocket.close", "code": 4403})
            return
        await self.app(scope, receive, send)

    async def _request(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes], request_id: str
    ) -> None:
        began, answered = time.perf_counter(), [0]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered[0] = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    *(pair for pair in HEADERS if pair[0] not in own),
                ]
            await send(message)

        self._running += 1
        self.metrics.running.set(self._running)
        try:
            body = await self._arrived(headers, receive)
            scope["state"]["body"] = body
            await self.app(scope, _replaying(body, receive), sending)
        except Problem as problem:
            own, answer = _answer(problem, request_id)
            await sending({"type": "http.response.start", "status": problem.status, "headers": own})
            await sending({"type": "http.response.body", "body": answer})
        finally:
            self._running -= 1
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.request(scope["method"], route, answered[0], seconds)
            tenant = scope["state"].get("tenant_id", "-")
            log.info(
                "request %s %s %s status=%d ms=%.1f tenant=%s",
                request_id, scope["method"], route, answered[0], 1000 * seconds, tenant,
            )  # fmt: skip

    async def _arrived(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The body; a `Problem` if it is too large or too slow, the host is wrong or the service is busy."""
        if not self._knows(headers.get(b"host", b"")):
            detail = "See --name of keydyn serve."
            raise Problem(421, "wrong-host", "This service is not known by that host name", detail)
        if self._running > 4 * self._deployment.concurrent:
            raise Problem(503, "busy", "The service is busy", "Too many requests at once.", retry_after=1)
        most = self._deployment.largest_body
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._deployment.arrival_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "gone", "The client disconnected", "")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem(408, "too-slow", "The request took too long to arrive", "") from None

    def _knows(self, host: bytes) -> bool:
        """Whether the service is known by the name in a `Host` header."""
        return host_name(host.decode("latin-1")) in self._hosts


def _too_large(most: int) -> Problem:
    detail = f"A body may have at most {most:,} bytes."
    return Problem(413, "too-large", "The request is too large", detail, limit=most)


def host_name(host: str) -> str:
    """A host without its port."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    return name.strip("[]").lower()


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _answer(problem: Problem, request_id: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a problem."""
    body = json.dumps(problem.as_json(request_id)).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    if problem.status in (400, 408, 413, 431):
        # What is left of the request would be taken for the next one.
        headers.append((b"connection", b"close"))
    if "retry_after" in problem.more:
        headers.append((b"retry-after", str(problem.more["retry_after"]).encode()))
    return headers, body


def _replaying(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class Origins:
    """The origins that any tenant names; remembered for a while."""

    def __init__(self, read: Callable[[], frozenset[str]]) -> None:
        self._read, self._until = read, 0.0
        self._known: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Read them again next time: they may have changed."""
        self._until = 0.0

    async def allow(self, origin: str) -> bool:
        """Whether any tenant names this origin."""
        if time.monotonic() > self._until:
            self._until = time.monotonic() + REMEMBERED
            self._known = await run_in_threadpool(self._read)
        return origin.lower() in self._known


class TenantOrigins:
    """Middleware that answers preflight requests, and names the origin in answers to it.

    A preflight request names no tenant: whether the page's own tenant allows it is checked by the request
    itself.
    """

    def __init__(self, app: App, origins: Origins) -> None:
        self.app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the headers that browsers need."""
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin")
        named = scope["type"] == "http" and origin is not None
        if not named or origin is None or not await self._origins.allow(origin.decode("latin-1")):
            await self.app(scope, receive, send)
            return
        own = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"x-request-id, retry-after"),
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"vary", b"origin"),
        ]
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            own += [
                (b"access-control-allow-methods", b"POST"),
                (b"access-control-allow-headers", b"authorization, content-type, idempotency-key"),
                (b"access-control-max-age", str(FOR_BROWSERS).encode()),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": own})
            await send({"type": "http.response.body", "body": b""})
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Files that any page may load have their own headers.
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in own if pair[0] not in given)]
            await send(message)

        await self.app(scope, receive, sending)


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn speaks it, with limits, and problems in place of plain text."""

    # Seconds in which the headers must have arrived; the gate waits for the body.
    arrival_s = 15.0
    _deadline: asyncio.TimerHandle | None = None
    _in_head, _head = True, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected, and must send a request in time."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, unless there is no end to the headers."""
        if self.transport.is_closing():
            return
        self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > LARGEST_HEAD and not self.transport.is_closing():
            detail = f"Headers may have at most {LARGEST_HEAD:,} bytes."
            self._refuse(Problem(431, "too-large", "The headers are too large", detail, limit=LARGEST_HEAD))

    def on_message_begin(self) -> None:
        """A request begins: its headers must arrive in time."""
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        """From here on the gate counts bytes and seconds."""
        self._end()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What arrives next belongs to another request."""
        super().on_message_complete()
        self._in_head, self._head = True, 0

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(Problem(400, "not-http", "The request cannot be understood", msg))

    def _begin(self) -> None:
        self._in_head = True
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.arrival_s, self._too_slow)

    def _end(self) -> None:
        self._in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self._refuse(Problem(408, "too-slow", "The request took too long to arrive", ""))

    def _refuse(self, problem: Problem) -> None:
        request_id = secrets.token_hex(8)
        headers, body = _answer(problem, request_id)
        headers += [(b"x-request-id", request_id.encode()), *HEADERS]
        status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n".encode()
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(status + lines + b"\r\n" + body)
        self.transport.close()
