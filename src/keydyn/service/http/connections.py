"""Limits of time and size for headers, which uvicorn's own protocol does not have."""

from __future__ import annotations

import asyncio
import json
import secrets
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keydyn.service.http.gate import ARRIVAL, HEADERS
from keydyn.service.problems import Problem

# Bytes of a request before its body.
LARGEST_HEAD = 1 << 16


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn speaks it, with limits, and problems in place of plain text."""

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
            self._deadline = self.loop.call_later(ARRIVAL, self._too_slow)

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
        body = json.dumps(problem.as_json(request_id)).encode()
        headers = (
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            (b"x-request-id", request_id.encode()),
            *HEADERS,
        )
        status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n".encode()
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(status + lines + b"\r\n" + body)
        self.transport.close()
