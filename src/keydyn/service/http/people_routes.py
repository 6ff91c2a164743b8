"""Who there is: create, list, read, reset, unblock, export and erase."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from keydyn.service.http.access import Caller, Rule, context_of
from keydyn.service.http.answers import densities_answer, user_answer
from keydyn.service.http.cursors import ID, decoded, encoded
from keydyn.service.http.idempotency import once
from keydyn.service.http.models import (
    DensitiesAnswer,
    Device,
    ErasedAnswer,
    Exported,
    NewUser,
    UserAnswer,
    UserId,
    UsersAnswer,
)
from keydyn.service.people import registry
from keydyn.service.people.densities import curves_of
from keydyn.service.people.registry import Erased, Overview

router = APIRouter(prefix="/v1/users", tags=["people"])
Enrolling = Annotated[Caller, Depends(Rule("enrol"))]
Administering = Annotated[Caller, Depends(Rule("admin"))]
Id = Annotated[UserId, Path()]


@router.post("", status_code=201, response_model=UserAnswer)
def create_user(request: Request, caller: Enrolling, body: NewUser) -> Response:
    """Create a user."""
    return _changed(
        request,
        caller,
        201,
        lambda finish: registry.create(context_of(request), caller.tenant, body.id, caller.actor, finish),
    )


@router.get("")
def list_users(
    request: Request,
    caller: Enrolling,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    search: Annotated[str | None, Query(max_length=128, description="Part of their ids.")] = None,
) -> UsersAnswer:
    """List users, the oldest first."""
    context = context_of(request)
    found, after = registry.listed(context, caller.tenant, limit, decoded(cursor, int, ID), search)
    now = context.clock()
    return UsersAnswer(
        users=[user_answer(one, caller.tenant, now) for one in found],
        next=None if after is None else encoded(*after),
    )


@router.get("/{id}")
def read_user(request: Request, caller: Enrolling, id: Id) -> UserAnswer:
    """Show a user and the progress of their enrolment."""
    context = context_of(request)
    return user_answer(registry.overview(context, caller.tenant, id), caller.tenant, context.clock())


@router.delete("/{id}", response_model=ErasedAnswer)
def erase_user(request: Request, caller: Administering, id: Id) -> Response:
    """Erase a user: everything that is stored about them, and the key it is encrypted with."""

    def body(done: Erased) -> dict[str, Any]:
        again = "being learnt again without them" if done.learnt_again else "unchanged"
        return ErasedAnswer(population=again).model_dump()

    return once(
        request,
        caller,
        200,
        lambda finish: registry.erase(context_of(request), caller.tenant, id, caller.actor, finish),
        body,
    )


@router.get("/{id}/export")
def export_user(request: Request, caller: Administering, id: Id) -> Exported:
    """Export everything that is stored about a user."""
    return registry.export(context_of(request), caller.tenant, id)


@router.get("/{id}/densities")
def read_densities(
    request: Request, caller: Administering, id: Id, device: Annotated[Device, Query()] = "keyboard"
) -> DensitiesAnswer:
    """Show how long a user's most typed keys take in free text, beside everybody's."""
    return densities_answer(curves_of(context_of(request), caller.tenant, id, device))


@router.post("/{id}/reset", response_model=UserAnswer)
def reset_user(request: Request, caller: Administering, id: Id) -> Response:
    """Start a user's enrolment again."""
    return _changed(
        request,
        caller,
        200,
        lambda finish: registry.reset(context_of(request), caller.tenant, id, caller.actor, finish),
    )


@router.post("/{id}/unblock", response_model=UserAnswer)
def unblock_user(request: Request, caller: Administering, id: Id) -> Response:
    """Clear a user's failed attempts, so that the next need not wait."""
    return _changed(
        request,
        caller,
        200,
        lambda finish: registry.unblock(context_of(request), caller.tenant, id, caller.actor, finish),
    )


def _changed(request: Request, caller: Caller, status: int, run: Any) -> Response:
    now = context_of(request).clock()

    def body(done: Overview) -> dict[str, Any]:
        return user_answer(done, caller.tenant, now).model_dump()

    return once(request, caller, status, run, body, lambda done: done.person.id)
