"""Delivery of webhooks: signed reports, sent to an address that was checked, within a time limit."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
import threading
import time

import httpx

from keydyn.service.jobs import webhooks
from keydyn.service.jobs.queue import Job
from keydyn.service.jobs.webhooks import ForbiddenAddressError, resolved
from keydyn.service.storage.database import Database
from keydyn.service.wall_clock import SECOND, Clock

# Time limits in seconds: of a delivery, from resolving the name to the answer's status; and of each step.
WHOLE_S, STEP_S = 15.0, 5.0
# How many seconds a process leaves a receiver alone after a failure, so that one that hangs does not delay
# the reports to others.
REST_S = 30.0


class DeliveryError(Exception):
    """Raised if a report was not accepted; it is sent again later."""


class WebhookDelivery:
    """The handler of "webhook" jobs; threads may share it.

    Parameters
    ----------
    allow_private : whether to deliver to addresses inside the network too, and without TLS
    tls : the certificate authorities to trust; by default the usual ones
    whole_s, rest_s : the time limit of a delivery, and the time for which a receiver that has failed is left
        alone, in seconds
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        allow_private: bool = False,
        tls: ssl.SSLContext | None = None,
        whole_s: float = WHOLE_S,
        rest_s: float = REST_S,
    ) -> None:
        self._database, self._clock, self._allow_private = database, clock, allow_private
        self._tls, self._whole_s, self._rest_s = tls or httpx.create_ssl_context(), whole_s, rest_s
        self._resting: dict[str, float] = {}
        self._changing = threading.Lock()

    def __call__(self, job: Job) -> None:
        """Send one report; raise a `DeliveryError` if it was not accepted."""
        webhook_id = job.payload["webhook"]
        with self._database.reading() as connection:
            found = webhooks.destination(connection, job.tenant_id, webhook_id, job.data_key)
        if found is None:
            return
        with self._changing:
            if self._resting.get(webhook_id, 0.0) > time.monotonic():
                raise DeliveryError("the receiver failed a moment ago")
        try:
            asyncio.run(self._deliver(*found, job.payload["report"]))
        except Exception:
            with self._changing:
                self._rest(webhook_id)
            raise

    def _rest(self, webhook_id: str) -> None:
        now = time.monotonic()
        self._resting = {name: until for name, until in self._resting.items() if until > now}
        self._resting[webhook_id] = now + self._rest_s

    async def _deliver(self, url: str, secret: str, report: dict[str, object]) -> None:
        body = json.dumps(report, separators=(",", ":")).encode()
        timestamp = self._clock() // SECOND
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "keydyn",
            "Keydyn-Event-Id": str(report["id"]),
            "Keydyn-Timestamp": str(timestamp),
            "Keydyn-Signature": signature(secret, timestamp, body),
        }
        try:
            async with asyncio.timeout(self._whole_s):
                status = await self._post(httpx.URL(url), headers, body)
        except (TimeoutError, OSError, httpx.HTTPError, ForbiddenAddressError) as error:
            # Without the cause, which may hold the address.
            raise DeliveryError(f"not delivered: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise DeliveryError(f"answered with status {status}")

    async def _post(self, url: httpx.URL, headers: dict[str, str], body: bytes) -> int:
        if url.scheme != "https" and not self._allow_private:
            raise ForbiddenAddressError("the webhook has no TLS")
        host = url.raw_host.decode("ascii")
        addresses = await resolved(
            host, url.port or (443 if url.scheme == "https" else 80), self._allow_private
        )
        # A client of httpx would log addresses, which may contain secrets, and use the proxies named in the
        # environment.
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            for address in addresses:
                request = httpx.Request(
                    "POST",
                    url.copy_with(host=address),
                    headers={**headers, "Host": url.netloc.decode("ascii")},
                    content=body,
                    # The certificate must have been issued for the name, although the address is used.
                    extensions={"sni_hostname": host, "timeout": httpx.Timeout(STEP_S).as_dict()},
                )
                try:
                    answer = await transport.handle_async_request(request)
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    if address == addresses[-1]:
                        raise
                    continue
                # Its body is not read.
                await answer.aclose()
                return answer.status_code
        raise DeliveryError("the name has no address")


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Sign the timestamp in seconds, a dot and the body with HMAC-SHA-256."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"
