"""The handlers of jobs, such as learning templates and populations, and the periodic work of each process."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection, select

from keydyn.service.accounts import Tenant, find_tenant, note_altered
from keydyn.service.jobs.periodic import expire
from keydyn.service.jobs.queue import Job
from keydyn.service.jobs.runner import Handler
from keydyn.service.people.background.backgrounds import background_of, given_background
from keydyn.service.people.background.own_people import TenantPlace, compare, is_learning, learn_place
from keydyn.service.people.background.populations import PopulationKind, learn, learn_again
from keydyn.service.people.context import Context, Write
from keydyn.service.people.rows import person_row, profile_row, with_users
from keydyn.service.people.stored_templates import fit, settled, stored_samples
from keydyn.service.people.tenancy import finish_replacing
from keydyn.service.problems import Problem
from keydyn.service.storage.database import DatabaseUnavailableError
from keydyn.service.storage.tables import profiles, tenants, users
from keydyn.service.wire.both_ways import Text

# The interval in seconds at which a process looks for erased people, and the ids that one query names.
LOOKING_S, AT_A_TIME = 2.0, 500


def handlers(context: Context) -> dict[str, Handler]:
    """The handler of each kind of job. All of them may run twice for one job without harm."""
    return {
        "fit": lambda job: settled(partial(_fitted, context, job.tenant_id, job.payload["profile"])),
        "migrate": lambda job: _migrate(context, job),
        "learn-population": lambda job: _learn(context, job),
        "truncate-log": lambda job: _truncate_log(context),
        "expire": lambda job: tidy(context),
        "own-people": lambda job: settled(partial(_learn_place, context, job)),
    }


def tidy(context: Context) -> None:
    """Delete what has expired, and drop tenants' keys that were replaced long enough ago."""
    expire(context.database, context.clock())
    finish_replacing(context)


def _truncate_log(context: Context) -> None:
    if not context.database.truncate_log():
        raise DatabaseUnavailableError("others still read from the log; tried again later")


def _migrate(context: Context, job: Job) -> None:
    """Learn the templates of all of a tenant's people again after a population was replaced."""
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
    """Learn a template if its samples have changed or it was learnt with another population.

    Once enrolment is complete, the samples are compared with the templates of others.
    """
    tenant = _tenant(context, tenant_id)
    if tenant is None:
        return
    with context.database.reading() as connection:
        row = connection.execute(with_users().where(profiles.c.id == profile_id)).first()
        if row is None:
            return
        person, profile = person_row(context, row, "user_"), profile_row(row)
        place = TenantPlace(tenant, profile.text, profile.device)
        background = given_background(connection, context, place)
        still_valid = background_of(connection, context, tenant, profile) is not None
        # Read now, because `fit` deletes samples that the settings do not keep.
        typed = stored_samples(connection, person, profile) if profile.complete_at is not None else []
    if background is None:
        return
    if profile.samples and not profile.is_fitted(background):
        fit(context, tenant, person, profile, background, still_valid)
    compare(context, place, person, background, typed)


def _learn_place(context: Context, job: Job) -> None:
    """Learn from the comparisons among the people of a place how they change its calibration."""
    tenant = _tenant(context, job.tenant_id)
    if tenant is None:
        return
    place = TenantPlace(tenant, Text.parse(job.payload["text"]), job.payload["device"])
    with context.database.reading() as connection:
        background = given_background(connection, context, place)
    if background is not None and is_learning(tenant, background):
        learn_place(context, place, background, job.payload["anew"])


def _tenant(context: Context, tenant_id: str) -> Tenant | None:
    with context.database.reading() as connection:
        return find_tenant(connection, context.keys, tenant_id)


class CaughtUp:
    """Drops people from this process's caches whom another process has erased; called every few seconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._erasures: dict[str, int] = {}
        self._again: set[str] = set()

    def __call__(self) -> None:
        """Forget people who were erased since the last call, and log rows that were found to be altered."""
        context = self._context
        note_altered(context.database, context.keys, context.clock())
        with context.database.reading() as connection:
            rows = connection.execute(select(tenants.c.id, tenants.c.erasures))
            erasures = {row.id: row.erasures for row in rows}
            both = {**self._erasures, **erasures}
            # Caches of tenants that have erased no one are right: the first call leaves them as they are.
            changed = {one for one in both if self._erasures.get(one, 0) != erasures.get(one)}
            # Once more the next time: a request that was under way may have remembered a person meanwhile.
            if changed or self._again:
                self._forget(connection, changed | self._again)
        for gone in set(context.keys.tenants) - set(erasures):
            context.keys.tenants.pop(gone, None)
        self._erasures, self._again = erasures, changed

    def _forget(self, connection: Connection, owners: set[str]) -> None:
        held = self._context.people.names()
        for begin in range(0, len(held), AT_A_TIME):
            some = held[begin : begin + AT_A_TIME]
            there = set(connection.execute(select(profiles.c.id).where(profiles.c.id.in_(some))).scalars())
            for name in some:
                if name not in there:
                    self._context.people.drop(name)
        # Cohorts and crowds contain templates too. Those that are still needed are read again.
        self._context.backgrounds.drop_of(owners)
        self._context.crowds.drop_of(owners)
