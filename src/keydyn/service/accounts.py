"""Tenants, the keys of their programs, and the sessions of the service's own pages."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.audit import Entry
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.storage.tables import api_keys, tenants
from keydyn.service.wall_clock import HOUR, Clock
from keydyn.service.wire.both_ways import decoded, encoded
from keydyn.service.wire.requests import TenantSettings

SCOPES = ("enrol", "verify", "watch", "admin")
# What a key allows for which nothing is asked, and how to ask for all of it.
DEFAULT_SCOPES, ALL = ("enrol", "verify"), "all"
TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# kdk_<id>_<secret>: the id finds the row, and the secret, 256 random bits, is known by its hash alone.
KINDS = {"kdk": "key", "kdl": "link", "kds": "session"}
PRESENTED = re.compile(r"(kd[kls])_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
NO_HASH = hashlib.sha256(b"").digest()
# For how long a link can be opened, and how long the session lasts that a link or a key opens.
LINK, BY_LINK, BY_KEY = HOUR, 2 * HOUR, HOUR
# What a session may do that a key opens, for /admin. One that a link opens may do what the link allows: its
# page is there to try everything out.
FOR_ADMIN = frozenset({"admin"})
# People who try it on themselves type little: three texts are enough for a template.
PAGE, PAGE_SETTINGS = "page", TenantSettings(samples_needed=3)


@dataclass(frozen=True)
class Tenant:
    """A tenant, with the key that seals what belongs to all of its people."""

    id: str
    name: str
    settings: TenantSettings
    key: DataKey


@dataclass(frozen=True)
class KeyHolder:
    """Who sends a request: a program of a tenant by one of its keys, or a page by its session."""

    tenant_id: str
    key_id: str
    scopes: frozenset[str]
    kind: str = "key"


def tenant_named(
    connection: Connection, keys: MasterKeys, name: str, now: int, settings: TenantSettings | None = None
) -> str:
    """The id of a tenant, which is made with these settings if there is none of that name."""
    if not TENANT_NAME.fullmatch(name):
        raise ValueError(f"a tenant's name must have 1 to 64 characters of a-z, 0-9, _ and -, not {name!r}")
    found = connection.execute(select(tenants.c.id).where(tenants.c.name == name)).scalar()
    if found is not None:
        return str(found)
    new = secrets.token_hex(16)
    connection.execute(
        insert(tenants).values(
            id=new,
            name=name,
            created_at=now,
            settings=encoded(settings or TenantSettings()).decode(),
            wrapped_key=keys.wrap(DataKey.new(), f"tenants/{new}"),
            audit_number=0,
            audit_hash=b"",
        )
    )
    audit.append(connection, new, Entry(now, "operator", "tenant.created"))
    return new


def find_tenant(connection: Connection, keys: MasterKeys, tenant_id: str) -> Tenant | None:
    """A tenant, with all that requests need; None if there is none of that id."""
    row = connection.execute(_TENANT, {"tenant": tenant_id}).first()
    if row is None:
        return None
    key = keys.unwrap(row.wrapped_key, f"tenants/{row.id}")
    return Tenant(row.id, row.name, decoded(TenantSettings, row.settings.encode()), key)


_TENANT = select(tenants.c.id, tenants.c.name, tenants.c.settings, tenants.c.wrapped_key).where(
    tenants.c.id == bindparam("tenant")
)


def create_key(
    connection: Connection, tenant_id: str, name: str, scopes: Iterable[str], now: int
) -> tuple[str, str]:
    """A new key: its id, and the key itself, which is shown once."""
    new, key = new_row(connection, tenant_id, scopes, now, name=name)
    details = {"key": new, "scopes": _known(scopes)}
    audit.append(connection, tenant_id, Entry(now, "operator", "key.created", details=details))
    return new, key


def new_row(
    connection: Connection,
    tenant_id: str,
    scopes: Iterable[str],
    now: int,
    kind: str = "kdk",
    **columns: str | int,
) -> tuple[str, str]:
    """Store a key, link or session, with further columns; its id, and what its holder presents."""
    new, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    connection.execute(
        insert(api_keys).values(
            id=new,
            tenant_id=tenant_id,
            scopes=" ".join(_known(scopes)),
            hash=_hash(secret),
            created_at=now,
            kind=KINDS[kind],
            **{"name": "", **columns},
        )
    )
    return new, f"{kind}_{new}_{secret}"


def _known(scopes: Iterable[str]) -> tuple[str, ...]:
    """Scopes in order, all of them for "all"; a `ValueError` if there are none, or unknown ones."""
    scopes = SCOPES if ALL in set(scopes) else tuple(scopes)
    wanted = tuple(scope for scope in SCOPES if scope in set(scopes))
    strange = sorted(set(scopes) - set(SCOPES))
    if strange or not wanted:
        raise ValueError(f"scopes are {', '.join(SCOPES)}, not {', '.join(strange) or 'none at all'}")
    return wanted


def list_keys(connection: Connection) -> Sequence[Row[Any]]:
    """The rows of all keys and sessions, revoked ones too, the oldest first, with their tenants' names."""
    return connection.execute(
        select(api_keys, tenants.c.name.label("tenant"))
        .join(tenants, tenants.c.id == api_keys.c.tenant_id)
        .where(api_keys.c.kind.in_(("key", "session")))
        .order_by(api_keys.c.created_at, api_keys.c.id)
    ).all()


def revoke_key(connection: Connection, key_id: str, now: int) -> bool:
    """Revoke a key; False if there is none that was valid.

    Requests with it are refused from now on, and so are those of pages that it has opened.
    """
    tenant_id = tenant_of_key(connection, key_id)
    if not revoke_row(connection, key_id, now):
        return False
    opened = update(api_keys).where(api_keys.c.made_with == key_id, api_keys.c.revoked_at.is_(None))
    connection.execute(opened.values(revoked_at=now))
    entry = Entry(now, "operator", "key.revoked", details={"key": key_id})
    audit.append(connection, str(tenant_id), entry)
    return True


def revoke_row(connection: Connection, row_id: str, now: int) -> bool:
    """Whether this change, and none before it, revoked a key, link or session."""
    valid = update(api_keys).where(api_keys.c.id == row_id, api_keys.c.revoked_at.is_(None))
    return connection.execute(valid.values(revoked_at=now)).rowcount == 1


def key_holder(connection: Connection, presented: str, now: int) -> KeyHolder | None:
    """The holder of a key, link or session that was presented; None if it is not valid."""
    parts = PRESENTED.fullmatch(presented)
    row = None
    if parts:
        row = connection.execute(_KEY, {"key": parts[2]}).first()
    expected = NO_HASH if row is None else row.hash
    # Compared in constant time, for a key that does not exist too.
    same = hmac.compare_digest(_hash(parts[3] if parts else presented), expected)
    if not parts or row is None or not same or KINDS[parts[1]] != row.kind:
        return None
    if not _lasts(row.revoked_at, row.expires_at, now):
        return None
    return KeyHolder(row.tenant_id, row.id, frozenset(row.scopes.split()), row.kind)


def named_key(presented: str) -> str | None:
    """The id in what was presented, which need not be valid; None if it has none."""
    parts = PRESENTED.fullmatch(presented)
    return None if parts is None else parts[2]


def tenant_of_key(connection: Connection, key_id: str) -> str | None:
    """The id of the tenant whose key, link or session this is."""
    found = connection.execute(select(api_keys.c.tenant_id).where(api_keys.c.id == key_id)).scalar()
    return None if found is None else str(found)


def key_is_valid(connection: Connection, key_id: str, now: int) -> bool:
    """Whether a key or session exists, and has neither been revoked nor expired."""
    row = connection.execute(_KEY, {"key": key_id}).first()
    return row is not None and _lasts(row.revoked_at, row.expires_at, now)


def _lasts(revoked_at: int | None, expires_at: int | None, now: int) -> bool:
    return revoked_at is None and (expires_at is None or now < expires_at)


_KEY = select(api_keys).where(api_keys.c.id == bindparam("key"))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True)
class PageSession:
    """A session that was opened: what the page presents, and until when."""

    tenant_id: str
    token: str
    scopes: frozenset[str]
    expires_at: int


def new_key(
    database: Database,
    keys: MasterKeys,
    clock: Clock,
    tenant: str,
    name: str = "",
    scopes: Iterable[str] = DEFAULT_SCOPES,
) -> tuple[str, str]:
    """The id of a new key of a tenant, made if there is none of that name, and the key itself."""
    now = clock()
    return database.write(lambda c: create_key(c, tenant_named(c, keys, tenant, now), name, scopes, now))


def new_link(database: Database, keys: MasterKeys, clock: Clock, tenant: str, url: str) -> str:
    """A link that opens the page at an address, once, for a tenant; made if there is none of that name."""
    now = clock()

    def change(connection: Connection) -> str:
        settings = PAGE_SETTINGS if tenant == PAGE else None
        owner = tenant_named(connection, keys, tenant, now, settings)
        new, link = new_row(connection, owner, SCOPES, now, "kdl", expires_at=now + LINK)
        audit.append(connection, owner, Entry(now, "operator", "link.created", details={"link": new}))
        return link

    # What comes after # is not sent to any server, and is in no log.
    return f"{url.rstrip('/')}/#link={database.write(change)}"


def open_page(
    database: Database, clock: Clock, *, link: str | None = None, key: str | None = None
) -> PageSession:
    """Open a session with a link, which works once, or with an API key that has the scope admin.

    The session ends when that key is revoked. A `Problem` if the link or the key cannot be used.
    """

    def change(connection: Connection) -> PageSession:
        now = clock()
        holder = key_holder(connection, link or key or "", now)
        if link is not None:
            # One change of the row: of two at the same time, one finds it used.
            if holder is None or holder.kind != "link" or not revoke_row(connection, holder.key_id, now):
                detail = "A link works once, within an hour. keydyn service link makes a new one."
                raise Problem(401, "link-not-valid", "This link cannot be used", detail)
            return _opened(connection, holder, holder.scopes, now, BY_LINK)
        if holder is None or holder.kind != "key":
            raise Problem(401, "not-authenticated", "This API key is not valid", "")
        if "admin" not in holder.scopes:
            raise Problem(403, "forbidden", "This is not allowed", "The API key lacks the scope admin.")
        return _opened(connection, holder, FOR_ADMIN, now, BY_KEY)

    return database.write(change)


def end_session(database: Database, clock: Clock, holder_id: str, tenant_id: str) -> None:
    """End a session: what the page presents is refused from now on."""

    def change(connection: Connection) -> None:
        now = clock()
        if revoke_row(connection, holder_id, now):
            audit.append(connection, tenant_id, Entry(now, f"session:{holder_id}", "page.closed"))

    database.write(change)


def _opened(
    connection: Connection, holder: KeyHolder, scopes: frozenset[str], now: int, lasting: int
) -> PageSession:
    until = now + lasting
    columns: dict[str, str | int] = {"expires_at": until, "made_with": holder.key_id}
    new, token = new_row(connection, holder.tenant_id, scopes, now, "kds", **columns)
    entry = Entry(now, f"{holder.kind}:{holder.key_id}", "page.opened", details={"session": new})
    audit.append(connection, holder.tenant_id, entry)
    return PageSession(holder.tenant_id, token, scopes, until)
