"""The server of the recording page: its files and three requests, which need the secret in its address."""

from __future__ import annotations

import logging
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Request, Response

from keydyn.exit_codes import UsageError
from keydyn.recording.participants import Participants, TypedAttempt, User
from keydyn.service.http.gate import Gate, HttpProtocol
from keydyn.service.http.limits import Bodies
from keydyn.service.http.problem_answers import add_handlers, answered
from keydyn.service.http.routes import pages
from keydyn.service.http.routing import Call, Routes
from keydyn.service.metrics import Metrics
from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment
from keydyn.service.wire.both_ways import about
from keydyn.service.wire.requests import Request as Body

HOST, USUAL_PORT = "127.0.0.1", 8422
# The address contains a secret, and arguments of programs are visible to all users of this machine. So the
# browser gets a file that only the user can read, which redirects to the address.
REDIRECT = '<!doctype html><title>keydyn record</title><meta http-equiv="refresh" content="0; url={}">'


class Who(Body, frozen=True):
    """The participant whose state is requested; null before one is chosen."""

    user: User | None = None


class Agreed(Body, frozen=True):
    """Consent to the text with this SHA-256."""

    user: User
    consent_sha256: Annotated[str, about(pattern=r"^[0-9a-f]{64}$")]


def create_app(
    participants: Participants, secret: str, on_kept: Callable[[], None] = lambda: None
) -> FastAPI:
    """Make the application; `on_kept` is called when a sample is durable, before the request is answered."""
    app = FastAPI(openapi_url=None)
    routes, metrics = Routes("", "recording"), Metrics()
    deployment = Deployment(database="none")
    app.state.metrics, app.state.deployment, app.state.bodies = metrics, deployment, Bodies(deployment)
    # There are few requests at a time, so the event loop's own threads are enough.
    app.state.threads = None
    add_handlers(app)

    def allowed(request: Request) -> None:
        request.state.counted_as = "peer"
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), secret.encode()):
            detail = "open the address that was printed last"
            raise Problem(401, "wrong-secret", "This page belongs to another recording", detail)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{request.headers['host']}":
            raise Problem(403, "wrong-origin", "Other pages are not allowed to do this", "")

    def not_stored(request: Request, error: OSError) -> Response:
        detail = f"{error.strerror or error}. It is kept on this page until you try again."
        return answered(request, Problem(507, "not-stored", "The text could not be stored", detail))

    def page(request: Request) -> Response:
        return pages.answer(request, "record.html", pages.POLICY)

    @routes.route("POST", "/state", allowed)
    def state(call: Call, body: Who) -> dict[str, Any]:
        """Return the state that the page shows."""
        return participants.state(body.user)

    @routes.route("POST", "/consent", allowed)
    def consent(call: Call, body: Agreed) -> dict[str, Any]:
        """Store a participant's consent."""
        participants.consent(body.user, body.consent_sha256)
        return participants.state(body.user)

    @routes.route("POST", "/samples", allowed)
    def samples(call: Call, body: TypedAttempt) -> dict[str, Any]:
        """Take a sample, or return the reasons why it must be typed again."""
        reasons = participants.take(body)
        if not reasons:
            on_kept()
        return {"reasons": reasons, **participants.state(body.user)}

    app.exception_handler(OSError)(not_stored)
    app.add_api_route("/", page)
    app.add_api_route("/pages/{name}", pages.part)
    app.include_router(routes.router)
    # The service's own gate, for names of the machine, sizes and times of requests, and headers.
    app.add_middleware(Gate, deployment=deployment, metrics=metrics)
    return app


@contextmanager
def opening(folder: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that opens an address in the browser, through a temporary file in the folder."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".open-", suffix=".html") as file:

        def open_page(address: str) -> None:
            file.write(REDIRECT.format(address))
            file.flush()
            webbrowser.open(Path(file.name).resolve().as_uri())

        yield open_page


def serve(participants: Participants, port: int | None, ready: Callable[[str], None]) -> None:
    """Run the server; `ready` is called with the page's address, whose fragment is the secret.

    The default port is 8422, so that the address of a resumed recording has the same port, or any free one if
    that is in use.
    """
    # The log of requests is of no use to a researcher.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    secret = secrets.token_urlsafe(16)

    def end_if_finished() -> None:
        # If participants give their own names, there may always be another one.
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
    with _listening(port) as listening:
        # Connections wait until the server runs.
        ready(f"http://{HOST}:{listening.getsockname()[1]}/#{secret}")
        server.run(sockets=[listening])


def _listening(port: int | None, usual: int = USUAL_PORT) -> socket.socket:
    try:
        return socket.create_server((HOST, usual if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((HOST, 0))
        raise UsageError(f"cannot listen on {HOST}, port {port}: {error.strerror}") from None
