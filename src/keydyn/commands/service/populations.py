"""keydyn service population: a tenant's own populations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.options import Service, TenantOption, as_operator, date, find_tenant, show, tell
from keydyn.exit_codes import UsageError
from keydyn.progress import working

if TYPE_CHECKING:
    from keydyn.service.wire.both_ways import Device

app = group("population", "A tenant's own populations.")
DeviceOption = Annotated[str, typer.Option("--device", help="keyboard or phone.")]
TextOption = Annotated[
    str, typer.Option("--text", help="keys, or positions:NAME for a text of which only positions are sent.")
]


@app.command("install")
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

    A running service learns templates again from the stored samples. People whose samples have expired must
    enrol again.

    Example: `keydyn service population install phones.keydyn --tenant shop --device phone`
    """
    _device(device)
    with service.opened() as context:
        from keydyn.decisions.calibration.background import read_background
        from keydyn.population import PopulationModel
        from keydyn.service.people import populations

        background = read_background(file, PopulationModel.load(file))
        if background is None:
            raise ValueError(f"{file} has no calibration beside it: use keydyn population fit --calibrate")
        kind = populations.PopulationKind(_device(device), text)
        populations.install(context, as_operator(context, tenant), kind, background)
    tell(f"installed {file} for {tenant}, {device}, {text}", service.as_json, background=background.sha256)


@app.command("learn")
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
    _device(device)
    with service.opened() as context:
        from keydyn.service.people import populations

        write, kind = as_operator(context, tenant), populations.PopulationKind(_device(device), text)
        with working("learning"):
            done = populations.learn(context, write, kind)
    tell(f"learnt from {done.people} people", service.as_json, background=done.background, people=done.people)


@app.command("list")
@every_command
def list_populations(tenant: TenantOption = "default", *, service: Service) -> None:
    """List a tenant's own populations.

    Example: `keydyn service population list --tenant shop`
    """
    with service.opened() as context:
        from keydyn.service.people import populations

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
