"""Sessions of the service's own pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from keydyn.service.http.access import Caller, Rule, check_own_page, context_of, forbidden, peer_of
from keydyn.service.http.models import SessionAnswer, SessionBody
from keydyn.service.page_sessions import end_session, open_by_key, open_by_link

router = APIRouter(prefix="/v1/session", tags=["pages"])
Anybody = Annotated[Caller, Depends(Rule(None))]


@router.post("", status_code=201)
def open_session(request: Request, body: SessionBody) -> SessionAnswer:
    """Open a session for one of the service's own pages, by a link that works once or with an API key."""
    context = context_of(request)
    request.app.state.rates.count(peer_of(request))
    check_own_page(request.headers)
    if body.link is not None:
        opened = open_by_link(context.database, context.clock, body.link)
    else:
        opened = open_by_key(context.database, context.clock, body.key or "")
    request.state.tenant_id = opened.tenant_id
    return SessionAnswer(token=opened.token, scopes=sorted(opened.scopes), expires_at=opened.expires_at)


@router.delete("", status_code=204, response_class=Response)
def close_session(request: Request, caller: Anybody) -> None:
    """End the session that this is sent with."""
    if caller.kind != "session":
        raise forbidden("This is not the session of a page.")
    context = context_of(request)
    end_session(context.database, context.clock, caller.key_id, caller.tenant.id)
