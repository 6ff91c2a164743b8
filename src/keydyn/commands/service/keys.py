"""keydyn service keys: API keys of programs."""

from __future__ import annotations

from typing import Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.service.options import (
    DatabaseOption,
    ServiceKeyOption,
    TenantOption,
    date,
    group,
    service_context,
    show,
    tell,
)
from keydyn.exit_codes import UsageError
from keydyn.terminal import JsonOption, print_json, say

app = group("keys", "API keys of programs.")
SCOPE_HELP = "What the key allows: enrol, verify, watch, admin; repeatable. By default all of them."
EVERYTHING = ("enrol", "verify", "watch", "admin")


@app.command("create")
@every_command
def create_key(
    tenant: TenantOption = "default",
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "",
    scope: Annotated[list[str] | None, typer.Option("--scope", help=SCOPE_HELP)] = None,
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an API key, and the tenant if it does not exist. The key is shown only once.

    Example: `keydyn service keys create --tenant shop --scope verify`
    """
    with service_context(database, key_file, create=True) as context:
        from keydyn.service import accounts

        now = context.clock()
        try:
            key_id, key = context.database.write(
                lambda connection: accounts.create_key(
                    connection,
                    accounts.tenant_named(connection, context.keys, tenant, now),
                    name[:64],
                    scope or EVERYTHING,
                    now,
                )
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
    if as_json:
        print_json({"id": key_id, "key": key, "tenant": tenant})
        return
    say(key)


@app.command("list")
@every_command
def list_keys(
    database: DatabaseOption = None, key_file: ServiceKeyOption = None, as_json: JsonOption = False
) -> None:
    """List API keys; the keys themselves are not stored.

    Example: `keydyn service keys list`
    """
    with service_context(database, key_file) as context:
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
    show("API keys", rows, as_json, "there are no API keys: create one with keydyn service keys create")


@app.command("revoke")
@every_command
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id of the key, as shown by list.")],
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke an API key: requests with it, and tokens created with it, are refused from now on.

    Example: `keydyn service keys revoke 1f0c9a7be2d34a56`
    """
    with service_context(database, key_file) as context:
        from keydyn.service import accounts

        now = context.clock()
        done = context.database.write(lambda connection: accounts.revoke_key(connection, key, now))
    if not done:
        raise UsageError(f"there is no valid key {key}")
    tell(f"revoked {key}", as_json, revoked=key)
