"""Routes that create, list, show, reset, unblock, export and erase the people of a tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import Connection

from keydyn.service.http.access import Rule
from keydyn.service.http.idempotency import once
from keydyn.service.http.routing import CURSOR_ID, CURSOR_NUMBER, Call, Id, Routes, cursor_at, cursor_values
from keydyn.service.people import registry
from keydyn.service.people.activity import densities_of
from keydyn.service.people.rows import person_named
from keydyn.service.wire.answers import DensitiesAnswer, Erased, User, UsersAnswer
from keydyn.service.wire.both_ways import Device
from keydyn.service.wire.requests import NewUser

routes = Routes("/v1/users", "people")
ENROL, ADMIN, READ = Rule("enrol"), Rule("admin"), Rule("enrol", or_scope="admin")


@routes.route("POST", "", ENROL, status=201)
def create_user(call: Call, body: NewUser) -> User:
    """Create a user."""
    return once(call, lambda write: registry.create(call.context, write, body.id))


@routes.route("GET", "", READ)
def list_users(
    call: Call,
    limit: Annotated[int, Query(ge=1, le=200, description="Users per page.")] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
    search: Annotated[
        str | None, Query(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$", description="Part of their ids.")
    ] = None,
) -> UsersAnswer:
    """List users, the oldest first."""
    found, after = registry.listed(
        call.context, call.caller.tenant, limit, cursor_values(cursor, CURSOR_NUMBER, CURSOR_ID), search
    )
    call.note_read("people.listed")
    return UsersAnswer(tuple(found), None if after is None else cursor_at(*after))


@routes.route("GET", "/{id}", READ)
def read_user(call: Call, id: Id) -> User:
    """Show a user and the progress of their enrolment."""
    found = registry.find_user(call.context, call.caller.tenant, id)
    call.note_read("person.read")
    return found


@routes.route("DELETE", "/{id}", ADMIN)
def erase_user(call: Call, id: Id) -> Erased:
    """Erase a user: everything that is stored about them, and the key it is encrypted with."""
    return once(call, lambda write: registry.erase(call.context, write, id))


@routes.route("GET", "/{id}/export", ADMIN, heavy=True)
def export_user(call: Call, id: Id) -> dict[str, Any]:
    """Export everything that is stored about a user."""
    found = registry.export(call.context, call.caller.tenant, id)
    _note(call, id, "person.exported")
    return found


@routes.route("GET", "/{id}/densities", ADMIN, heavy=True)
def read_densities(
    call: Call, id: Id, device: Annotated[Device, Query(description="What they typed on.")] = "keyboard"
) -> DensitiesAnswer:
    """Show the times of a user's most frequent keys in free text, compared with those of the population."""
    found = densities_of(call.context, call.caller.tenant, id, device)
    _note(call, id, "densities.read")
    return found


@routes.route("POST", "/{id}/reset", ADMIN)
def reset_user(call: Call, id: Id) -> User:
    """Start a user's enrolment again."""
    return once(
        call, lambda write: registry.unblock(call.context, write, id, action="user.reset", reset=True)
    )


@routes.route("POST", "/{id}/unblock", ADMIN)
def unblock_user(
    call: Call,
    id: Id,
    restore_budget: Annotated[
        bool, Query(description="Also forget the cost of failed attempts, which weakens `takeover_chance`.")
    ] = False,
) -> User:
    """Reset a user's count of failed attempts in a row, so that the next attempt need not wait.

    With `restore_budget`, the chance that strangers are accepted as this user also counts from 0 again.
    """
    return once(call, lambda write: registry.unblock(call.context, write, id, budget=restore_budget))


@routes.route("POST", "/{id}/second-factor", Rule("verify"))
def report_second_factor(call: Call, id: Id) -> User:
    """Report that a user has just proved who they are by another factor: the next attempt need not wait.

    What failed attempts have used of `takeover_chance` stays counted.
    """
    return once(call, lambda write: registry.unblock(call.context, write, id, action="user.second-factor"))


def _note(call: Call, id: str, action: str) -> None:
    """Note in the audit log that personal data of a user was read."""
    context, write = call.context, call.caller.write()

    def change(connection: Connection) -> None:
        person = person_named(connection, context, write.tenant, id)
        write.note(connection, context.clock(), action, person.key)

    context.database.write(change)
