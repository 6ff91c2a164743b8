"""People and their profiles as stored in the database."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, bindparam, insert, select

from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Context
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import profiles, users
from keydyn.service.wall_clock import SECOND
from keydyn.service.wire import answers
from keydyn.service.wire.both_ways import Device, Moment, Text

if TYPE_CHECKING:
    from keydyn.decisions.calibration.background import Background


@dataclass(frozen=True)
class PersonRow:
    """A person, with the key that seals what is stored about them."""

    id: str
    tenant_id: str
    name: str
    created_at: int
    failures: int
    failed_at: int
    key: DataKey
    remembered: int = 0  # samples whose fingerprints were ever kept


@dataclass(frozen=True)
class ProfileRow:
    """A person's enrolment for one kind of text and device; `version` rises with every change."""

    id: str
    text: Text
    device: Device
    version: int
    samples: int
    keystrokes: int
    known_keystrokes: int
    clock_tick: float
    fitted_samples: int
    fitted_at: int | None
    complete_at: int | None
    drift: float
    drift_reported_at: int | None
    background: str | None

    def is_fitted(self, background: Background) -> bool:
        """Whether the template was learnt from all samples, with this background."""
        return self.fitted_samples == self.samples and self.background == background.sha256


# The columns of a profile that has no sample yet.
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("samples", "keystrokes", "known_keystrokes", "fitted_samples"), 0),
    **dict.fromkeys(("clock_tick", "drift"), 0.0),
    **dict.fromkeys(("fitted_at", "complete_at", "drift_reported_at", "background")),
}


class Stale(Exception):  # noqa: N818  (caught and tried again, never an error)
    """Raised if the data that a change was computed from has changed meanwhile."""


_CALLED = users.c.tenant_id == bindparam("tenant"), users.c.name == bindparam("called")
_PERSON = Prepared(select(users).where(*_CALLED))
profile_columns = [
    column for column in profiles.c if column.name not in ("template", "created_at", "user_id")
]
_PROFILE = select(*profile_columns)
_TYPED = profiles.c.text == bindparam("typed"), profiles.c.device == bindparam("on")
_ONE_PROFILE = Prepared(_PROFILE.where(profiles.c.user_id == bindparam("user"), *_TYPED))


def find_person(connection: Connection, context: Context, tenant: Tenant, name: str) -> PersonRow | None:
    """The tenant's person of this name; None if there is none."""
    row = _PERSON.first(connection, tenant=tenant.id, called=name)
    return None if row is None else person_row(context, row)


def person_row(context: Context, row: Any, prefix: str = "") -> PersonRow:
    """Make a `PersonRow` from a row of `users`, or from one whose columns of users have this prefix."""
    names = ("id", "tenant_id", "name", "created_at", "failures", "failed_at", "remembered")
    values = {name: getattr(row, prefix + name) for name in names}
    wrapped = getattr(row, f"{prefix}wrapped_key")
    return PersonRow(**values, key=context.keys.unwrap(wrapped, f"users/{values['id']}"))


def person_named(connection: Connection, context: Context, tenant: Tenant, name: str) -> PersonRow:
    """The tenant's person of this name; raises a `Problem` if there is none."""
    found = find_person(connection, context, tenant, name)
    if found is None:
        raise Problem(404, "no-such-user", "There is no such user", "No user with this id has been created.")
    return found


def person_and_profile(
    connection: Connection, context: Context, tenant: Tenant, name: str, typed: tuple[Text, Device]
) -> tuple[PersonRow, ProfileRow | None]:
    """The tenant's person of this name, and their profile for this text and device, if there is one."""
    text, device = typed
    row = _BOTH.first(connection, tenant=tenant.id, called=name, typed=str(text), on=device)
    if row is None:
        return person_named(connection, context, tenant, name), None
    return person_row(context, row, "user_"), profile_row(row)


def profile_of(connection: Connection, person: PersonRow, text: Text, device: Device) -> ProfileRow | None:
    """The person's profile for this text and device; None if there is no sample yet."""
    row = _ONE_PROFILE.first(connection, user=person.id, typed=str(text), on=device)
    return None if row is None else profile_row(row)


def profiles_of(connection: Connection, person: PersonRow) -> list[ProfileRow]:
    """All profiles of a person, in the order in which they were created."""
    rows = connection.execute(
        _PROFILE.where(profiles.c.user_id == person.id).order_by(profiles.c.created_at, profiles.c.id)
    )
    return [profile_row(row) for row in rows]


def with_users() -> Select[Any]:
    """Select profiles together with their people, whose columns have the prefix "user_"."""
    of_user = (column.label(f"user_{column.name}") for column in users.c)
    return select(*profile_columns, *of_user).join(users, users.c.id == profiles.c.user_id)


_BOTH = Prepared(with_users().where(*_CALLED, *_TYPED))


def everybody(tenant: Tenant, device: Device, text: Text | None = None) -> Select[Any]:
    """Select people whose enrolment on this device, in this text or any, is complete; the oldest first."""
    own = users.c.tenant_id == tenant.id, profiles.c.device == device, profiles.c.complete_at.is_not(None)
    typed = () if text is None else (profiles.c.text == str(text),)
    return with_users().where(*own, *typed).order_by(users.c.created_at, users.c.id)


def new_profile(
    connection: Connection, person: PersonRow, text: Text, device: Device, now: int
) -> ProfileRow:
    """Store an empty profile."""
    new = ProfileRow(secrets.token_hex(16), text, device, version=0, **NOTHING)
    row = {**vars(new), "text": str(text), "user_id": person.id, "created_at": now}
    connection.execute(insert(profiles).values(row))
    return new


def unchanged(connection: Connection, profile: ProfileRow) -> None:
    """Lock the profile until the change is committed; raise `Stale` if it has changed since it was read."""
    if _VERSION.value(connection, profile=profile.id) != profile.version:
        raise Stale


_VERSION = Prepared(select(profiles.c.version).where(profiles.c.id == bindparam("profile")).with_for_update())


def profile_row(row: Any) -> ProfileRow:
    """Make a `ProfileRow` from a row with `profile_columns`."""
    values = {name: getattr(row, name) for name in ProfileRow.__dataclass_fields__ if name != "text"}
    return ProfileRow(text=Text.parse(row.text), **values)


def profile_answer(profile: ProfileRow, tenant: Tenant, now: int) -> answers.Profile:
    """The progress of an enrolment, in the form of an answer."""
    fitted = profile.fitted_at
    return answers.Profile(
        text=profile.text,
        device=profile.device,
        samples=profile.samples,
        samples_needed=tenant.settings.samples_needed,
        keystrokes=profile.keystrokes,
        known_keystrokes=profile.known_keystrokes,
        clock_tick_ms=profile.clock_tick,
        complete=profile.complete_at is not None,
        template_at=None if fitted is None else Moment.at(fitted),
        template_age_s=None if fitted is None else max(0, now - fitted) / SECOND,
        drift=profile.drift,
    )
