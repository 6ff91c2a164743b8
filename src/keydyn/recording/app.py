"""The page's own server: its files, and the three requests it makes. Only the page with the secret may."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from keydyn.recording.participants import Attempt, Participants, User
from keydyn.service.http import page_files
from keydyn.service.http.gate import Gate
from keydyn.service.http.metrics import Metrics
from keydyn.service.http.problem_answers import add_handlers, answered
from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment

State = dict[str, Any]


class Who(BaseModel):
    """Whose state is asked for; null before anybody was chosen."""

    model_config = ConfigDict(extra="forbid")

    user: User | None = None


class Agreed(BaseModel):
    """Consent to the text with this SHA-256."""

    model_config = ConfigDict(extra="forbid")

    user: User
    consent_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def create_app(
    participants: Participants, secret: str, on_kept: Callable[[], None] = lambda: None
) -> FastAPI:
    """The application; `on_kept` is called when a sample is durable, before that is answered."""
    app = FastAPI(openapi_url=None)
    metrics = Metrics()
    app.state.metrics = metrics
    add_handlers(app)

    def allowed(request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), secret.encode()):
            raise Problem(
                401,
                "wrong-secret",
                "This page belongs to another recording",
                "open the address that was printed last",
            )
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{request.headers['host']}":
            raise Problem(403, "wrong-origin", "Other pages are not allowed to do this", "")

    def not_stored(request: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        detail = f"{error.strerror or error}. It is kept on this page until you try again."
        return answered(request, Problem(507, "not-stored", "The text could not be stored", detail))

    def page(request: Request) -> Response:
        return page_files.answer(request, "record.html", page_files.POLICY)

    def state(body: Who) -> State:
        return participants.state(body.user)

    def consent(body: Agreed) -> State:
        participants.consent(body.user, body.consent_sha256)
        return participants.state(body.user)

    def samples(body: Attempt) -> State:
        reasons = participants.take(body)
        if not reasons:
            on_kept()
        return {"reasons": reasons, **participants.state(body.user)}

    app.exception_handler(OSError)(not_stored)
    app.add_api_route("/", page)
    app.add_api_route("/pages/{name}", page_files.part)
    for route in (state, consent, samples):
        app.add_api_route(f"/{route.__name__}", route, methods=["POST"], dependencies=[Depends(allowed)])
    # The same gate as the service's: names of the machine, sizes and times of requests, headers.
    app.add_middleware(Gate, deployment=Deployment(database="none"), metrics=metrics)
    return app
