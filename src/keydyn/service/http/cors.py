"""CORS by tenant: pages on origins that a tenant's settings name may call what a token allows."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from keydyn.service.http.gate import App, Message, Receive, Scope, Send

# Seconds for which the origins of all tenants are cached here, and answers in browsers.
REMEMBERED, FOR_BROWSERS = 10.0, 600


class Origins:
    """The origins that any tenant names; remembered for a while."""

    def __init__(self, read: Callable[[], frozenset[str]]) -> None:
        self._read, self._until = read, 0.0
        self._known: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Read them again next time: they may have changed."""
        self._until = 0.0

    async def allow(self, origin: str) -> bool:
        """Whether any tenant names this origin."""
        if time.monotonic() > self._until:
            self._until = time.monotonic() + REMEMBERED
            self._known = await run_in_threadpool(self._read)
        return origin.lower() in self._known


class TenantOrigins:
    """Middleware that answers preflight requests, and names the origin in answers to it.

    A preflight request names no tenant: whether the page's own tenant allows it is checked by the request
    itself.
    """

    def __init__(self, app: App, origins: Origins) -> None:
        self.app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the headers that browsers need."""
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin")
        named = scope["type"] == "http" and origin is not None
        if not named or origin is None or not await self._origins.allow(origin.decode("latin-1")):
            await self.app(scope, receive, send)
            return
        own = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"x-request-id, retry-after"),
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"vary", b"origin"),
        ]
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            own += [
                (b"access-control-allow-methods", b"POST"),
                (b"access-control-allow-headers", b"authorization, content-type, idempotency-key"),
                (b"access-control-max-age", str(FOR_BROWSERS).encode()),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": own})
            await send({"type": "http.response.body", "body": b""})
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Files that any page may load have their own headers.
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in own if pair[0] not in given)]
            await send(message)

        await self.app(scope, receive, sending)
