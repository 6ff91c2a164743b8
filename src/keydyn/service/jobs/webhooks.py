"""Webhooks: addresses of a tenant to which the service reports events."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import Connection, func, insert, select
from sqlalchemy import delete as sql_delete

from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.problems import Problem
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import webhooks
from keydyn.service.wire.answers import NewWebhook, Webhook
from keydyn.service.wire.both_ways import Event, Moment

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# The only part of IPv6 from which public addresses are allocated, and the prefix with which translators write
# IPv4 addresses in IPv6 (RFC 6052).
HANDED_OUT = ipaddress.IPv6Network("2000::/3")
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
# The interface identifiers that precede an IPv4 address in an IPv6 address of an ISATAP tunnel (RFC 5214).
ISATAP = (0x5EFE, 0x0200_5EFE)
EVENTS: tuple[Event, ...] = get_args(Event)
# The largest number of webhooks of one tenant, and of characters in an address.
MOST_WEBHOOKS, LONGEST_URL = 20, 2000


class ForbiddenAddressError(ValueError):
    """Raised if a webhook leads to an address that is not public."""


async def resolved(host: str, port: int, allow_private: bool) -> list[str]:
    """Look up the addresses of a name; raise a `ForbiddenAddressError` if one of them is not public.

    The tenant chooses the name, and could otherwise make the service talk to machines that only the service
    can reach. Reports must be sent to the addresses returned here, not to the name.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    # An address with a zone ("fe80::1%eth0") is local to a link.
    if not allow_private and not all(
        "%" not in one and is_public(ipaddress.ip_address(one)) for one in addresses
    ):
        raise ForbiddenAddressError("the webhook leads to an address that is not public")
    return addresses


def is_public(address: IPAddress) -> bool:
    """Whether an address is public, and contains no address in another form that is not."""
    if isinstance(address, ipaddress.IPv6Address):
        hidden = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in TRANSLATED or int(address) >> 32 & 0xFFFF_FFFF in ISATAP:
            hidden.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        if not all(is_public(one) for one in hidden if one is not None):
            return False
        if address.ipv4_mapped is not None or address in TRANSLATED:
            return True
        if address not in HANDED_OUT:
            return False
    return address.is_global and not address.is_multicast


def check_address(url: str, allow_private: bool) -> str:
    """Bring the address of a webhook into its normal form; raise a `Problem` if it cannot be used."""
    # Imported only when an address is checked or a report sent, because it takes 6 MB.
    import httpx

    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        raise _problem("This is not an address.") from None
    if found.scheme != "https" and not (allow_private and found.scheme == "http"):
        raise _problem("The address must begin with https://.")
    if not found.host or found.userinfo or found.fragment:
        raise _problem("The address must have a host, but neither a user name nor a fragment.")
    if not 0 < (found.port or 443) < 1 << 16:
        raise _problem("There is no such port.")
    if len(str(found)) > LONGEST_URL:
        raise _problem(f"The address is longer than {LONGEST_URL} characters.")
    literal = _literal(found.host)
    named_local = found.host.rstrip(".") == "localhost" or found.host.rstrip(".").endswith(".localhost")
    if not allow_private and (named_local or (literal is not None and not is_public(literal))):
        raise _problem("The address must be public.")
    return str(found)


def create(
    connection: Connection, tenant: Tenant, url: str, events: Sequence[str], *, now: int
) -> NewWebhook:
    """Store a webhook at an address that `check_address` has checked; its secret is shown only now."""
    wanted = tuple(event for event in EVENTS if event in events)
    if not wanted or set(events) - set(wanted):
        raise Problem(422, "webhook-events", "There is no such event", f"The events are {', '.join(EVENTS)}.")
    number = connection.execute(_NUMBER.where(webhooks.c.tenant_id == tenant.id)).scalar_one()
    if number >= MOST_WEBHOOKS:
        detail = f"At most {MOST_WEBHOOKS} are allowed; delete one first."
        raise Problem(409, "too-many-webhooks", "Too many webhooks", detail)
    new, secret = secrets.token_hex(16), f"whsec_{secrets.token_urlsafe(32)}"
    connection.execute(
        insert(webhooks).values(
            id=new,
            tenant_id=tenant.id,
            url=url,
            events=" ".join(wanted),
            secret=tenant.key.seal(secret.encode(), _place(new)),
            created_at=now,
        )
    )
    return NewWebhook(new, url, wanted, Moment.at(now), secret)


def of_tenant(connection: Connection, tenant_id: str) -> list[Webhook]:
    """All webhooks of a tenant, the oldest first."""
    rows = connection.execute(
        select(webhooks.c.id, webhooks.c.url, webhooks.c.events, webhooks.c.created_at)
        .where(webhooks.c.tenant_id == tenant_id)
        .order_by(webhooks.c.created_at, webhooks.c.id)
    )
    return [Webhook(row.id, row.url, tuple(row.events.split()), Moment.at(row.created_at)) for row in rows]


def delete(connection: Connection, tenant_id: str, webhook_id: str) -> None:
    """Delete a webhook, to which nothing more is sent."""
    found = connection.execute(
        sql_delete(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.tenant_id == tenant_id)
    )
    if found.rowcount == 0:
        raise Problem(404, "no-such-webhook", "There is no such webhook")


def announce(
    connection: Connection,
    tenant: Tenant,
    event: Event,
    data: dict[str, Any],
    *,
    now: int,
    user_id: str | None = None,
) -> int:
    """Enqueue reports of an event to all webhooks that want it, and return their number.

    This is part of the change that causes the event. `data` names the person as the tenant does. `user_id` is
    the id of the person's row: when the person is erased, so are reports that have not been delivered.
    """
    report = {"id": secrets.token_hex(16), "type": event, "created_at": now, "data": data}
    wanting = [webhook for webhook in of_tenant(connection, tenant.id) if event in webhook.events]
    for webhook in wanting:
        payload = {"webhook": webhook.id, "report": report}
        enqueue(connection, tenant, "webhook", payload, now=now, user_id=user_id)
    return len(wanting)


def destination(
    connection: Connection, tenant_id: str, webhook_id: str, data_key: DataKey
) -> tuple[str, str] | None:
    """The address and secret of a webhook, if it has not been deleted."""
    row = connection.execute(
        select(webhooks.c.url, webhooks.c.secret).where(
            webhooks.c.id == webhook_id, webhooks.c.tenant_id == tenant_id
        )
    ).first()
    if row is None:
        return None
    return row.url, data_key.open(row.secret, _place(webhook_id)).decode()


_NUMBER = select(func.count()).select_from(webhooks)


def _place(webhook_id: str) -> str:
    return f"webhooks/{webhook_id}/secret"


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _problem(detail: str) -> Problem:
    return Problem(422, "webhook-address", "A webhook cannot have this address", detail)
