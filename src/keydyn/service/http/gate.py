"""The gate that every request passes: host check, limit on concurrency, request id, headers, CORS, log line.

The middleware is written against ASGI itself, so that it sees a request before anything parses it. A body is
read by its route, once the request is admitted. `HttpProtocol` limits the headers.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keydyn.service.http.limits import ARRIVED
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
# Requests that pages of any origin may send with a token, and the headers that let them read the answers.
# Whether a page may use the token is checked when the request arrives, which carries no cookies. The headers
# are the same for every origin, so that they do not reveal which origins a tenant has named.
TAKES_TOKENS = re.compile(r"/v1/users/[^/]+/(samples|verify)")
CORS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"x-request-id, retry-after"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)
PREFLIGHT = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key"),
    (b"access-control-max-age", b"600"),
)
# The most bytes of a request before its body, and of the rest of a request that was answered before its end.
LARGEST_HEAD, LARGEST_REST = 1 << 16, 4 << 20
# The number of stack frames that are logged for an unexpected error, and the answer to it.
PLACES = 6
BUG = Problem(
    500,
    "internal",
    "Something went wrong in the service",
    "The service's log has more under the id of this request.",
)
# The path that is answered however busy the service is.
HEALTH = "/healthz"


class Gate:
    """Middleware around the application."""

    def __init__(self, app: App, deployment: Deployment, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self._most = 4 * deployment.concurrent
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
            await self._request(scope, receive, send, headers)

    async def _socket(self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]) -> None:
        if not self._knows(headers.get(b"host", b"")):
            await receive()
            await send({"type": "websocket.close", "code": 4403})
            return
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            _log_bug(scope["state"]["request_id"], error)

    async def _request(self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]) -> None:
        began, status, request_id = time.perf_counter(), 0, scope["state"]["request_id"]
        cors = CORS if TAKES_TOKENS.fullmatch(scope["path"]) else ()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [*message["headers"], *cors]
                names = {name for name, _ in own}
                message["headers"] = [
                    *own,
                    (b"x-request-id", request_id.encode()),
                    *(pair for pair in HEADERS if pair[0] not in names),
                    # The unread rest of such a request would be taken for the next one.
                    *(((b"connection", b"close"),) if status in (408, 413) else ()),
                ]
            await send(message)

        self._running += 1
        self.metrics.running.set(self._running)
        try:
            try:
                self._check(scope["path"], headers)
                if cors and scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                    await sending({"type": "http.response.start", "status": 204, "headers": [*PREFLIGHT]})
                    await sending({"type": "http.response.body", "body": b""})
                else:
                    await self.app(scope, receive, sending)
            except Problem as problem:
                await _answer(problem, request_id, sending)
            except Exception as error:
                _log_bug(request_id, error)
                if status:
                    # It is too late for another answer; the client notices that this one is incomplete.
                    raise
                await _answer(BUG, request_id, sending)
        finally:
            self._running -= 1
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.request(scope["method"], route, status, seconds)
            tenant = scope["state"].get("tenant_id", "-")
            log.info(
                "request %s %s %s status=%d ms=%.1f tenant=%s",
                request_id, scope["method"], route, status, 1000 * seconds, tenant,
            )  # fmt: skip

    def _check(self, path: str, headers: dict[bytes, bytes]) -> None:
        """Raise a `Problem` if the host or path is wrong, or the service too busy for all but `HEALTH`."""
        if not self._knows(headers.get(b"host", b"")):
            detail = "See --name of keydyn serve."
            raise Problem(421, "wrong-host", "This service is not known by that host name", detail)
        if path.endswith("\n"):
            # The patterns of routes also match before a line break at the end.
            raise Problem(404, "no-such-route", "Not found", "")
        if self._running > self._most and path != HEALTH:
            raise Problem(503, "busy", "The service is busy", "Too many requests at once.", retry_after=1)

    def _knows(self, host: bytes) -> bool:
        """Whether the service is known by the name in a `Host` header."""
        return host_name(host.decode("latin-1")) in self._hosts


def _log_bug(request_id: str, error: Exception) -> None:
    """Log the origin of an error in one line, without its message, which may name people."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACES:]
    places = " ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    log.error("request %s: %s at %s", request_id, type(error).__name__, places)


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


def _composed(problem: Problem, request_id: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a problem."""
    body = json.dumps(problem.as_json(request_id)).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    if "retry_after" in problem.more:
        headers.append((b"retry-after", str(problem.more["retry_after"]).encode()))
    return headers, body


async def _answer(problem: Problem, request_id: str, send: Send) -> None:
    headers, body = _composed(problem, request_id)
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol with limits on headers, and with problems in place of plain-text errors."""

    # Seconds in which the headers must have arrived; the gate waits for the body.
    arrival_s = 15.0
    _deadline: asyncio.TimerHandle | None = None
    # Whether headers are expected, the bytes of this request so far, and whether the rest of it is discarded.
    _in_head, _head, _discarding = True, 0, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request of a client that has connected."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit, as the client has gone."""
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the bytes that arrived, and refuse a request whose headers are too large."""
        if self.transport.is_closing():
            return
        self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > LARGEST_HEAD and not self.transport.is_closing():
            detail = f"Headers may have at most {LARGEST_HEAD:,} bytes."
            self._refuse(Problem(431, "too-large", "The headers are too large", detail, limit=LARGEST_HEAD))
        elif self._discarding and self._head > LARGEST_REST:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the time limit for the headers of a request."""
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        """Cancel the time limit for the headers; the body is limited where it is read."""
        self._end()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Prepare for the next request, to which everything that arrives from now on belongs."""
        super().on_message_complete()
        # The application runs only after everything that has just arrived is parsed.
        self.scope["state"][ARRIVED] = True
        if self._discarding:
            self._discarding = False
            self._end()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        self._in_head, self._head = True, 0

    def on_response_complete(self) -> None:
        """Discard the rest of a request that was answered before its end; that too must arrive in time."""
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete and not self.transport.is_closing():
            self._discarding = True
            self._deadline = self.loop.call_later(self.arrival_s, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP."""
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
        headers, body = _composed(problem, request_id)
        headers += [(b"connection", b"close"), (b"x-request-id", request_id.encode()), *HEADERS]
        status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n".encode()
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(status + lines + b"\r\n" + body)
        self.transport.close()
