"""Routes by which operators see whether the service works."""

from __future__ import annotations

import hmac

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text

from keydyn.service.http.access import context_of, forbidden
from keydyn.service.http.gate import HEALTH, is_loopback
from keydyn.service.http.routing import JSON, Call, Routes, content_of
from keydyn.service.jobs.queue import waiting
from keydyn.service.wire.answers import HealthAnswer
from keydyn.service.wire.both_ways import encoded

routes = Routes("", "health")
metrics_router = APIRouter(tags=["health"])


# On the event loop, so that it is answered however much work there is.
@routes.router.get(HEALTH, response_class=Response, responses={200: content_of(HealthAnswer)})
async def health() -> Response:
    """Report that the process is running; this is answered however busy the service is."""
    return Response(encoded(HealthAnswer("ok")), media_type=JSON)


@routes.route("GET", "/readyz")
def ready(call: Call) -> HealthAnswer:
    """Report that the process is running and that its database answers."""
    with call.context.database.reading() as connection:
        connection.execute(text("SELECT 1"))
    return HealthAnswer("ok")


@metrics_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request) -> Response:
    """Show metrics for Prometheus, to holders of the operator's token or, if none is set, on this machine."""
    deployment = request.app.state.deployment
    token, given = deployment.metrics_token, request.headers.get("authorization", "")
    if token is not None:
        allowed = hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    else:
        peer = request.client.host if request.client else ""
        allowed = is_loopback(peer) and not deployment.behind_proxy and "origin" not in request.headers
    if not allowed:
        raise forbidden("The metrics are for the operator of the service.")
    context = context_of(request)
    with context.database.reading() as connection:
        jobs = waiting(connection)
    page = request.app.state.metrics.page(context.database.queued, jobs)
    return Response(page, media_type=CONTENT_TYPE_LATEST)
