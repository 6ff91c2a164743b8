"""What a tenant chooses: settings, webhooks, populations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from sqlalchemy import Connection, select, update

from keydyn.service.http.access import Caller, Rule, context_of
from keydyn.service.http.answers import population_answer, webhook_answer
from keydyn.service.http.idempotency import once
from keydyn.service.http.models import (
    NewWebhook,
    NewWebhookAnswer,
    PopulationBody,
    PopulationsAnswer,
    WebhookAnswer,
    WebhooksAnswer,
)
from keydyn.service.jobs import webhooks
from keydyn.service.jobs.queue import enqueue
from keydyn.service.jobs.webhooks import Webhook
from keydyn.service.people.populations import list_populations
from keydyn.service.problems import Problem
from keydyn.service.settings import TenantSettings
from keydyn.service.storage import audit
from keydyn.service.storage.tables import tenants

router = APIRouter(prefix="/v1", tags=["administration"])
Administering = Annotated[Caller, Depends(Rule("admin"))]


@router.get("/settings")
def read_settings(caller: Administering) -> TenantSettings:
    """Show the settings."""
    return caller.tenant.settings


@router.put("/settings", response_model=TenantSettings)
def change_settings(request: Request, caller: Administering, body: TenantSettings) -> Response:
    """Replace the settings; whatever is not sent goes back to its default."""
    context = context_of(request)

    def run(finish: Any) -> TenantSettings:
        def change(connection: Connection) -> TenantSettings:
            now, tenant_id = context.clock(), caller.tenant.id
            one = tenants.c.id == tenant_id
            stored = connection.execute(select(tenants.c.settings).where(one)).scalar_one()
            connection.execute(update(tenants).where(one).values(settings=body.model_dump_json()))
            before = TenantSettings.model_validate_json(stored)
            details = {"changed": [name for name, value in body if value != getattr(before, name)]}
            audit.append(connection, tenant_id, now, caller.actor, "settings.changed", "", details)
            finish(connection, body)
            return body

        return context.database.write(change)

    found = once(request, caller, 200, run, lambda done: done.model_dump(mode="json"))
    request.app.state.origins.forget()
    return found


@router.post("/webhooks", status_code=201, response_model=NewWebhookAnswer)
def create_webhook(request: Request, caller: Administering, body: NewWebhook) -> Response:
    """Send events to an address; the secret that signs them is shown only in this answer."""
    context, tenant = context_of(request), caller.tenant
    url = webhooks.check_address(body.url, request.app.state.deployment.private_webhooks)

    def run(finish: Any) -> tuple[Webhook, str]:
        def change(connection: Connection) -> tuple[Webhook, str]:
            now = context.clock()
            made = webhooks.create(connection, tenant.id, tenant.key, url, body.events, now=now)
            audit.append(connection, tenant.id, now, caller.actor, "webhook.created", "", {})
            finish(connection, made)
            return made

        return context.database.write(change)

    def answer(made: tuple[Webhook, str]) -> dict[str, Any]:
        return {**webhook_answer(made[0]).model_dump(), "secret": made[1]}

    return once(request, caller, 201, run, answer)


@router.get("/webhooks")
def list_webhooks(request: Request, caller: Administering) -> WebhooksAnswer:
    """List the webhooks."""
    with context_of(request).database.reading() as connection:
        found = webhooks.of_tenant(connection, caller.tenant.id)
    return WebhooksAnswer(webhooks=[webhook_answer(one) for one in found])


@router.delete("/webhooks/{webhook}", response_model=WebhookAnswer)
def delete_webhook(
    request: Request,
    caller: Administering,
    webhook: Annotated[str, Path(pattern="^[0-9a-f]{32}$", max_length=32)],
) -> Response:
    """Delete a webhook."""
    context, tenant = context_of(request), caller.tenant

    def run(finish: Any) -> Webhook:
        def change(connection: Connection) -> Webhook:
            there = {one.id: one for one in webhooks.of_tenant(connection, tenant.id)}
            webhooks.delete(connection, tenant.id, webhook)
            audit.append(connection, tenant.id, context.clock(), caller.actor, "webhook.deleted", "", {})
            finish(connection, there[webhook])
            return there[webhook]

        return context.database.write(change)

    return once(request, caller, 200, run, lambda gone: webhook_answer(gone).model_dump())


@router.get("/populations")
def read_populations(request: Request, caller: Administering) -> PopulationsAnswer:
    """List the tenant's own populations; without any, the one that comes with keydyn is used."""
    with context_of(request).database.reading() as connection:
        found = list_populations(connection, caller.tenant)
    return PopulationsAnswer(populations=[population_answer(one) for one in found])


@router.post("/populations", status_code=202, response_model=PopulationBody)
def learn_population(request: Request, caller: Administering, body: PopulationBody) -> Response:
    """Learn a population from the people enrolled, if the settings allow it; this takes a while.

    Templates are then learnt again from samples that are kept; whoever's have expired must enrol again.
    """
    context, tenant = context_of(request), caller.tenant
    if not tenant.settings.learn_from_people:
        raise Problem(409, "not-allowed", "The settings do not allow it", "Set learn_from_people first.")
    payload = {"device": body.device, "vocabulary": body.text.text.vocabulary}

    def run(finish: Any) -> PopulationBody:
        def change(connection: Connection) -> PopulationBody:
            now = context.clock()
            enqueue(connection, tenant.id, "learn-population", payload, tenant.key, now=now)
            finish(connection, body)
            return body

        return context.database.write(change)

    return once(request, caller, 202, run, lambda done: done.model_dump())
