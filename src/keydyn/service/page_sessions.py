"""Sessions of the service's own pages: opened by a link that works once, or with an API key."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from keydyn.service.accounts import SCOPES, KeyHolder, key_holder, new_row, revoke_row, tenant_named
from keydyn.service.clock import HOUR, Clock
from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.wire.requests import TenantSettings

# For how long a link can be opened, and how long the session lasts that a link or a key opens.
LINK, BY_LINK, BY_KEY = HOUR, 12 * HOUR, HOUR
# People who try it on themselves type little: three texts are enough for a template.
PAGE, PAGE_SETTINGS = "page", TenantSettings(samples_needed=3)


@dataclass(frozen=True)
class PageSession:
    """A session that was opened: what the page presents, and until when."""

    tenant_id: str
    token: str
    scopes: frozenset[str]
    expires_at: int


def new_link(database: Database, keys: MasterKeys, clock: Clock, tenant: str, url: str) -> str:
    """A link that opens the page at an address, once, for a tenant; made if there is none of that name."""
    now = clock()

    def change(connection: Connection) -> str:
        settings = PAGE_SETTINGS if tenant == PAGE else None
        owner = tenant_named(connection, keys, tenant, now, settings)
        new, link = new_row(connection, owner, SCOPES, now, "kdl", expires_at=now + LINK)
        audit.append(connection, owner, now, "operator", "link.created", "", {"link": new})
        return link

    # What comes after # is not sent to any server, and is in no log.
    return f"{url.rstrip('/')}/#link={database.write(change)}"


def open_by_link(database: Database, clock: Clock, link: str) -> PageSession:
    """Exchange a link for a session; a `Problem` if it was used before, or is not valid."""

    def change(connection: Connection) -> PageSession:
        now = clock()
        holder = key_holder(connection, link, now)
        # One change of the row: of two at the same time, one finds it used.
        if holder is None or holder.kind != "link" or not revoke_row(connection, holder.key_id, now):
            raise Problem(
                401,
                "link-not-valid",
                "This link cannot be used",
                "A link works once, within an hour. keydyn service link makes a new one.",
            )
        return _opened(connection, holder, now, BY_LINK)

    return database.write(change)


def open_by_key(database: Database, clock: Clock, key: str) -> PageSession:
    """Open a session with an API key of the scope admin; it ends when that key is revoked."""

    def change(connection: Connection) -> PageSession:
        now = clock()
        holder = key_holder(connection, key, now)
        if holder is None or holder.kind != "key":
            raise Problem(401, "not-authenticated", "This API key is not valid", "")
        if "admin" not in holder.scopes:
            raise Problem(403, "forbidden", "This is not allowed", "The API key lacks the scope admin.")
        return _opened(connection, holder, now, BY_KEY)

    return database.write(change)


def end_session(database: Database, clock: Clock, holder_id: str, tenant_id: str) -> None:
    """End a session: what the page presents is refused from now on."""

    def change(connection: Connection) -> None:
        now = clock()
        if revoke_row(connection, holder_id, now):
            audit.append(connection, tenant_id, now, f"session:{holder_id}", "page.closed", "", {})

    database.write(change)


def _opened(connection: Connection, holder: KeyHolder, now: int, lasting: int) -> PageSession:
    until = now + lasting
    columns: dict[str, str | int] = {"expires_at": until, "made_with": holder.key_id}
    new, token = new_row(connection, holder.tenant_id, holder.scopes, now, "kds", **columns)
    actor, details = f"{holder.kind}:{holder.key_id}", {"session": new}
    audit.append(connection, holder.tenant_id, now, actor, "page.opened", "", details)
    return PageSession(holder.tenant_id, token, holder.scopes, until)
