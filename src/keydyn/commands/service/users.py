"""keydyn service users: list, export and erase people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keydyn.atomic import replacing
from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.options import Service, TenantOption, as_operator, date, find_tenant, show, tell

app = group("users", "Enrolled people.")


@app.command("list")
@every_command
def list_users(tenant: TenantOption = "default", *, service: Service) -> None:
    """List a tenant's people.

    Example: `keydyn service users list --tenant shop`
    """
    rows: list[dict[str, Any]] = []
    with service.opened() as context:
        from keydyn.service.people import registry

        owner, after = find_tenant(context, tenant), None
        while True:
            found, after = registry.listed(context, owner, 200, after)
            rows += [
                {
                    "id": one.id,
                    "created": date(one.created_at.milliseconds),
                    "texts": ", ".join(str(profile.text) for profile in one.profiles),
                    "samples": sum(profile.samples for profile in one.profiles),
                    "complete": all(profile.complete for profile in one.profiles) and bool(one.profiles),
                    "failed attempts": one.failed_attempts,
                }
                for one in found
            ]
            if after is None:
                break
    show(f"People of {tenant}", rows, service.as_json, f"{tenant} has no people")


@app.command("export")
@every_command
def export_user(
    user: Annotated[str, typer.Argument(help="The person's id.")],
    out: Annotated[Path, typer.Option("--out", help="JSON file to write, readable only by you.")],
    tenant: TenantOption = "default",
    *,
    service: Service,
) -> None:
    """Write everything that is stored about a person to a file.

    Example: `keydyn service users export ada --out ada.json`
    """
    with service.opened() as context:
        from keydyn.service.people import registry

        found = registry.export(context, find_tenant(context, tenant), user)
    with replacing(out) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(found, indent=2))
    tell(f"wrote {out}", service.as_json, user=user, file=str(out))


@app.command("erase")
@every_command
def erase_user(
    user: Annotated[str, typer.Argument(help="The person's id.")],
    tenant: TenantOption = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    *,
    service: Service,
) -> None:
    """Erase a person: the key that encrypts everything stored about them, and the rows.

    Example: `keydyn service users erase ada`
    """
    if not yes:
        typer.confirm(f"Erase everything about {user}?", abort=True)
    with service.opened() as context:
        from keydyn.service.people import registry

        done = registry.erase(context, as_operator(context, tenant), user)
    text, learnt_again = f"erased {user}", done.population != "unchanged"
    if learnt_again:
        text += "; a running service learns the tenant's population again without them"
    tell(text, service.as_json, erased=user, population_learnt_again=learnt_again)
