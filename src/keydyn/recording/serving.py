"""Running the page: on this machine only, until everybody is done or it is interrupted."""

from __future__ import annotations

import logging
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from keydyn.exit_codes import UsageError
from keydyn.recording.app import create_app
from keydyn.recording.participants import Participants
from keydyn.service.http.connections import HttpProtocol

HOST = "127.0.0.1"
# The address holds a secret, and arguments of programs can be seen by everybody on this machine: the browser
# gets a file that only the user can read, and which leads it there.
REDIRECT = '<!doctype html><title>keydyn record</title><meta http-equiv="refresh" content="0; url={}">'


@contextmanager
def opening(folder: Path) -> Iterator[Callable[[str], None]]:
    """What opens an address in the browser; in the folder is a file for it meanwhile."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".open-", suffix=".html") as file:

        def open_page(address: str) -> None:
            file.write(REDIRECT.format(address))
            file.flush()
            webbrowser.open(Path(file.name).resolve().as_uri())

        yield open_page


def serve(participants: Participants, port: int, ready: Callable[[str], None]) -> None:
    """Run; `ready` is called with the page's address, in whose fragment is the secret."""
    # Its log names routes of requests: nothing that a researcher needs.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    secret = secrets.token_urlsafe(16)

    def end_if_finished() -> None:
        # With participants who give their own names there may always be another one.
        if participants.users is not None and participants.finished():
            server.should_exit = True

    app = create_app(participants, secret, end_if_finished)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
        http=HttpProtocol,
    )
    server = uvicorn.Server(config)
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"cannot listen on {HOST}, port {port}: {error.strerror}") from None
    with listening:
        # Whoever connects from now on is answered, as soon as the server runs.
        ready(f"http://{HOST}:{listening.getsockname()[1]}/#{secret}")
        server.run(sockets=[listening])
