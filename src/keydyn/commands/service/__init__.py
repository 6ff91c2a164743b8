"""keydyn service: administer the service's keys, people, populations, tenants and database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from keydyn.atomic import write_bytes, write_text
from keydyn.commands.every_command import every_command, group
from keydyn.commands.service import administration, upkeep
from keydyn.commands.service.service_options import Service, TenantOption, tell
from keydyn.exit_codes import checking_options
from keydyn.terminal import JsonOption

app = group("service", "Administer the verification service: keys, people, populations, tenants, database.")
for part in (
    administration.keys_app,
    administration.users_app,
    administration.populations_app,
    administration.tenants_app,
    upkeep.app,
):
    app.add_typer(part)

# The simulated people, and their numbers of samples and of keystrokes per sample.
PEOPLE, SAMPLES, KEYS = ("ada", "bela", "cleo"), 7, 60
COLUMNS = ["keyname", "timepress", "timerelease"]
URL_HELP = "Address at which browsers reach the service."


@app.command()
@every_command
def examples(
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("samples"),
    seed: Annotated[int, typer.Option(min=0, help="Seed: the same seed gives the same typing.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Write samples of simulated people to files that you can send to the service.

    Each file, such as ada-1.json, is the body of a request: one sample of ada, bela or cleo.

    Example: `keydyn service examples --out samples`
    """
    from keydyn.datasets import make_typists

    typing = make_typists(len(PEOPLE), SAMPLES, text="free", n_keys=KEYS, random_state=seed)
    files = []
    for n, (_, sample) in enumerate(typing.groupby(["user", "session"])):
        person, session = divmod(n, SAMPLES)
        body = {"keystrokes": sample[COLUMNS].to_dict("records")}
        files.append(out / f"{PEOPLE[person]}-{session + 1}.json")
        write_text(files[-1], json.dumps(body))
    text = f"wrote {out}: {SAMPLES} samples each of {', '.join(PEOPLE)}, who are simulated"
    tell(text, as_json, files=[str(file) for file in files])


@app.command("recorder")
@every_command
def write_recorder(
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the file to, if you want to serve it yourself.")
    ] = None,
    url: Annotated[
        str, typer.Option("--url", help="Address of the folder where browsers find the file.")
    ] = "http://127.0.0.1:8421",
    as_json: JsonOption = False,
) -> None:
    """Show the HTML that loads the recorder with its hash; --out also writes the file, to serve it yourself.

    Example: `keydyn service recorder --out static --url https://shop.example.com/static`
    """
    from keydyn.service.recorder_file import recorder_file

    found = recorder_file()
    file = None if out is None else out / found.name
    if file is not None:
        write_bytes(file, found.contents)
    fields = {"name": found.name, "integrity": found.integrity, "file": None if file is None else str(file)}
    tell(found.tag(url), as_json, **fields)


@app.command("link")
@every_command
def make_link(
    tenant: TenantOption = "page",
    url: Annotated[str, typer.Option("--url", help=URL_HELP)] = "http://127.0.0.1:8421",
    *,
    service: Service,
) -> None:
    """Create a link that opens the service's page in a browser, once and within an hour.

    Example: `keydyn service link`
    """
    with service.opened() as context:
        from keydyn.service.accounts import new_link

        with checking_options():
            link = new_link(context.database, context.keys, context.clock, tenant, url)
    tell(link, service.as_json, link=link, tenant=tenant)
