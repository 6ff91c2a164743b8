"""Writes that can be sent again: the same `Idempotency-Key` has the same answer and no second effect."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request, Response
from sqlalchemy import Connection, insert, select
from starlette.responses import JSONResponse

from keydyn.service.http.access import Caller, context_of
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import idempotency

Done = TypeVar("Done")
Finish = Callable[[Connection, Done], None]
HEADER = "idempotency-key"
LONGEST = 128


class _AnsweredError(Exception):
    """The same request was answered meanwhile."""


def once(
    request: Request,
    caller: Caller,
    status: int,
    run: Callable[[Finish[Any]], Done],
    body: Callable[[Done], dict[str, Any]],
    user_of: Callable[[Done], str | None] = lambda _: None,
) -> Response:
    """Run a write and answer with what it made, or answer as before if it was run before.

    `run` calls what it is given inside the change that it makes. A problem is not remembered: it has had no
    effect, and the same request may succeed later.
    """
    context = context_of(request)
    key = _key(request)
    if key is None:
        return JSONResponse(body(run(lambda connection, done: None)), status)
    asked = _digest(request)
    stored = f"{caller.key_id}/{key}"
    place = f"idempotency/{stored}/answer"

    def earlier(connection: Connection) -> Response | None:
        row = connection.execute(
            select(idempotency.c.request, idempotency.c.status, idempotency.c.answer).where(
                idempotency.c.tenant_id == caller.tenant.id, idempotency.c.key == stored
            )
        ).first()
        if row is None:
            return None
        if not hmac.compare_digest(row.request, asked):
            raise Problem(
                422,
                "idempotency-key-reused",
                "This Idempotency-Key belongs to another request",
                "Use a new key for each write.",
            )
        answer = json.loads(caller.tenant.key.open(row.answer, place))
        return JSONResponse(answer, row.status, {"idempotent-replayed": "true"})

    def finish(connection: Connection, done: Done) -> None:
        if earlier(connection) is not None:
            raise _AnsweredError
        answer = json.dumps(body(done), separators=(",", ":")).encode()
        connection.execute(
            insert(idempotency).values(
                tenant_id=caller.tenant.id,
                key=stored,
                user_id=user_of(done),
                request=asked,
                status=status,
                answer=caller.tenant.key.seal(answer, place),
                created_at=context.clock(),
            )
        )

    def looked_up() -> Response | None:
        with context.database.reading() as connection:
            return earlier(connection)

    before = looked_up()
    if before is not None:
        return before
    try:
        return JSONResponse(body(run(finish)), status)
    except (_AnsweredError, Problem) as error:
        # Answered meanwhile: what is a problem now, a sample that is known for instance, was none then.
        replayed = looked_up()
        if replayed is None:
            raise error from None
        return replayed


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (0 < len(key) <= LONGEST and key.isascii() and key.isprintable()):
        raise Problem(
            400, "bad-idempotency-key", "This Idempotency-Key cannot be used",
            f"A key has 1 to {LONGEST} printable ASCII characters.",
        )  # fmt: skip
    return key


def _digest(request: Request) -> bytes:
    whole = hashlib.sha256()
    for part in (request.method.encode(), request.url.path.encode(), request.state.body):
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()
