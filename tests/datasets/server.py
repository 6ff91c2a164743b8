"""A small file server on this machine that can misbehave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Serves `files` by name; `mood` says how: good, corrupt, cut or missing."""

    files: dict[str, bytes]
    mood: str = "good"
    asked: list[str]

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
        if self.server.mood == "corrupt":
            contents = contents[:-1] + b"?"
        self.send_response(200)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents[: len(contents) // 2] if self.server.mood == "cut" else contents)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


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


def closed_address() -> str:
    """An address at which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"
