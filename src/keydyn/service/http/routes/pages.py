"""Sessions of the service's own pages."""

from __future__ import annotations

from keydyn.service.accounts import end_session, open_by_key, open_by_link
from keydyn.service.http.access import Rule, check_own_page, forbidden, peer_of
from keydyn.service.http.routing import Call, Routes
from keydyn.service.wire.answers import SessionAnswer
from keydyn.service.wire.both_ways import Moment
from keydyn.service.wire.requests import SessionBody

routes = Routes("/v1/session", "pages")


@routes.route("POST", "", status=201)
def open_session(call: Call, body: SessionBody) -> SessionAnswer:
    """Open a session for one of the service's own pages, by a link that works once or with an API key."""
    context, request = call.context, call.request
    request.app.state.rates.count(peer_of(request))
    check_own_page(request.headers)
    if body.link is not None:
        opened = open_by_link(context.database, context.clock, body.link)
    else:
        opened = open_by_key(context.database, context.clock, body.key or "")
    request.state.tenant_id = opened.tenant_id
    return SessionAnswer(opened.token, tuple(sorted(opened.scopes)), Moment.at(opened.expires_at))


@routes.route("DELETE", "", Rule(None), status=204)
def close_session(call: Call) -> None:
    """End the session that this is sent with."""
    caller, context = call.caller, call.context
    if caller.kind != "session":
        raise forbidden("This is not the session of a page.")
    end_session(context.database, context.clock, caller.key_id, caller.tenant.id)
