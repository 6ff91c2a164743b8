"""A receiver of webhooks on this machine, well-behaved or not."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Answers with `status`, or by its `mood`: "redirect", "endless" or "trickle"."""

    daemon_threads = True
    status = 200
    mood = ""
    received: list[Received]
    arrived: threading.Semaphore
    sent = 0

    @property
    def url(self) -> str:
        """The address of the receiver, without TLS."""
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(self.path, headers, body))
        self.server.arrived.release()
        # The sender may have had enough.
        with suppress(OSError):
            self._answer()

    def _answer(self) -> None:
        if self.server.mood == "trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while True:
                self.wfile.write(b"x")
                time.sleep(0.01)
        if self.server.mood == "redirect":
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
            self.end_headers()
            return
        self.send_response(self.server.status)
        self.end_headers()
        while self.server.mood == "endless":
            self.wfile.write(bytes(1 << 16))
            self.server.sent += 1 << 16

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on a free port."""
    with Receiver(("127.0.0.1", 0), Handler) as server:
        server.received, server.arrived = [], threading.Semaphore(0)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
