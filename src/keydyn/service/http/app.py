"""The ASGI application that each process of the service runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache

from fastapi import FastAPI

from keydyn import __version__
from keydyn.service.http.access import Door
from keydyn.service.http.counted_notes import CountedNotes
from keydyn.service.http.gate import Gate
from keydyn.service.http.limits import Bodies, HeavyWork, Rates
from keydyn.service.http.openapi import add_reference
from keydyn.service.http.problem_answers import ANSWERS, add_handlers
from keydyn.service.http.routes import configuration, health, pages, people, recognition, reports
from keydyn.service.http.watch_admission import Admission
from keydyn.service.jobs.periodic import EXPIRY_S, Periodic
from keydyn.service.jobs.runner import Handler, JobRunner
from keydyn.service.live.endpoint import watch_router
from keydyn.service.live.live_sessions import LiveSessions
from keydyn.service.live.peer import LiveLimits
from keydyn.service.metrics import Metrics
from keydyn.service.people.context import Context
from keydyn.service.people.job_handlers import LOOKING_S, CaughtUp, handlers, tidy
from keydyn.service.settings import Deployment
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.wall_clock import Clock, wall_clock

log = logging.getLogger("keydyn.service")
# How often counted notes are written, seconds.
NOTES_S = 30.0
DESCRIPTION = """Recognise people by the rhythm of their typing.

A decision is a **risk signal and a reason to step up**, never the only factor. Times are milliseconds, dates
milliseconds since 1970. Every write may carry an `Idempotency-Key`: if it is sent again, it gets the same
answer and has no second effect. Every failure is answered as `application/problem+json` (RFC 9457).
"""


def create_app(
    deployment: Deployment, database: Database, keys: MasterKeys, clock: Clock = wall_clock
) -> FastAPI:
    """Create the service as an ASGI application, on a database that is up to date.

    Examples
    --------
    >>> from keydyn.service.http.app import create_app
    >>> from keydyn.service.serving import prepare
    >>> from keydyn.service.settings import Deployment
    >>> from keydyn.service.storage.database import Database
    >>> from keydyn.service.storage.master_keys import open_master_keys
    >>> deployment = Deployment(database="sqlite:///app.db")
    >>> prepare(deployment)
    >>> database = Database(deployment.database)
    >>> app = create_app(deployment, database, open_master_keys(database))  # for any ASGI server
    >>> "/v1/users/{id}/verify" in app.openapi()["paths"]
    True
    >>> database.close()
    """
    context, metrics = Context(database, keys, clock), Metrics()
    rates, notes = Rates(deployment.requests_per_second), CountedNotes(database, clock)
    door = Door(context, rates, notes)
    admission = Admission(context, door)
    limits = LiveLimits(sessions=deployment.live_sessions, idle_s=deployment.idle_seconds)
    engine = LiveSessions(database, clock, limits, admission.happened, metrics)

    @cache
    def delivery() -> Handler:
        # Imported only once there is something to deliver, because it takes 6 MB.
        from keydyn.service.jobs.delivery import WebhookDelivery

        return WebhookDelivery(database, clock, allow_private=deployment.private_webhooks)

    runner = JobRunner(
        database,
        {**handlers(context), "webhook": lambda job: delivery()(job)},
        keys,
        clock,
        threads={"webhook": 8},
        observe=lambda kind, outcome: metrics.jobs.labels(kind, outcome).inc(),
    )
    threads = ThreadPoolExecutor(deployment.concurrent, "keydyn-request")
    periodic = [
        Periodic("expiry", lambda: tidy(context), EXPIRY_S),
        Periodic("catching-up", CaughtUp(context), LOOKING_S),
        Periodic("counted-notes", notes.flush, NOTES_S),
    ]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        runner.start()
        for one in periodic:
            one.start()
        await engine.start()
        try:
            yield
        finally:
            await engine.close()
            await asyncio.to_thread(runner.stop)
            for one in periodic:
                await asyncio.to_thread(one.stop)
            await asyncio.to_thread(threads.shutdown)
            notes.flush(everything=True)
            await asyncio.to_thread(database.close)

    app = FastAPI(
        title="keydyn service",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=ANSWERS,
        separate_input_output_schemas=False,
    )
    app.state.context, app.state.metrics = context, metrics
    app.state.rates, app.state.door, app.state.notes = rates, door, notes
    app.state.bodies, app.state.heavy = Bodies(deployment), HeavyWork()
    app.state.threads = threads
    app.state.deployment, app.state.engine = deployment, engine
    add_handlers(app)
    # The most frequent routes come first, because routes are searched in this order.
    for part in (recognition, people, configuration, reports, pages, health):
        app.include_router(part.routes.router)
    app.include_router(health.metrics_router)
    app.include_router(pages.files_router)
    app.include_router(watch_router(engine, admission.admit, admission.may_unlock))
    add_reference(app)

    app.add_middleware(Gate, deployment=deployment, metrics=metrics)
    return app
