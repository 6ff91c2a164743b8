"""keydyn service: keys, people and populations of the service, for whoever runs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from keydyn.atomic import replacing
from keydyn.commands.every_command import every_command
from keydyn.commands.service_database import app as database_app
from keydyn.commands.service_examples import examples
from keydyn.commands.service_options import (
    DatabaseOption,
    ServiceKeyOption,
    TenantOption,
    service_context,
)
from keydyn.exit_codes import UsageError
from keydyn.progress import working
from keydyn.terminal import JsonOption, print_json, say, show_table

if TYPE_CHECKING:
    from keydyn.service.accounts import Tenant
    from keydyn.service.people.context import Context, Write
    from keydyn.service.wire.both_ways import Device


def _group(name: str, help: str) -> typer.Typer:
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )


app = _group("service", "Administer the verification service: keys, people, populations, database.")
keys_app = _group("keys", "API keys of programs.")
users_app = _group("users", "Enrolled people.")
population_app = _group("population", "A tenant's own populations.")
for group in (keys_app, users_app, population_app, database_app):
    app.add_typer(group)
app.command()(examples)

URL_HELP = "Address at which browsers reach the service."
SCOPE_HELP = "What the key allows: enrol, verify, watch, admin; repeatable. By default all of them."
EVERYTHING = ("enrol", "verify", "watch", "admin")
DeviceOption = Annotated[str, typer.Option("--device", help="keyboard or phone.")]
TextOption = Annotated[
    str, typer.Option("--text", help="keys, or positions:NAME for a text of which only positions are sent.")
]


@keys_app.command("create")
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


@keys_app.command("list")
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
            "scopes": ", ".join(key.scopes),
            "created": _date(key.created_at),
            "revoked": _date(key.revoked_at),
        }
        for key in found
    ]
    _show("API keys", rows, as_json, "there are no API keys: create one with keydyn service keys create")


@keys_app.command("revoke")
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
    _tell(f"revoked {key}", as_json, revoked=key)


@app.command("link")
@every_command
def make_link(
    tenant: TenantOption = "page",
    url: Annotated[str, typer.Option("--url", help=URL_HELP)] = "http://127.0.0.1:8421",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a link that opens the service's page in a browser, once and within an hour.

    Example: `keydyn service link`
    """
    with service_context(database, key_file) as context:
        from keydyn.service.page_sessions import new_link

        try:
            link = new_link(context.database, context.keys, context.clock, tenant, url)
        except ValueError as error:
            raise UsageError(str(error)) from None
    if as_json:
        print_json({"link": link, "tenant": tenant})
        return
    say(link)


@users_app.command("list")
@every_command
def list_users(
    tenant: TenantOption = "default",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a tenant's people.

    Example: `keydyn service users list --tenant shop`
    """
    rows: list[dict[str, Any]] = []
    with service_context(database, key_file) as context:
        from keydyn.service.people import registry

        owner, after = _tenant(context, tenant), None
        while True:
            found, after = registry.listed(context, owner, 200, after)
            rows += [
                {
                    "id": one.id,
                    "created": _date(one.created_at.milliseconds),
                    "texts": ", ".join(str(profile.text) for profile in one.profiles),
                    "samples": sum(profile.samples for profile in one.profiles),
                    "complete": all(profile.complete for profile in one.profiles) and bool(one.profiles),
                    "failed attempts": one.failed_attempts,
                }
                for one in found
            ]
            if after is None:
                break
    _show(f"People of {tenant}", rows, as_json, f"{tenant} has no people")


@users_app.command("export")
@every_command
def export_user(
    user: Annotated[str, typer.Argument(help="The person's id.")],
    out: Annotated[Path, typer.Option("--out", help="JSON file to write, readable only by you.")],
    tenant: TenantOption = "default",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write everything that is stored about a person to a file.

    Example: `keydyn service users export ada --out ada.json`
    """
    with service_context(database, key_file) as context:
        from keydyn.service.people import registry
        from keydyn.service.problems import Problem

        try:
            found = registry.export(context, _tenant(context, tenant), user)
        except Problem as problem:
            raise UsageError(str(problem)) from None
    with replacing(out) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(found, indent=2))
    _tell(f"wrote {out}", as_json, user=user, file=str(out))


@users_app.command("erase")
@every_command
def erase_user(
    user: Annotated[str, typer.Argument(help="The person's id.")],
    tenant: TenantOption = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a person: the key that encrypts everything stored about them, and the rows.

    Example: `keydyn service users erase ada`
    """
    if not yes:
        typer.confirm(f"Erase everything about {user}?", abort=True)
    with service_context(database, key_file) as context:
        from keydyn.service.people import registry
        from keydyn.service.problems import Problem

        try:
            done = registry.erase(context, _as_operator(context, tenant), user)
        except Problem as problem:
            raise UsageError(str(problem)) from None
    text, learnt_again = f"erased {user}", done.population != "unchanged"
    if learnt_again:
        text += "; a running service learns the tenant's population again without them"
    _tell(text, as_json, erased=user, population_learnt_again=learnt_again)


@population_app.command("install")
@every_command
def install_population(
    file: Annotated[
        Path, typer.Argument(help="A population that `keydyn population fit --calibrate` wrote.")
    ],
    tenant: TenantOption = "default",
    device: DeviceOption = "keyboard",
    text: TextOption = "keys",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a tenant's people with your own population, for example one for phones.

    A running service learns templates again from the stored samples. People whose samples have expired must
    enrol again.

    Example: `keydyn service population install phones.keydyn --tenant shop --device phone`
    """
    _device(device)
    with service_context(database, key_file) as context:
        from keydyn.decisions.folder.population_files import read_background
        from keydyn.population import PopulationModel
        from keydyn.service.people import populations

        background = read_background(file, PopulationModel.load(file))
        if background is None:
            raise ValueError(f"{file} has no calibration beside it: use keydyn population fit --calibrate")
        kind = populations.PopulationKind(_device(device), text)
        populations.install(context, _as_operator(context, tenant), kind, background)
    _tell(f"installed {file} for {tenant}, {device}, {text}", as_json, background=background.sha256)


@population_app.command("learn")
@every_command
def learn_population(
    tenant: TenantOption = "default",
    device: DeviceOption = "keyboard",
    text: TextOption = "keys",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn a population from a tenant's people, if its settings allow it.

    Example: `keydyn service population learn --tenant shop`
    """
    _device(device)
    with service_context(database, key_file) as context:
        from keydyn.service.people import populations
        from keydyn.service.problems import Problem

        write, kind = _as_operator(context, tenant), populations.PopulationKind(_device(device), text)
        try:
            with working("learning"):
                done = populations.learn(context, write, kind)
        except Problem as problem:
            raise UsageError(str(problem)) from None
    _tell(f"learnt from {done.people} people", as_json, background=done.background, people=done.people)


@population_app.command("list")
@every_command
def list_populations(
    tenant: TenantOption = "default",
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a tenant's own populations.

    Example: `keydyn service population list --tenant shop`
    """
    with service_context(database, key_file) as context:
        from keydyn.service.people import populations

        owner = _tenant(context, tenant)
        with context.database.reading() as connection:
            found = populations.list_populations(connection, owner)
    rows = [
        {
            "device": one.device,
            "text": one.vocabulary,
            "created": _date(one.created_at.milliseconds),
            "learnt here": one.learnt_here,
            "people": one.people,
        }
        for one in found
    ]
    _show("Populations", rows, as_json, f"{tenant} uses the population that comes with keydyn")


def _tenant(context: Context, name: str) -> Tenant:
    from sqlalchemy import select

    from keydyn.service.accounts import find_tenant
    from keydyn.service.storage.tables import tenants

    with context.database.reading() as connection:
        found = connection.execute(select(tenants.c.id).where(tenants.c.name == name)).scalar()
        tenant = None if found is None else find_tenant(connection, context.keys, found)
    if tenant is None:
        raise UsageError(
            f"there is no tenant {name!r}: create it with keydyn service keys create --tenant {name}"
        )
    return tenant


def _as_operator(context: Context, tenant: str) -> Write:
    from keydyn.service.people.context import Write

    return Write(_tenant(context, tenant), "operator")


def _device(device: str) -> Device:
    if device in ("keyboard", "phone"):
        return cast("Device", device)
    raise UsageError(f"--device must be keyboard or phone, not {device!r}")


def _tell(text: str, as_json: bool, **fields: object) -> None:
    if as_json:
        print_json(fields)
    else:
        say(text)


def _show(title: str, rows: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    if as_json:
        print_json(rows)
    elif rows:
        show_table(title, rows)
    else:
        say(nothing)


def _date(at: int | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
