"""keydyn service keys: API keys of programs."""

from __future__ import annotations

from typing import Annotated

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.options import Service, TenantOption, date, show, tell
from keydyn.exit_codes import UsageError, checking_options

app = group("keys", "API keys of programs.")
SCOPE_HELP = "What the key allows: enrol, verify, watch, admin; repeatable. By default all of them."
EVERYTHING = ("enrol", "verify", "watch", "admin")


@app.command("create")
@every_command
def create_key(
    tenant: TenantOption = "default",
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "",
    scope: Annotated[list[str] | None, typer.Option("--scope", help=SCOPE_HELP)] = None,
    *,
    service: Service,
) -> None:
    """Create an API key, and the tenant if it does not exist. The key is shown only once.

    Example: `keydyn service keys create --tenant shop --scope verify`
    """
    with service.opened(create=True) as context:
        from keydyn.service import accounts

        now = context.clock()
        with checking_options():
            key_id, key = context.database.write(
                lambda c: accounts.create_key(
                    c,
                    accounts.tenant_named(c, context.keys, tenant, now),
                    name[:64],
                    scope or EVERYTHING,
                    now,
                )
            )
    tell(key, service.as_json, id=key_id, key=key, tenant=tenant)


@app.command("list")
@every_command
def list_keys(service: Service) -> None:
    """List API keys; the keys themselves are not stored.

    Example: `keydyn service keys list`
    """
    with service.opened() as context:
        from keydyn.service import accounts

        with context.database.reading() as connection:
            found = accounts.list_keys(connection)
    rows = [
        {
            "id": key.id,
            "tenant": key.tenant,
            "name": key.name,
            "scopes": key.scopes.replace(" ", ", "),
            "created": date(key.created_at),
            "revoked": date(key.revoked_at),
        }
        for key in found
    ]
    nothing = "there are no API keys: create one with keydyn service keys create"
    show("API keys", rows, service.as_json, nothing)


@app.command("revoke")
@every_command
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id of the key, as shown by list.")], *, service: Service
) -> None:
    """Revoke an API key: requests with it, and tokens created with it, are refused from now on.

    Example: `keydyn service keys revoke 1f0c9a7be2d34a56`
    """
    with service.opened() as context:
        from keydyn.service import accounts

        now = context.clock()
        done = context.database.write(lambda connection: accounts.revoke_key(connection, key, now))
    if not done:
        raise UsageError(f"there is no valid key {key}")
    tell(f"revoked {key}", service.as_json, revoked=key)
