"""Handlers of jobs: templates and populations are learnt off the request path."""

from __future__ import annotations

from functools import partial

from sqlalchemy import select

from keydyn.service.accounts import Tenant, find_tenant
from keydyn.service.jobs.queue import Job
from keydyn.service.jobs.runner import Handler
from keydyn.service.people.context import Context, Write
from keydyn.service.people.populations import PopulationKind, learn, learn_again
from keydyn.service.people.rows import person_row, profile_row, with_users
from keydyn.service.people.templates import find_background, fit, settled
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import profiles, users


def handlers(context: Context) -> dict[str, Handler]:
    """The handler of each kind of job; doing a job twice does no harm."""
    return {
        "fit": lambda job: settled(partial(_fitted, context, job.tenant_id, job.payload["profile"])),
        "migrate": lambda job: _migrate(context, job),
        "learn-population": lambda job: _learn(context, job),
    }


def _migrate(context: Context, job: Job) -> None:
    """Learn everybody's template again after a population was replaced."""
    with context.database.reading() as connection:
        found = (
            connection.execute(
                select(profiles.c.id)
                .join(users, users.c.id == profiles.c.user_id)
                .where(users.c.tenant_id == job.tenant_id, profiles.c.device == job.payload["device"])
            )
            .scalars()
            .all()
        )
    for profile_id in found:
        settled(partial(_fitted, context, job.tenant_id, profile_id))


def _learn(context: Context, job: Job) -> None:
    tenant = _tenant(context, job.tenant_id)
    if tenant is None:
        return
    write = Write(tenant, "service")
    kind = PopulationKind(job.payload["device"], job.payload["vocabulary"])
    if job.payload.get("without"):
        learn_again(context, write, kind)
        return
    try:
        learn(context, write, kind)
    except Problem as problem:
        # Too few people, or no longer wanted: trying again would not help.
        if problem.kind == "busy":
            raise


def _fitted(context: Context, tenant_id: str, profile_id: str) -> None:
    """Learn a template from its samples if it does not know them yet, or belongs to another population."""
    tenant = _tenant(context, tenant_id)
    if tenant is None:
        return
    with context.database.reading() as connection:
        row = connection.execute(with_users().where(profiles.c.id == profile_id)).first()
        if row is None:
            return
        person, profile = person_row(context, row, "user_"), profile_row(row)
        background = find_background(connection, context, tenant, profile.text, profile.device)
    known = profile.fitted_samples == profile.samples
    if background is None or profile.samples == 0 or (known and profile.background == background.sha256):
        return
    fit(context, tenant, person, profile, background)


def _tenant(context: Context, tenant_id: str) -> Tenant | None:
    with context.database.reading() as connection:
        return find_tenant(connection, context.keys, tenant_id)
