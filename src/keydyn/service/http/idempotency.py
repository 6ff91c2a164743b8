"""Repeatable writes: with the same `Idempotency-Key` they have the same answer and no second effect."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from msgspec import Struct
from sqlalchemy import Connection, insert, select, update

from keydyn.service.http.openapi import LONGEST_KEY
from keydyn.service.http.routing import Call, Replayed
from keydyn.service.people.context import Write
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import idempotency
from keydyn.service.wire.both_ways import encoded

Answered = TypeVar("Answered")
Changed = TypeVar("Changed", bound=Struct)
HEADER = "idempotency-key"


def once(call: Call, run: Callable[[Write], Answered]) -> Answered:
    """Run a write and return its answer; raise `Replayed`, with the stored answer, if it was run before.

    `run` must call `finish` of its `Write` within the change that it makes. Problems are not remembered: they
    have no effect, and the same request may succeed later.
    """
    caller, context = call.caller, call.context
    key = _key(call.request)
    if key is None:
        return run(caller.write())
    digest, row_key = _digest(call), f"{caller.name}/{key}"
    place = f"idempotency/{row_key}/answer"
    own = idempotency.c.tenant_id == caller.tenant.id, idempotency.c.key == row_key

    def check_not_run(connection: Connection) -> None:
        columns = idempotency.c.request, idempotency.c.status, idempotency.c.answer
        row = connection.execute(select(*columns).where(*own)).first()
        if row is None:
            return
        if not hmac.compare_digest(row.request, digest):
            detail = "Use a new key for each write."
            title = "This Idempotency-Key belongs to another request"
            raise Problem(422, "idempotency-key-reused", title, detail)
        raise Replayed(row.status, caller.tenant.key.open(row.answer, place))

    def finish(connection: Connection, answer: Struct, user_id: str | None) -> None:
        check_not_run(connection)
        connection.execute(
            insert(idempotency).values(
                tenant_id=caller.tenant.id,
                key=row_key,
                user_id=user_id,
                request=digest,
                status=call.status,
                answer=caller.tenant.key.seal(encoded(answer), place),
                created_at=context.clock(),
            )
        )

    def amend(answer: Struct) -> None:
        sealed = caller.tenant.key.seal(encoded(answer), place)
        context.database.write(lambda c: c.execute(update(idempotency).where(*own).values(answer=sealed)))

    def look_up() -> None:
        with context.database.reading() as connection:
            check_not_run(connection)

    look_up()
    try:
        return run(caller.write(finish, amend))
    except Problem:
        # The same request may have been answered meanwhile, and its own effect (a sample that is now known,
        # for instance) may be the cause of the problem.
        look_up()
        raise


def change_once(call: Call, change: Callable[[Connection, Write], Changed]) -> Changed:
    """Run a write that consists of one change and concerns no particular person, as `once` does."""

    def run(write: Write) -> Changed:
        def whole(connection: Connection) -> Changed:
            answer = change(connection, write)
            write.finish(connection, answer, None)
            return answer

        return call.context.database.write(whole)

    return once(call, run)


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        detail = f"A key has 1 to {LONGEST_KEY} printable ASCII characters."
        raise Problem(400, "bad-idempotency-key", "This Idempotency-Key cannot be used", detail)
    return key


def _digest(call: Call) -> bytes:
    """A keyed digest of a request; without the tenant's key, it does not reveal whom the path names."""
    request = call.request
    whole = hmac.new(call.caller.tenant.lasting_secret("requests"), digestmod="sha256")
    place = f"{request.url.path}?{request.url.query}"
    for part in (request.method.encode(), place.encode(), request.state.body):
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()
