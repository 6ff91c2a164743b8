"""The conversion of exceptions to answers, all in the format of problems (RFC 9457)."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from keydyn.service.problems import Problem
from keydyn.service.storage.database import DatabaseUnavailableError

log = logging.getLogger("keydyn.service")
TYPE = "application/problem+json"
WORDS = {
    400: "The request cannot be understood",
    401: "An API key is needed, or the one sent is not valid",
    403: "This is not allowed",
    404: "Not found",
    405: "This method is not supported here",
    408: "The request took too long to arrive",
    409: "This cannot be done now",
    413: "The request is too large",
    415: "The body must be JSON",
    421: "This service is not known by that host name",
    422: "The request does not match its schema",
    429: "Too many requests, or too many failed attempts",
    500: "Something went wrong in the service",
    503: "The service is busy, or its database cannot be reached",
}
# The kinds of problems for exceptions of the framework, by status, and the kind for all others.
HTTP_KINDS, OTHER_KIND = {404: "no-such-route", 405: "no-such-method", 415: "not-json"}, "bad-request"
# For the OpenAPI document: the problems with which any route may answer.
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        "content": {TYPE: {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}},
    }
    for status, words in WORDS.items()
}


def add_handlers(app: FastAPI) -> None:
    """Add handlers that answer exceptions with problems."""
    app.exception_handler(Problem)(answered)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(DatabaseUnavailableError)(_unavailable)


def answered(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer that reports a problem."""
    request.app.state.metrics.errors.labels(problem.kind).inc()
    if hasattr(request.state, "actor"):
        request.app.state.notes.refused(request.state.tenant_id, request.state.actor, problem)
    more = dict(headers or {})
    if "retry_after" in problem.more:
        more["retry-after"] = str(problem.more["retry_after"])
    if problem.status == 401:
        more["www-authenticate"] = "Bearer"
    body = problem.as_json(request.state.request_id)
    return JSONResponse(body, problem.status, more, media_type=TYPE)


def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    """Report which parameters are invalid and why, without repeating the values that were sent."""
    errors = [
        {"pointer": "/" + "/".join(str(part) for part in each["loc"]), "detail": each["msg"]}
        for each in error.errors()[:20]
    ]
    detail = f"{errors[0]['pointer']}: {errors[0]['detail']}" if errors else ""
    return answered(request, Problem(422, "invalid-request", WORDS[422], detail, errors=errors))


def _http(request: Request, error: HTTPException) -> JSONResponse:
    kind = HTTP_KINDS.get(error.status_code, OTHER_KIND)
    title = WORDS.get(error.status_code, "The request cannot be answered")
    return answered(request, Problem(error.status_code, kind, title, ""), dict(error.headers or {}))


def _unavailable(request: Request, error: Exception) -> JSONResponse:
    log.error("request %s: the database is not available", request.state.request_id)
    title = "The database is not available"
    return answered(request, Problem(503, "database-unavailable", title, "Try again.", retry_after=2))
