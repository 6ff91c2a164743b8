"""Declaration of routes, as functions that take a call, parameters and a body, and return an answer.

The types of `body` and of the answer are those of `keydyn.service.wire`. A request is admitted, by its key
and its rate, before its body is waited for. One worker thread, off the event loop, decodes the body, runs the
route and encodes the answer; it also admits a request whose body arrived together with its headers.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import re
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
from fastapi import APIRouter, Path, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse

from keydyn.files import Field, matching, sha256, whole
from keydyn.service.http.access import Caller, context_of
from keydyn.service.http.limits import arrived_body, checked_size
from keydyn.service.http.openapi import reference
from keydyn.service.http.problem_answers import WORDS
from keydyn.service.people.context import Context
from keydyn.service.problems import Problem
from keydyn.service.wire.both_ways import ABOUT_USER_ID, USER_ID, decoded, encoded

Function = TypeVar("Function", bound=Callable[..., Any])
Answered = TypeVar("Answered")
# Identifies the caller of a request, or refuses it with a `Problem`: usually a `Rule`.
Admits = Callable[[Request], Any]
# The id of a person in a path.
Id = Annotated[str, Path(pattern=USER_ID, max_length=128, description=ABOUT_USER_ID)]
USER_IDS = re.compile(USER_ID)
JSON = "application/json"
# The largest number of characters of an error's message that an answer repeats.
LONGEST_DETAIL = 200
# The largest size in bytes of a body without keystrokes.
SMALL_BODY = 1 << 14
# The fields that cursors are made of.
CURSOR_NUMBER = whole(-(1 << 60), 1 << 60)
CURSOR_ID = matching("[0-9a-f]{32}", "an id")
CURSOR_HASH = sha256


@dataclass
class Call:
    """A request as a route sees it."""

    request: Request
    status: int

    @property
    def context(self) -> Context:
        """The application's context: the database, the keys, the clock and the caches."""
        return context_of(self.request)

    @property
    def caller(self) -> Caller:
        """The sender of the request; only routes with a rule have one."""
        found: Caller = self.request.state.caller
        return found

    def note_read(self, action: str) -> None:
        """Note in the audit log that people's data was read, at most once per minute, with a count."""
        caller = self.caller
        self.request.app.state.notes.note(caller.tenant.id, caller.actor, action)


class Replayed(Exception):  # noqa: N818  (it is no error)
    """Raised for a request that was answered before; it carries the earlier answer."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body


@dataclass(frozen=True)
class Declared:
    """The declaration of a route: its rule, the types of its body and answer; `heavy` if it takes long."""

    rule: Admits | None
    body: Any
    answer: Any
    status: int
    heavy: bool = False


class AdmittedRoute(APIRoute):
    """A route that checks the key and the rate before anything else, and reads the body after that."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own handler, behind its rule."""
        handler = super().get_route_handler()
        declared: Declared | None = getattr(self.endpoint, "declared", None)
        if declared is None or declared.rule is None:
            return handler
        rule, own = declared.rule, {param.name for param in self.dependant.path_params}
        # Other parameters are parsed by FastAPI, which also reports an id that is not valid.
        only_id = own <= {"id"} and not self.dependant.query_params
        takes_keystrokes = declared.body is not None and "keystrokes" in declared.body.__struct_fields__

        def admit(request: Request) -> int:
            """Apply the route's rule; return the largest size of the body."""
            request.state.caller, request.state.body = rule(request), b""
            most: int = request.app.state.deployment.largest_body
            return most if takes_keystrokes else min(most, SMALL_BODY)

        def at_once(request: Request, body: bytes) -> Response:
            """Admit and answer a request whose body is here, in one go."""
            most = admit(request)
            request.state.body = checked_size(body, most)
            answer: Response = self.endpoint(request, **request.path_params)
            return answer

        async def admitted(request: Request) -> Response:
            state = request.app.state
            # Whether FastAPI has nothing to parse, so that the endpoint can be called directly.
            plain = only_id and all(USER_IDS.fullmatch(name) for name in request.path_params.values())
            if plain and not declared.heavy:
                body = b"" if declared.body is None else await arrived_body(request)
                if body is not None:
                    # Nothing is waited for: one change of threads is enough.
                    return await in_thread(request, at_once, request, body)
            most = await in_thread(request, admit, request)
            if declared.body is not None:
                request.state.body = await state.bodies.read(request, request.state.counted_as, most)
            async with state.heavy.turn(request.state.tenant_id) if declared.heavy else nullcontext():
                if plain:
                    return await in_thread(request, self.endpoint, request, **request.path_params)
                return await handler(request)

        return admitted


async def in_thread(
    request: Request, function: Callable[..., Answered], *args: Any, **options: Any
) -> Answered:
    """Run a function in one of the threads for requests, and return its result."""
    call = partial(function, *args, **options)
    return await asyncio.get_running_loop().run_in_executor(request.app.state.threads, call)


class Routes:
    """The routes of one tag of the OpenAPI document."""

    def __init__(self, prefix: str, tag: str) -> None:
        self.router = APIRouter(prefix=prefix, tags=[tag], route_class=AdmittedRoute)

    def route(
        self, method: str, path: str, rule: Admits | None = None, *, status: int = 200, heavy: bool = False
    ) -> Callable[[Function], Function]:
        """Return a decorator that declares a function of a `Call` as a route."""

        def declare(function: Function) -> Function:
            hints = get_type_hints(function, include_extras=True)
            answer = None if hints["return"] is type(None) else hints["return"]
            declared = Declared(rule, hints.get("body"), answer, status, heavy)
            self.router.add_api_route(
                path,
                _endpoint(function, hints, declared),
                methods=[method],
                status_code=status,
                response_class=Response if declared.answer is None else _Json,
                responses={status: {} if declared.answer is None else content_of(declared.answer)},
                openapi_extra=_taken(declared.body),
                response_model=None,
            )
            return function

        return declare


class _Json(JSONResponse):
    def render(self, content: bytes) -> bytes:
        return content


def _endpoint(
    function: Callable[..., Any], hints: dict[str, Any], declared: Declared
) -> Callable[..., Response]:
    """Wrap a route in a function that FastAPI calls with the request, and with path and query parameters."""

    def endpoint(request: Request, **parameters: Any) -> Response:
        call = Call(request, declared.status)
        if declared.body is not None:
            parameters["body"] = _decoded(declared.body, request)
        try:
            answer = function(call, **parameters)
        except Replayed as before:
            return _Json(before.body, before.status, {"idempotent-replayed": "true"})
        if declared.answer is None or isinstance(answer, Response):
            return answer or Response(status_code=declared.status)
        return _Json(_answered(answer, declared.answer), declared.status)

    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("call", "body")
    ]
    first = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    endpoint.__name__, endpoint.__doc__ = function.__name__, function.__doc__
    endpoint.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
    endpoint.declared = declared  # type: ignore[attr-defined]
    return endpoint


def _answered(answer: Any, kind: Any) -> bytes:
    """Encode an answer as JSON, checked against its type (of a union, its own) as strictly as a request."""
    body = encoded(answer)
    decoded(type(answer) if type(answer) in get_args(kind) else kind, body)
    return body


def content_of(kind: Any) -> dict[str, Any]:
    """The content of an answer or a body of this type, for the OpenAPI document."""
    return {"content": {JSON: {"schema": reference(kind)}}}


def _taken(kind: Any) -> dict[str, Any]:
    return {} if kind is None else {"requestBody": {**content_of(kind), "required": True}}


def _decoded(kind: Any, request: Request) -> Any:
    """Decode the body; a `Problem` names the first error in it."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (media == JSON or (media.startswith("application/") and media.endswith("+json"))):
        raise _invalid("/body", f"The body must be {JSON}.")
    try:
        return decoded(kind, request.state.body)
    except msgspec.ValidationError as error:
        raise _invalid(*located(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem(400, "not-json", WORDS[400], "The body is not JSON.") from None


def located(message: str) -> tuple[str, str]:
    """Split msgspec's message about a body into a pointer to the place of the error, and its description."""
    what, _, where = message.partition(" - at `$")
    parts = re.findall(r"\.(\w+)|\[(\d+)\]", where)
    named = re.search(r"field `(\w{1,64})`$", what)
    pointer = ["", "body", *(name or number for name, number in parts), *(named.groups() if named else ())]
    return "/".join(pointer), what[:LONGEST_DETAIL]


def _invalid(pointer: str, detail: str) -> Problem:
    errors = [{"pointer": pointer, "detail": detail}]
    return Problem(422, "invalid-request", WORDS[422], f"{pointer}: {detail}", errors=errors)


def cursor_at(*values: int | str) -> str:
    """A cursor that holds these values."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def cursor_values(cursor: str | None, *fields: Field) -> Any:
    """The values of a cursor, or None if none was sent; raises a `Problem` if they do not fit the fields."""
    if cursor is None:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor))
        return tuple(field("cursor", value) for field, value in zip(fields, values, strict=True))
    except (ValueError, TypeError, RecursionError):
        problem = "This cursor cannot be used", "Use the cursor from the previous page."
        raise Problem(400, "bad-cursor", *problem) from None
