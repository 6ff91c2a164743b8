"""Backgrounds: a population, its calibrations and a cohort, on which decisions rest besides a template."""

from __future__ import annotations

import logging

from sqlalchemy import Connection, bindparam, func, select

from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.folder import enrolled_bytes
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.detectors import Detector
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.background.own_people import TenantPlace, adjusted_background, is_learning
from keydyn.service.people.context import Context
from keydyn.service.people.rows import ProfileRow
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import members, own_places, populations, users
from keydyn.service.wire.both_ways import KEYBOARD, KEYS, PHONE

logger = logging.getLogger(__name__)
# The population in use and the version of `own_places`, in one query, because every decision makes it.
_FOUND = Prepared(
    select(
        select(populations.c.id)
        .where(
            populations.c.tenant_id == bindparam("tenant"),
            populations.c.device == bindparam("on"),
            populations.c.vocabulary == bindparam("keys"),
            populations.c.replaced_at.is_(None),
        )
        .scalar_subquery()
        .label("population"),
        select(own_places.c.version)
        .where(
            own_places.c.tenant_id == bindparam("tenant"),
            own_places.c.device == bindparam("on"),
            own_places.c.text == bindparam("typed"),
        )
        .scalar_subquery()
        .label("version"),
    )
)
# A population that may no longer be in use, by the background that a template names.
_EARLIER = Prepared(
    select(populations.c.id)
    .where(
        populations.c.tenant_id == bindparam("tenant"),
        populations.c.device == bindparam("on"),
        populations.c.background == bindparam("background"),
    )
    .order_by(populations.c.created_at.desc())
)
_MEMBERS = Prepared(
    select(func.count()).select_from(members).where(members.c.population_id == bindparam("population"))
)


def background_of(
    connection: Connection, context: Context, tenant: Tenant, profile: ProfileRow
) -> Background | None:
    """The background of a template: the one in use, or an earlier one that the template was learnt with.

    None if there is neither, or if the template was not learnt from all samples: then it has to be learnt.
    """
    place = TenantPlace(tenant, profile.text, profile.device)
    found = find_background(connection, context, place, profile.background)
    return found if found is not None and profile.is_fitted(found) else None


def find_background(
    connection: Connection, context: Context, place: TenantPlace, made_with: str | None = None
) -> Background | None:
    """The background in use, or the one named by `made_with`, adjusted by the tenant's own people; or None.

    It is the tenant's own, or the one that comes with keydyn where that applies.
    """
    found, version = _with_version(connection, context, place)
    if made_with is not None and (found is None or found.sha256 != made_with):
        found = _earlier(connection, context, place, made_with)
    if found is None or version is None or not is_learning(place.tenant, found):
        return found
    return adjusted_background(connection, context, place, found, version)


def _earlier(connection: Connection, context: Context, place: TenantPlace, sha256: str) -> Background | None:
    """The background with this hash, among the tenant's and the one that comes with keydyn; or None."""
    found = _EARLIER.value(connection, tenant=place.tenant.id, on=place.device, background=sha256)
    if found is not None:
        return _own(connection, context, place.tenant, found)
    shipped = shipped_background()
    return shipped if shipped.sha256 == sha256 else None


def given_background(connection: Connection, context: Context, place: TenantPlace) -> Background | None:
    """The background in use as it was learnt, without adjustment by the people enrolled; or None."""
    return _with_version(connection, context, place)[0]


def background_for(connection: Connection, context: Context, place: TenantPlace) -> Background:
    """The background in use; raises a `Problem` that says why if there is none."""
    found = find_background(connection, context, place)
    if found is not None:
        return found
    if place.device == PHONE:
        detail = (
            "The population that comes with keydyn was learnt on keyboards. Learn one from typing on phones "
            "(keydyn population fit) and install it (keydyn service population install)."
        )
    else:
        detail = (
            "Only positions are sent for this text, which mean something only in comparison with other "
            "people who typed it: install a population for it, or let one be learnt from the people enrolled."
        )
    raise Problem(422, "no-population", "There is no population to compare with", detail)


def _with_version(
    connection: Connection, context: Context, place: TenantPlace
) -> tuple[Background | None, int | None]:
    """The background in use as it was learnt, and the version of its adjustment by own people, if any."""
    tenant, text, device = place
    row = _FOUND.first(connection, tenant=tenant.id, on=device, keys=text.vocabulary, typed=str(text))
    own = None if row.population is None else _own(connection, context, tenant, row.population)
    if own is None and (device, text.vocabulary) == (KEYBOARD, KEYS):
        own = shipped_background()
    return own, row.version


def _own(connection: Connection, context: Context, tenant: Tenant, population_id: str) -> Background | None:
    """One of the tenant's own backgrounds; None if this version of keydyn cannot read what is stored."""
    if population_id in context.unreadable:
        return None
    # Members are never added, and leave only when they are erased: their number tells cohorts apart.
    count = _MEMBERS.value(connection, population=population_id)
    name = f"{tenant.id}/{population_id}/{count}"
    cached = context.backgrounds.get(name, 0)
    if cached is None:
        cached = _read(connection, context, tenant, population_id)
        if cached is not None:
            context.backgrounds.put(name, 0, cached)
    return cached


def _read(connection: Connection, context: Context, tenant: Tenant, population_id: str) -> Background | None:
    one = connection.execute(select(populations).where(populations.c.id == population_id)).one()
    contents = tenant.key.open(one.contents, f"populations/{population_id}/contents")
    try:
        background = enrolled_bytes.background_of(contents)
    except ValueError:
        context.unreadable.add(population_id)
        logger.warning(
            "population %s of tenant %s cannot be read: %s",
            *(population_id, tenant.id),
            "it is being learnt again" if one.learnt_here else "install it again",
        )
        if one.learnt_here:
            payload = {"device": one.device, "vocabulary": one.vocabulary, "without": True}
            now = context.clock()
            # Not waited for, because this thread holds a reading connection.
            context.database.submit(lambda c: enqueue(c, tenant, "learn-population", payload, now=now))
        return None
    rows = connection.execute(
        select(members.c.user_id, members.c.template, users.c.wrapped_key)
        .join(users, users.c.id == members.c.user_id)
        .where(members.c.population_id == population_id, members.c.template.is_not(None))
        .order_by(members.c.user_id)
    )
    cohort: dict[str, Detector] = {}
    for row in rows:
        key = context.keys.unwrap(row.wrapped_key, f"users/{row.user_id}")
        template = key.open(row.template, f"members/{population_id}/{row.user_id}/template")
        cohort[row.user_id] = enrolled_bytes.enrolled_of(
            template, background.pattern, Fingerprints.none()
        ).template
    return background.with_cohort(cohort)
