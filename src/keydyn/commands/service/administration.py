"""keydyn service keys, users, population and tenants: manage keys, people, populations and tenants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from keydyn.atomic import replacing
from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.service_options import (
    Service,
    TenantOption,
    as_operator,
    date,
    find_tenant,
    show,
    tell,
)
from keydyn.exit_codes import UsageError, checking_options
from keydyn.progress import working

if TYPE_CHECKING:
    from keydyn.service.wire.both_ways import Device

keys_app = group("keys", "API keys of programs.")
SCOPE_HELP = (
    "What the key allows: enrol, verify, identify, watch, admin or all; repeatable. "
    "By default enrol and verify."
)
users_app = group("users", "Enrolled people.")
populations_app = group("population", "A tenant's own populations.")
tenants_app = group("tenants", "Tenants: list them, replace their keys, delete them.")
DeviceOption = Annotated[str, typer.Option("--device", help="keyboard or phone.")]
TextOption = Annotated[
    str, typer.Option("--text", help="keys, or positions:NAME for a text of which only positions are sent.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tenant.")]


@keys_app.command("create")
@every_command
def create_key(
    tenant: TenantOption = "default",
    name: Annotated[str, typer.Option("--name", help="Purpose of the key.")] = "",
    scope: Annotated[list[str] | None, typer.Option("--scope", help=SCOPE_HELP)] = None,
    *,
    service: Service,
) -> None:
    """Create an API key, and the tenant if it does not exist. The key is shown only once.

    Example: `keydyn service keys create --tenant shop --scope verify`
    """
    with service.opened(create=True) as context:
        from keydyn.service import accounts

        opened = context.database, context.keys, context.clock
        with checking_options():
            key_id, key = accounts.new_key(*opened, tenant, name[:64], scope or accounts.DEFAULT_SCOPES)
    tell(key, service.as_json, id=key_id, key=key, tenant=tenant)


@keys_app.command("list")
@every_command
def list_keys(service: Service) -> None:
    """List API keys and the sessions of pages; the keys themselves are not stored.

    Example: `keydyn service keys list`
    """
    with service.opened() as context:
        from keydyn.service import accounts

        with context.database.reading() as connection:
            found = accounts.list_keys(connection)
    rows = [
        {
            "id": key.id,
            "kind": key.kind,
            "tenant": key.tenant,
            "name": key.name,
            "scopes": key.scopes.replace(" ", ", "),
            "created": date(key.created_at),
            "expires": date(key.expires_at),
            "revoked": date(key.revoked_at),
        }
        for key in found
    ]
    nothing = "there are no API keys: create one with keydyn service keys create"
    show("API keys", rows, service.as_json, nothing)


@keys_app.command("revoke")
@every_command
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id of the key, as shown by list.")], *, service: Service
) -> None:
    """Revoke an API key, or end a page's session; tokens created with it are refused too.

    Example: `keydyn service keys revoke 1f0c9a7be2d34a56`
    """
    with service.opened() as context:
        from keydyn.service import accounts

        now = context.clock()
        done = context.database.write(lambda connection: accounts.revoke_key(connection, key, now))
    if not done:
        raise UsageError(f"there is no valid key {key}")
    tell(f"revoked {key}", service.as_json, revoked=key)


@users_app.command("list")
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


@users_app.command("export")
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
        from keydyn.service.people.rows import person_named

        write = as_operator(context, tenant)
        found = registry.export(context, write.tenant, user)
        context.database.write(
            lambda c: write.note(
                c, context.clock(), "person.exported", person_named(c, context, write.tenant, user).key
            )
        )
    with replacing(out) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(found, indent=2))
    tell(f"wrote {out}", service.as_json, user=user, file=str(out))


@users_app.command("erase")
@every_command
def erase_user(
    user: Annotated[str, typer.Argument(help="The person's id.")],
    tenant: TenantOption = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    *,
    service: Service,
) -> None:
    """Erase a person: the rows about them, and the key that encrypts everything stored about them.

    Example: `keydyn service users erase ada`
    """
    if not yes:
        typer.confirm(f"Erase everything about {user}?", abort=True)
    with service.opened() as context:
        from keydyn.service.people import registry

        done = registry.erase(context, as_operator(context, tenant), user)
    text, learnt_again = f"erased {user}", done.population != "unchanged"
    if done.pending:
        text += "; the database's log is still being read, and a running service cuts it off later"
    if learnt_again:
        text += "; a running service learns the tenant's population again without them"
    tell(text, service.as_json, erased=user, population_learnt_again=learnt_again, pending=done.pending)


@populations_app.command("install")
@every_command
def install_population(
    file: Annotated[
        Path, typer.Argument(help="A population that `keydyn population fit --calibrate` wrote.")
    ],
    tenant: TenantOption = "default",
    device: DeviceOption = "keyboard",
    text: TextOption = "keys",
    *,
    service: Service,
) -> None:
    """Compare a tenant's people with your own population, for example one for phones.

    A running service learns templates again from the stored samples. Templates whose samples have expired
    stay valid with the population that they were learnt with.

    Example: `keydyn service population install phones.keydyn --tenant shop --device phone`
    """
    _device(device)
    with service.opened() as context:
        from keydyn.decisions.calibration.background import read_background
        from keydyn.population import PopulationModel
        from keydyn.service.people.background import populations

        background = read_background(file, PopulationModel.load(file))
        if background is None:
            raise ValueError(f"{file} has no calibration beside it: use keydyn population fit --calibrate")
        kind = populations.PopulationKind(_device(device), text)
        populations.install(context, as_operator(context, tenant), kind, background)
    tell(f"installed {file} for {tenant}, {device}, {text}", service.as_json, background=background.sha256)


@populations_app.command("learn")
@every_command
def learn_population(
    tenant: TenantOption = "default",
    device: DeviceOption = "keyboard",
    text: TextOption = "keys",
    *,
    service: Service,
) -> None:
    """Learn a population from a tenant's people, if its settings allow it.

    Example: `keydyn service population learn --tenant shop`
    """
    with service.opened() as context:
        from keydyn.service.people.background import populations

        write, kind = as_operator(context, tenant), populations.PopulationKind(_device(device), text)
        with working("learning"):
            done = populations.learn(context, write, kind)
    tell(f"learnt from {done.people} people", service.as_json, background=done.background, people=done.people)


@populations_app.command("list")
@every_command
def list_populations(tenant: TenantOption = "default", *, service: Service) -> None:
    """List a tenant's own populations.

    Example: `keydyn service population list --tenant shop`
    """
    with service.opened() as context:
        from keydyn.service.people.background import populations

        owner = find_tenant(context, tenant)
        with context.database.reading() as connection:
            found = populations.list_populations(connection, owner)
    rows = [
        {
            "device": one.device,
            "text": one.vocabulary,
            "created": date(one.created_at.milliseconds),
            "learnt here": one.learnt_here,
            "people": one.people,
        }
        for one in found
    ]
    show("Populations", rows, service.as_json, f"{tenant} uses the population that comes with keydyn")


def _device(device: str) -> Device:
    if device in ("keyboard", "phone"):
        return cast("Device", device)
    raise UsageError(f"--device must be keyboard or phone, not {device!r}")


@tenants_app.command("list")
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


@tenants_app.command("rotate-key")
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


@tenants_app.command("delete")
@every_command
def delete_tenant(
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
        from keydyn.service.people import tenancy

        done = tenancy.delete_tenant(context, find_tenant(context, name))
    text = f"deleted {name}"
    if not done:
        text += "; the database's log is still being read, and a running service cuts it off later"
    tell(text, service.as_json, deleted=name, pending=[] if done else ["log"])
