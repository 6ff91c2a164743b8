"""Routes for what a tenant can configure: settings, webhooks and populations."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from msgspec import structs, to_builtins
from sqlalchemy import Connection, select

from keydyn.service.accounts import change_tenant
from keydyn.service.http.access import Rule
from keydyn.service.http.idempotency import change_once
from keydyn.service.http.routing import Call, Routes
from keydyn.service.jobs import webhooks
from keydyn.service.jobs.queue import enqueue
from keydyn.service.people.background.own_people import forget_everyone
from keydyn.service.people.background.populations import list_populations
from keydyn.service.people.context import Write
from keydyn.service.people.stored_templates import keep_shorter
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import tenants
from keydyn.service.wire.answers import NewWebhook, PopulationsAnswer, ReceiptKey, Webhook, WebhooksAnswer
from keydyn.service.wire.both_ways import decoded, encoded
from keydyn.service.wire.receipts import url_safe
from keydyn.service.wire.requests import PopulationBody, TenantSettings, WebhookBody

routes = Routes("/v1", "administration")
ADMIN = Rule("admin")
WebhookId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", max_length=32, description="The id of the webhook.")
]


@routes.route("GET", "/settings", ADMIN)
def read_settings(call: Call) -> TenantSettings:
    """Show the settings."""
    return call.caller.tenant.settings


@routes.route("PUT", "/settings", ADMIN)
def change_settings(call: Call, body: TenantSettings) -> TenantSettings:
    """Replace the settings; a setting that is not sent returns to its default."""
    if body.takeover_chance < body.levels.high:
        detail = "takeover_chance must be at least the rate of the level high: no attempt would be allowed."
        raise Problem(422, "invalid-request", "These settings cannot be used", detail)

    def change(connection: Connection, write: Write) -> TenantSettings:
        one = tenants.c.id == write.tenant.id
        stored = connection.execute(select(tenants.c.settings).where(one)).scalar_one()
        change_tenant(connection, call.context.keys, write.tenant.id, settings=encoded(body).decode())
        before = structs.asdict(decoded(TenantSettings, stored.encode()))
        changed = {
            name: {"from": before[name], "to": value}
            for name, value in structs.asdict(body).items()
            if value != before[name]
        }
        if body.retention_days < before["retention_days"]:
            keep_shorter(connection, write.tenant, body.retention_days, call.context.clock())
        if not body.compare_people:
            forget_everyone(connection, write.tenant)
        write.note(connection, call.context.clock(), "settings.changed", changed=to_builtins(changed))
        return body

    return change_once(call, change)


@routes.route("GET", "/receipts/key", Rule("verify"))
def read_receipt_key(call: Call) -> ReceiptKey:
    """Show the public key that checks receipts. It changes only if the tenant's own key is replaced."""
    public = call.caller.tenant.signing_key.public_key()
    return ReceiptKey(url_safe(public.public_bytes_raw()))


@routes.route("POST", "/webhooks", ADMIN, status=201)
def create_webhook(call: Call, body: WebhookBody) -> NewWebhook:
    """Create a webhook, which sends events to an address; only this answer has the secret that signs them."""
    url = webhooks.check_address(body.url, call.request.app.state.deployment.private_webhooks)

    def change(connection: Connection, write: Write) -> NewWebhook:
        now = call.context.clock()
        made = webhooks.create(connection, write.tenant, url, body.events, now=now)
        write.note(connection, now, "webhook.created")
        return made

    return change_once(call, change)


@routes.route("GET", "/webhooks", ADMIN)
def list_webhooks(call: Call) -> WebhooksAnswer:
    """List the webhooks."""
    with call.context.database.reading() as connection:
        return WebhooksAnswer(tuple(webhooks.of_tenant(connection, call.caller.tenant.id)))


@routes.route("DELETE", "/webhooks/{webhook}", ADMIN)
def delete_webhook(call: Call, webhook: WebhookId) -> Webhook:
    """Delete a webhook."""

    def change(connection: Connection, write: Write) -> Webhook:
        there = {one.id: one for one in webhooks.of_tenant(connection, write.tenant.id)}
        webhooks.delete(connection, write.tenant.id, webhook)
        write.note(connection, call.context.clock(), "webhook.deleted")
        return there[webhook]

    return change_once(call, change)


@routes.route("GET", "/populations", ADMIN)
def read_populations(call: Call) -> PopulationsAnswer:
    """List the tenant's own populations. If there are none, the one that comes with keydyn is used."""
    with call.context.database.reading() as connection:
        return PopulationsAnswer(tuple(list_populations(connection, call.caller.tenant)))


@routes.route("POST", "/populations", ADMIN, status=202)
def learn_population(call: Call, body: PopulationBody) -> PopulationBody:
    """Learn a population from the people enrolled, if the settings allow it; this takes a while.

    Templates are then learnt again from stored samples; those whose samples have expired stay as they are.
    """
    if not call.caller.tenant.settings.learn_from_people:
        raise Problem(409, "not-allowed", "The settings do not allow it", "Set learn_from_people first.")
    payload = {"device": body.device, "vocabulary": body.text.vocabulary}

    def change(connection: Connection, write: Write) -> PopulationBody:
        now = call.context.clock()
        enqueue(connection, write.tenant, "learn-population", payload, now=now)
        write.note(connection, now, "population.asked", None, **payload)
        return body

    return change_once(call, change)
