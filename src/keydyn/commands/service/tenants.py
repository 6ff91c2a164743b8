"""keydyn service tenants: list tenants, replace their keys, delete them."""

from __future__ import annotations

from typing import Annotated

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.service_options import Service, as_operator, date, find_tenant, show, tell

app = group("tenants", "Tenants: list them, replace their keys, delete them.")
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tenant.")]


@app.command("list")
@every_command
def list_tenants(service: Service) -> None:
    """List the tenants.

    Example: `keydyn service tenants list`
    """
    with service.opened() as context:
        from keydyn.service import accounts

        with context.database.reading() as connection:
            found = accounts.list_tenants(connection)
    rows = [
        {
            "name": one.name,
            "created": date(one.created_at),
            "key replaced": date(one.key_since),
            "people": one.people,
        }
        for one in found
    ]
    nothing = "there are no tenants: create one with keydyn service keys create"
    show("Tenants", rows, service.as_json, nothing)


@app.command("rotate-key")
@every_command
def rotate_key(name: NameArgument, *, service: Service) -> None:
    """Replace a tenant's data key, for example because an old backup and its master key were stolen.

    The service can keep running. Tokens of browsers are void at once, and pages request new ones. The old key
    is kept for two more days, to decrypt what it encrypted, and then deleted.

    Example: `keydyn service tenants rotate-key shop`
    """
    with service.opened() as context:
        from keydyn.service.people.tenancy import replace_key

        replace_key(context, as_operator(context, name))
    tell(f"{name} has a new key; tokens signed with the old one are void", service.as_json, tenant=name)


@app.command("delete")
@every_command
def delete(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    *,
    service: Service,
) -> None:
    """Delete a tenant: its people, keys, settings, webhooks, populations and audit log.

    The end of the tenant's log is kept in the deployment's log, which `keydyn service database check` shows.

    Example: `keydyn service tenants delete shop`
    """
    if not yes:
        typer.confirm(f"Delete {name} and everything that is stored about its people?", abort=True)
    with service.opened() as context:
        from keydyn.service.people.tenancy import delete_tenant

        done = delete_tenant(context, find_tenant(context, name))
    text = f"deleted {name}"
    if not done:
        text += "; the database's log is still being read, and a running service cuts it off later"
    tell(text, service.as_json, deleted=name, pending=[] if done else ["log"])
