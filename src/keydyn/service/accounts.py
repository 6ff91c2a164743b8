"""Tenants, the keys of their programs, and the sessions of the service's own pages."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, insert, select, update

from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.audit import Entry
from keydyn.service.storage.authentic import COVERED, is_authentic, with_mac
from keydyn.service.storage.database import Database
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.storage.tables import api_keys, tenants, users
from keydyn.service.wall_clock import HOUR, Clock
from keydyn.service.wire.both_ways import decoded, encoded
from keydyn.service.wire.requests import TenantSettings

SCOPES = ("enrol", "verify", "identify", "watch", "admin")
# The scopes of a key if none are asked for, and the word that asks for all scopes.
DEFAULT_SCOPES, ALL = ("enrol", "verify"), "all"
TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# kdk_<id>_<secret>: the id finds the row; of the secret, 256 random bits, only the hash is stored.
KINDS = {"kdk": "key", "kdl": "link", "kds": "session"}
PRESENTED = re.compile(r"(kd[kls])_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
NO_HASH = hashlib.sha256(b"").digest()
# How long a link can be opened, and how long sessions last that were opened by a link or by a key.
LINK, BY_LINK, BY_KEY = HOUR, 2 * HOUR, HOUR
# The scopes of a session that a key opens, for /admin. A session that a link opens has the scopes of the
# link: its page is there to try everything out.
FOR_ADMIN = frozenset({"admin"})
# People who try the service on themselves type little: three texts complete an enrolment.
PAGE, PAGE_SETTINGS = "page", TenantSettings(samples_needed=3)
# Events that concern whole tenants are in the audit log of this one, which has no keys and a reserved name.
DEPLOYMENT, DEPLOYMENT_NAME = "deployment", "_deployment"


@dataclass(frozen=True)
class Tenant:
    """A tenant, with the key that seals what belongs to the tenant as a whole.

    `first_key` is the key that the tenant was created with, if it has been replaced.
    """

    id: str
    name: str
    settings: TenantSettings
    key: DataKey
    first_key: DataKey | None = None

    def lasting_secret(self, purpose: str) -> bytes:
        """32 bytes for one purpose, which stay the same when the key is replaced."""
        return (self.first_key or self.key).derived(purpose)

    @cached_property
    def signing_key(self) -> Ed25519PrivateKey:
        """The key that signs receipts, derived from the tenant's key so that it need not be stored."""
        return Ed25519PrivateKey.from_private_bytes(self.key.derived("receipts"))


@dataclass(frozen=True)
class KeyHolder:
    """The sender of a request: a tenant's program with an API key, or a page with a link or a session."""

    tenant_id: str
    key_id: str
    scopes: frozenset[str]
    kind: str = "key"


def tenant_named(
    connection: Connection, keys: MasterKeys, name: str, now: int, settings: TenantSettings | None = None
) -> str:
    """The id of the tenant of this name, which is created with these settings if there is none."""
    if not TENANT_NAME.fullmatch(name):
        raise ValueError(f"a tenant's name must have 1 to 64 characters of a-z, 0-9, _ and -, not {name!r}")
    found = connection.execute(_TENANT.where(tenants.c.name == name)).first()
    if found is not None:
        if not is_authentic(keys, tenants, found):
            raise ValueError(f"the row of the tenant {name} was not written with the master key")
        return str(found.id)
    new = secrets.token_hex(16)
    row = {"id": new, "name": name, "created_at": now}
    _make_tenant(connection, keys, row, settings or TenantSettings())
    audit.append(connection, new, Entry(now, "operator", "tenant.created"))
    return new


def deployment_log(connection: Connection, keys: MasterKeys, now: int) -> None:
    """Create the tenant whose audit log is that of the whole deployment, unless it exists."""
    if _ONE_TENANT.first(connection, tenant=DEPLOYMENT) is None:
        row = {"id": DEPLOYMENT, "name": DEPLOYMENT_NAME, "created_at": now}
        _make_tenant(connection, keys, row, TenantSettings())


def _make_tenant(
    connection: Connection, keys: MasterKeys, row: dict[str, Any], settings: TenantSettings
) -> None:
    wrapped = keys.wrap(DataKey.new(), f"tenants/{row['id']}")
    more = {"settings": encoded(settings).decode(), "audit_number": 0, "audit_hash": b""}
    values = with_mac(keys, tenants, {**row, **more, "wrapped_key": wrapped})
    connection.execute(insert(tenants).values(values))


def find_tenant(connection: Connection, keys: MasterKeys, tenant_id: str) -> Tenant | None:
    """The tenant with this id; None if there is none, or if its row is not authentic."""
    row = _ONE_TENANT.first(connection, tenant=tenant_id)
    # The same row and master keys always give the same tenant, so that it can be cached.
    known = keys.ids, row
    before = keys.tenants.get(tenant_id)
    if before is not None and before[0] == known:
        cached: Tenant = before[1]
        return cached
    keys.tenants.pop(tenant_id, None)
    if row is None or not is_authentic(keys, tenants, row):
        return None
    key, first = tenant_key(keys, row), None
    if row.lasting_key is not None:
        first = DataKey(key.open(row.lasting_key, f"tenants/{row.id}/lasting"))
    found = Tenant(row.id, row.name, decoded(TenantSettings, row.settings.encode()), key, first)
    keys.tenants[tenant_id] = known, found
    return found


def tenant_key(keys: MasterKeys, row: Any) -> DataKey:
    """The data key in a tenant's row; it also opens what the previous key sealed, while one is stored."""
    key = keys.unwrap(row.wrapped_key, f"tenants/{row.id}")
    if row.previous_key is None:
        return key
    return DataKey(key.key, DataKey(key.open(row.previous_key, f"tenants/{row.id}/previous")))


def change_tenant(connection: Connection, keys: MasterKeys, tenant_id: str, **values: Any) -> None:
    """Change columns of a tenant's row; raise a `ValueError` if the row is not authentic."""
    query = _TENANT.where(tenants.c.id == tenant_id).with_for_update(key_share=True)
    row = connection.execute(query).one()
    if not is_authentic(keys, tenants, row):
        raise ValueError(f"the row of the tenant {row.name} was not written with the master key")
    changed = with_mac(keys, tenants, {**row._mapping, **values})
    own = {name: changed[name] for name in (*values, "mac")}
    connection.execute(update(tenants).where(tenants.c.id == tenant_id).values(own))


_TENANT: Select[Any] = select(
    *(tenants.c[name] for name in COVERED[tenants]), tenants.c.wrapped_key, tenants.c.mac
)
_ONE_TENANT = Prepared(_TENANT.where(tenants.c.id == bindparam("tenant")))


def list_tenants(connection: Connection) -> Sequence[Row[Any]]:
    """The rows of all tenants, the oldest first, with the number of their people."""
    people = select(func.count()).select_from(users).where(users.c.tenant_id == tenants.c.id)
    return connection.execute(
        select(tenants, people.scalar_subquery().label("people"))
        .where(tenants.c.id != DEPLOYMENT)
        .order_by(tenants.c.created_at, tenants.c.id)
    ).all()


def note_altered(database: Database, keys: MasterKeys, now: int) -> None:
    """Enter each row that was refused as not authentic in its tenant's audit log, once."""
    for (table, row), owner in [*keys.altered.items()]:
        if owner is not None:
            entry = Entry(now, "service", "row.altered", details={"row": row, "table": table})
            database.write(partial(audit.append_once, tenant_id=owner, entry=entry))
            keys.altered[table, row] = None


def create_key(
    connection: Connection, keys: MasterKeys, tenant_id: str, name: str, scopes: Iterable[str], now: int
) -> tuple[str, str]:
    """Create a key; return its id, and the key itself, which can be shown only now."""
    new, key = new_row(connection, keys, tenant_id, scopes, created_at=now, name=name)
    details = {"key": new, "scopes": _known(scopes)}
    audit.append(connection, tenant_id, Entry(now, "operator", "key.created", details=details))
    return new, key


def new_row(
    connection: Connection,
    keys: MasterKeys,
    tenant_id: str,
    scopes: Iterable[str],
    kind: str = "kdk",
    **columns: str | int,
) -> tuple[str, str]:
    """Store a key, link or session, with further columns; return its id, and what the holder presents."""
    new, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    row = {
        "id": new,
        "tenant_id": tenant_id,
        "scopes": " ".join(_known(scopes)),
        "hash": _hash(secret),
        "kind": KINDS[kind],
        "name": "",
        **columns,
    }
    connection.execute(insert(api_keys).values(with_mac(keys, api_keys, row)))
    return new, f"{kind}_{new}_{secret}"


def _known(scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes in a fixed order, all of them for "all"; a `ValueError` for none or unknown ones."""
    scopes = SCOPES if ALL in set(scopes) else tuple(scopes)
    wanted = tuple(scope for scope in SCOPES if scope in set(scopes))
    strange = sorted(set(scopes) - set(SCOPES))
    if strange or not wanted:
        known = f"{', '.join(SCOPES)}, or {ALL} of these"
        raise ValueError(f"scopes are {known}, not {', '.join(strange) or 'none at all'}")
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
    """Revoke a key; return False if it does not exist or was revoked before.

    From now on, requests with this key are refused, and so are those of page sessions that it has opened.
    """
    tenant_id = tenant_of_key(connection, key_id)
    if not revoke_row(connection, key_id, now):
        return False
    revoke_rows(connection, now, api_keys.c.made_with == key_id)
    entry = Entry(now, "operator", "key.revoked", details={"key": key_id})
    audit.append(connection, str(tenant_id), entry)
    return True


def revoke_row(connection: Connection, row_id: str, now: int) -> bool:
    """Revoke a key, link or session; return False if it does not exist or was revoked before."""
    return revoke_rows(connection, now, api_keys.c.id == row_id) == 1


def revoke_rows(connection: Connection, now: int, *which: ColumnElement[bool]) -> int:
    """Revoke the keys, links and sessions that match conditions; return how many were not revoked before.

    Their codes are deleted, so that they cannot be made valid again without the master key.
    """
    valid = update(api_keys).where(*which, api_keys.c.revoked_at.is_(None))
    return connection.execute(valid.values(revoked_at=now, mac=None)).rowcount


def key_holder(connection: Connection, keys: MasterKeys, presented: str, now: int) -> KeyHolder | None:
    """The holder of a key, link or session that was presented; None if it is not valid."""
    parts = PRESENTED.fullmatch(presented)
    row = None
    if parts:
        row = _KEY.first(connection, key=parts[2])
    expected = NO_HASH if row is None else row.hash
    # Compared in constant time, even if the key does not exist.
    same = hmac.compare_digest(_hash(parts[3] if parts else presented), expected)
    if not parts or row is None or not same or KINDS[parts[1]] != row.kind:
        return None
    if not _is_valid(keys, row, now):
        return None
    return KeyHolder(row.tenant_id, row.id, frozenset(row.scopes.split()), row.kind)


def named_key(presented: str) -> str | None:
    """The id in a key, link or session that was presented and need not be valid; None if there is no id."""
    parts = PRESENTED.fullmatch(presented)
    return None if parts is None else parts[2]


def tenant_of_key(connection: Connection, key_id: str) -> str | None:
    """The id of the tenant whose key, link or session this is."""
    found = connection.execute(select(api_keys.c.tenant_id).where(api_keys.c.id == key_id)).scalar()
    return None if found is None else str(found)


def key_is_valid(connection: Connection, keys: MasterKeys, key_id: str, now: int) -> bool:
    """Whether a key or session exists, and has neither been revoked nor expired."""
    row = _KEY.first(connection, key=key_id)
    return row is not None and _is_valid(keys, row, now)


def _is_valid(keys: MasterKeys, row: Row[Any], now: int) -> bool:
    lasts = row.revoked_at is None and (row.expires_at is None or now < row.expires_at)
    return lasts and is_authentic(keys, api_keys, row)


_KEY = Prepared(select(api_keys).where(api_keys.c.id == bindparam("key")))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True)
class PageSession:
    """A session that was opened for a page: the token that the page presents, its scopes and its end."""

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
    """Create a key for a tenant, and the tenant if need be; return the key's id and the key itself."""
    now = clock()
    return database.write(
        lambda c: create_key(c, keys, tenant_named(c, keys, tenant, now), name, scopes, now)
    )


def new_link(database: Database, keys: MasterKeys, clock: Clock, tenant: str, url: str) -> str:
    """Create a link that opens the page at an address, once, for a tenant, which is created if need be."""
    now = clock()

    def change(connection: Connection) -> str:
        settings = PAGE_SETTINGS if tenant == PAGE else None
        owner = tenant_named(connection, keys, tenant, now, settings)
        until = now + LINK
        new, link = new_row(connection, keys, owner, SCOPES, "kdl", created_at=now, expires_at=until)
        audit.append(connection, owner, Entry(now, "operator", "link.created", details={"link": new}))
        return link

    # Browsers do not send what follows # to any server, so that it is in no log.
    return f"{url.rstrip('/')}/#link={database.write(change)}"


def open_page(
    database: Database, keys: MasterKeys, clock: Clock, *, link: str | None = None, key: str | None = None
) -> PageSession:
    """Open a session with a link, which works once, or with an API key that has the scope admin.

    The session ends when that key is revoked. Raises a `Problem` if the link or the key cannot be used.
    """

    def change(connection: Connection) -> PageSession:
        now = clock()
        holder = key_holder(connection, keys, link or key or "", now)
        if link is not None:
            # Revoking the link claims it: if two requests use it at the same time, one finds it used.
            if holder is None or holder.kind != "link" or not revoke_row(connection, holder.key_id, now):
                detail = "A link works once, within an hour. keydyn service link makes a new one."
                raise Problem(401, "link-not-valid", "This link cannot be used", detail)
            return _opened(connection, keys, holder, (holder.scopes, BY_LINK), now)
        if holder is None or holder.kind != "key":
            raise Problem(401, "not-authenticated", "This API key is not valid", "")
        if "admin" not in holder.scopes:
            raise Problem(403, "forbidden", "This is not allowed", "The API key lacks the scope admin.")
        return _opened(connection, keys, holder, (FOR_ADMIN, BY_KEY), now)

    return database.write(change)


def end_session(database: Database, clock: Clock, holder_id: str, tenant_id: str) -> None:
    """End a session, whose token is refused from now on."""

    def change(connection: Connection) -> None:
        now = clock()
        if revoke_row(connection, holder_id, now):
            audit.append(connection, tenant_id, Entry(now, f"session:{holder_id}", "page.closed"))

    database.write(change)


def _opened(
    connection: Connection, keys: MasterKeys, holder: KeyHolder, given: tuple[frozenset[str], int], now: int
) -> PageSession:
    """Open a session for a holder; `given` are its scopes, and how long it lasts."""
    scopes, until = given[0], now + given[1]
    columns: dict[str, str | int] = {"created_at": now, "expires_at": until, "made_with": holder.key_id}
    new, token = new_row(connection, keys, holder.tenant_id, scopes, "kds", **columns)
    entry = Entry(now, f"{holder.kind}:{holder.key_id}", "page.opened", details={"session": new})
    audit.append(connection, holder.tenant_id, entry)
    return PageSession(holder.tenant_id, token, scopes, until)
