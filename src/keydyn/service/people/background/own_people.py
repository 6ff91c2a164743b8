"""Adjusting a calibration that was learnt elsewhere by a tenant's own people, who also join its cohort.

When a template is learnt, its samples are compared with the templates of others who type the same text on the
same kind of device. Only scores are kept. A row for each text and device holds the adjustment that follows
from them, and a version, which rises whenever decisions must take a change into account; every process checks
the version by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, delete, insert, or_, select, tuple_, update

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.comparisons import LEAST_PEOPLE, Comparisons, OwnPlace, own_place
from keydyn.decisions.calibration.trials import LARGEST_COHORT
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.enrolling import adjusted_by, compared, learns_from_own
from keydyn.service.accounts import Tenant, find_tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.context import Context
from keydyn.service.people.keystroke_payload import TypedKeys, samples_of
from keydyn.service.people.rows import (
    PersonRow,
    ProfileRow,
    Stale,
    everybody,
    person_row,
    profile_row,
    unchanged,
)
from keydyn.service.people.templates_together import templates_of
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import comparisons, own_places, profiles, users
from keydyn.service.wire.both_ways import Device, Text, decoded

# The adjustment is learnt again when the number of people has grown by this factor.
GROWTH = 1.05


class TenantPlace(NamedTuple):
    """Where people are compared with each other: a tenant, a kind of text and a kind of device."""

    tenant: Tenant
    text: Text
    device: Device

    @property
    def row(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions that select the place's row in `own_places`."""
        of = own_places.c
        return of.tenant_id == self.tenant.id, of.device == self.device, of.text == str(self.text)


class OwnPerson(NamedTuple):
    """A person of a place, with their current template."""

    person: PersonRow
    profile: ProfileRow
    enrolled: Enrolled


class StoredScores(msgspec.Struct, frozen=True):
    """The stored scores of a person's samples when claimed to be one other person's."""

    scores: tuple[float, ...]
    keys: tuple[int, ...]
    # The number of keys with which the claimed person was enrolled.
    enrolled: int

    @classmethod
    def opened(cls, key: DataKey, profile: str, claimed: str, contents: bytes) -> StoredScores:
        """Decrypt the contents of a row of comparisons, with the key of the person who typed."""
        return decoded(cls, key.open(contents, _sealed_at(profile, claimed)))


def is_learning(tenant: Tenant, background: Background | None) -> bool:
    """Whether the tenant's own people adjust this background."""
    return background is not None and tenant.settings.compare_people and learns_from_own(background)


def adjusted_background(
    connection: Connection, context: Context, place: TenantPlace, background: Background, version: int
) -> Background:
    """The background as adjusted by the people of a place, in this version of the place's row."""
    name = f"{place.tenant.id}/{place.device}/{place.text}/{background.sha256}"
    cached = context.backgrounds.get(name, version)
    if cached is None:
        row = connection.execute(select(own_places).where(*place.row)).one()
        cached = background
        if row.background == background.sha256:
            people = own_people(connection, context, place, background)
            known = OwnPlace(row.people, row.comparisons, row.shift, row.unsure)
            cached = adjusted_by(background, {user: one.enrolled for user, one in people.items()}, known)
        context.backgrounds.put(name, version, cached)
    return cached


def own_people(
    connection: Connection, context: Context, place: TenantPlace, background: Background
) -> dict[str, OwnPerson]:
    """The earliest people of a place whose enrolment is complete, by id; as many as a cohort takes."""
    rows = connection.execute(_those_beside(place, background).limit(LARGEST_COHORT))
    both = [(person_row(context, row, "user_"), profile_row(row)) for row in rows]
    versions = {person.id: (profile.id, profile.version) for person, profile in both}
    templates = templates_of(connection, context, background, versions)
    return {person.id: OwnPerson(person, profile, templates[person.id]) for person, profile in both}


def _those_beside(place: TenantPlace, background: Background) -> Select[Any]:
    """Select the people of a place whose enrolment is complete and whose template rests on the background."""
    everyone = everybody(place.tenant, place.device, place.text)
    return everyone.where(profiles.c.background == background.sha256)


def _is_late(connection: Connection, place: TenantPlace, person: PersonRow, background: Background) -> bool:
    """Whether the cohort was already full with people who came before this person.

    The query needs no order, so that it can stop as soon as it has found enough people.
    """
    earlier = tuple_(users.c.created_at, users.c.id) < (person.created_at, person.id)
    found = _those_beside(place, background).with_only_columns(users.c.id).where(earlier).order_by(None)
    return len(connection.execute(found.limit(LARGEST_COHORT)).all()) == LARGEST_COHORT


def comparisons_among(
    connection: Connection, people: Mapping[str, OwnPerson], background: Background
) -> dict[str, Comparisons]:
    """The stored comparisons of these people with each other, by the id of the person who typed."""
    owners = {one.profile.id: user for user, one in people.items()}
    of = comparisons.c
    rows = connection.execute(
        select(of.profile_id, of.claimed_id, of.contents)
        .where(of.profile_id.in_(owners), of.claimed_id.in_(owners), of.background == background.sha256)
        .order_by(of.profile_id, of.claimed_id)
    )
    found: dict[str, list[tuple[str, StoredScores]]] = {user: [] for user in people}
    for row in rows:
        user = owners[row.profile_id]
        scores = StoredScores.opened(people[user].person.key, *row)
        found[user].append((owners[row.claimed_id], scores))
    return {user: _together(each) for user, each in found.items()}


def _together(each: Iterable[tuple[str, StoredScores]]) -> Comparisons:
    values = [
        (claimed, score, keys, one.enrolled)
        for claimed, one in each
        for score, keys in zip(one.scores, one.keys, strict=True)
    ]
    if not values:
        return Comparisons.none()
    claimed, scores, keys, enrolled = zip(*values, strict=True)
    return Comparisons(claimed, np.array(scores), np.array(keys, np.int64), np.array(enrolled, np.int64))


def compare(
    context: Context, place: TenantPlace, person: PersonRow, background: Background, typed: list[TypedKeys]
) -> None:
    """Compare a person's samples with the templates of others and keep the scores, unless there are enough.

    Raises `Stale` if the person's profile changes meanwhile.
    """
    if not typed or not is_learning(place.tenant, background):
        return
    with context.database.reading() as connection:
        row = connection.execute(select(own_places).where(*place.row)).first()
        if row is not None and row.background == background.sha256 and row.cohort >= LARGEST_COHORT:
            return
        if _is_late(connection, place, person, background):
            return
        people = own_people(connection, context, place, background)
    if person.id not in people or len(people) < LEAST_PEOPLE:
        return
    enrolled = {name: one.enrolled for name, one in people.items()}
    found = compared(background, enrolled, {person.id: samples_of(typed, place.text)})[person.id]
    own, now = people[person.id], context.clock()
    rows = [
        {
            "profile_id": own.profile.id,
            "claimed_id": people[name].profile.id,
            "background": background.sha256,
            "contents": own.person.key.seal(
                msgspec.json.encode(scores), _sealed_at(own.profile.id, people[name].profile.id)
            ),
        }
        for name, scores in _by_claimed(found).items()
    ]

    def change(connection: Connection) -> None:
        unchanged(connection, own.profile)
        tenant = find_tenant(connection, context.keys, place.tenant.id)
        if tenant is None or not tenant.settings.compare_people:
            # Switched off meanwhile.
            return
        # Comparisons with people who were erased or reset meanwhile are dropped.
        claimed = profiles.c.id.in_([row["claimed_id"] for row in rows])
        there = set(
            connection.execute(
                select(profiles.c.id).where(claimed, profiles.c.background.is_not(None))
            ).scalars()
        )
        connection.execute(delete(comparisons).where(comparisons.c.profile_id == own.profile.id))
        left = [row for row in rows if row["claimed_id"] in there]
        if left:
            connection.execute(insert(comparisons), left)
        _learn_later(connection, place, now)

    context.database.write(change)


def _by_claimed(found: Comparisons) -> dict[str, StoredScores]:
    names = np.array(found.claimed)
    return {
        name: StoredScores(
            tuple(found.scores[names == name].tolist()),
            tuple(found.keys[names == name].tolist()),
            int(found.enrolled[np.argmax(names == name)]),
        )
        for name in dict.fromkeys(found.claimed)
    }


def learn_place(context: Context, place: TenantPlace, background: Background, anew: bool) -> None:
    """Learn a place's adjustment from its comparisons if the number of people has grown, or if `anew`.

    Raises `Stale` if the place's row changes meanwhile.
    """
    with context.database.reading() as connection:
        row = connection.execute(select(own_places).where(*place.row)).first()
        people = own_people(connection, context, place, background)
        known = row is not None and row.background == background.sha256
        if row is not None and known and not anew and len(people) < GROWTH * row.cohort:
            return
        scores = comparisons_among(connection, people, background)
    found = own_place(background.calibrations, scores)
    values = {"background": background.sha256, "cohort": len(people), **vars(found)}

    def change(connection: Connection) -> None:
        version = connection.execute(
            select(own_places.c.version).where(*place.row).with_for_update()
        ).scalar()
        if version != (None if row is None else row.version):
            raise Stale
        if version is None:
            of = {"tenant_id": place.tenant.id, "device": place.device, "text": str(place.text)}
            connection.execute(insert(own_places).values({**of, **values, "version": 1}))
        else:
            connection.execute(
                update(own_places).where(*place.row).values({**values, "version": version + 1})
            )

    context.database.write(change)


def forget(connection: Connection, tenant: Tenant, profile: ProfileRow, now: int) -> None:
    """Delete a profile's comparisons; it leaves the cohort at once, and the adjustment is learnt again."""
    either = or_(comparisons.c.profile_id == profile.id, comparisons.c.claimed_id == profile.id)
    deleted = connection.execute(delete(comparisons).where(either)).rowcount
    place = TenantPlace(tenant, profile.text, profile.device)
    connection.execute(update(own_places).where(*place.row).values(version=own_places.c.version + 1))
    if deleted:
        _learn_later(connection, place, now, anew=True)


def forget_everyone(connection: Connection, tenant: Tenant) -> None:
    """Delete all comparisons of a tenant that no longer allows them."""
    own = (
        select(profiles.c.id)
        .join(users, users.c.id == profiles.c.user_id)
        .where(users.c.tenant_id == tenant.id)
    )
    connection.execute(delete(comparisons).where(comparisons.c.profile_id.in_(own)))
    start_over(connection, tenant)


def start_over(connection: Connection, tenant: Tenant) -> None:
    """Return to the unadjusted calibration until people have been compared again."""
    connection.execute(
        update(own_places)
        .where(own_places.c.tenant_id == tenant.id)
        .values(version=own_places.c.version + 1, background="")
    )


def _learn_later(connection: Connection, place: TenantPlace, now: int, anew: bool = False) -> None:
    payload = {"text": str(place.text), "device": place.device, "anew": anew}
    enqueue(connection, place.tenant, "own-people", payload, now=now)


def _sealed_at(profile: str, claimed: str) -> str:
    return f"comparisons/{profile}/{claimed}/contents"
