"""keydyn service: the service's keys, people, populations and database, for its operator."""

from __future__ import annotations

from typing import Annotated

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.service import database, keys, populations, users
from keydyn.commands.service.examples import examples
from keydyn.commands.service.options import Service, TenantOption, tell
from keydyn.exit_codes import checking_options

app = group("service", "Administer the verification service: keys, people, populations, database.")
for part in (keys, users, populations, database):
    app.add_typer(part.app)
app.command()(examples)

URL_HELP = "Address at which browsers reach the service."


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
