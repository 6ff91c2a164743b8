"""What decisions rest on: a tenant's own population, or the one that comes with keydyn."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, func, select

from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.folder.enrolled_bytes import background_of, enrolled_of
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.detectors import Detector
from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Context
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import members, populations, users
from keydyn.service.wire.both_ways import KEYBOARD, KEYS, PHONE, Text

_POPULATION = select(populations.c.id, populations.c.background).where(
    populations.c.tenant_id == bindparam("tenant"),
    populations.c.device == bindparam("on"),
    populations.c.vocabulary == bindparam("keys"),
)
_MEMBERS = select(func.count()).select_from(members).where(members.c.population_id == bindparam("population"))


def find_background(
    connection: Connection, context: Context, tenant: Tenant, text: Text, device: str
) -> Background | None:
    """The tenant's own background, the shipped one where it serves, or None."""
    own = {"tenant": tenant.id, "on": device, "keys": text.vocabulary}
    row = connection.execute(_POPULATION, own).first()
    if row is None:
        return shipped_background() if (device, text.vocabulary) == (KEYBOARD, KEYS) else None
    # Members only ever leave, when they are erased: their number tells versions of the cohort apart.
    count = connection.execute(_MEMBERS, {"population": row.id}).scalar_one()
    cached = context.backgrounds.get(f"{row.id}/{count}", 0)
    if cached is None:
        cached = _read(connection, context, tenant, row.id)
        context.backgrounds.put(f"{row.id}/{count}", 0, cached)
    return cached


def background_for(
    connection: Connection, context: Context, tenant: Tenant, text: Text, device: str
) -> Background:
    """The background for this text and device; a `Problem` says why there is none."""
    found = find_background(connection, context, tenant, text, device)
    if found is not None:
        return found
    if device == PHONE:
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


def _read(connection: Connection, context: Context, tenant: Tenant, population_id: str) -> Background:
    contents = connection.execute(
        select(populations.c.contents).where(populations.c.id == population_id)
    ).scalar_one()
    background = background_of(tenant.key.open(contents, f"populations/{population_id}/contents"))
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
        cohort[row.user_id] = enrolled_of(template, background.pattern, Fingerprints.none()).template
    return background.with_cohort(cohort)
