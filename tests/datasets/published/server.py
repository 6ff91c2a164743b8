"""A small file server on this machine that can misbehave."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Serves `files` by name; `mood` says how: good, corrupt, short, packed, cut, missing, one of MOODS."""

    files: dict[str, bytes]
    mood: str = "good"
    asked: list[str]
    sent: int = 0
    daemon_threads = True

    @property
    def address(self) -> str:
        """The folder's address."""
        return f"http://127.0.0.1:{self.server_port}/files/"


class Handler(BaseHTTPRequestHandler):
    """Answers one request in the server's mood."""

    server: FileServer

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        if self.server.mood == "missing" or name not in self.server.files:
            self.send_error(404)
            return
        contents = self.server.files[name]
        if self.server.mood in MOODS:
            # Whoever has had enough closes the connection.
            with suppress(ConnectionError):
                MOODS[self.server.mood](self, contents)
            return
        if self.server.mood == "short":
            contents = contents[:-20]
        if self.server.mood == "corrupt":
            contents = contents[:-1] + b"?"
        self.send_response(200)
        if self.server.mood == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents[: len(contents) // 2] if self.server.mood == "cut" else contents)

    def send(self, contents: bytes) -> None:
        """Send at once, and count."""
        self.wfile.write(contents)
        self.wfile.flush()
        self.server.sent += len(contents)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def endless(handler: Handler, contents: bytes) -> None:
    """More than was announced in the catalogue, without an end that the client could know of: 256 MB."""
    handler.send_response(200)
    handler.end_headers()
    handler.send(contents)
    for _ in range(1 << 12):
        handler.send(bytes(1 << 16))


def bomb(handler: Handler, contents: bytes) -> None:
    """A few bytes that unpack to a hundred million."""
    packed = gzip.compress(bytes(10**8))
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(packed)))
    handler.end_headers()
    handler.send(packed)


def trickle(handler: Handler, contents: bytes) -> None:
    """A byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(contents)))
    handler.end_headers()
    for byte in contents[:500]:
        handler.send(bytes([byte]))
        time.sleep(0.01)


def endless_trickle(handler: Handler, contents: bytes) -> None:
    """A byte now and then, until nobody reads any more."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.send(contents[:1])
        time.sleep(0.05)


def trickling_header(handler: Handler, contents: bytes) -> None:
    """An answer that does not even begin."""
    handler.send(b"HTTP/1.0 200 OK\r\nX-Long: ")
    for _ in range(500):
        handler.send(b"x")
        time.sleep(0.01)


MOODS = {
    "endless": endless,
    "bomb": bomb,
    "trickle": trickle,
    "endless trickle": endless_trickle,
    "trickling header": trickling_header,
}


@contextmanager
def running(files: dict[str, bytes]) -> Iterator[FileServer]:
    """A server on a free port, gone afterwards."""
    with FileServer(("127.0.0.1", 0), Handler) as server:
        server.files = files
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def closed_address() -> Iterator[str]:
    """An address at which no server listens: its port is taken, so that no other process gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
