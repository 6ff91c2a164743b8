"""keydyn serve: start the verification service."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.service.service_options import DatabaseOption, ServiceKeyOption, needs_service
from keydyn.progress import working
from keydyn.terminal import JsonOption, own_command, print_json, say

DEFAULT_ADDRESS = "http://127.0.0.1:8421"


@every_command
def serve(
    database: DatabaseOption = None,
    key_file: ServiceKeyOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free port.")] = 8421,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of processes.")] = 1,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy on this machine handles TLS and forwards requests."),
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name by which the service is reached; repeatable."),
    ] = None,
    private_webhooks: Annotated[
        bool, typer.Option("--private-webhooks", help="Allow webhooks to addresses in your own network.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the verification service: enrol, verify, identify and watch people over HTTP.

    There is nothing to set up: the database is SQLite in your own data folder, and the service listens on
    this machine only. On a terminal, it shows a link to its page, where you can try it on yourself. Programs
    need an API key for every request (see keydyn service keys); one is shown when the service is first
    started on a terminal. To protect the metrics for Prometheus, set KEYDYN_METRICS_TOKEN.

    Examples:
    `keydyn serve`

    `keydyn serve --database postgresql://keydyn@localhost/keydyn --workers 4`
    """
    with needs_service():
        from keydyn.service.accounts import PAGE
        from keydyn.service.serving import (
            check_deployment,
            compile_first,
            first_key,
            listening_on,
            page_link,
            prepare,
        )
        from keydyn.service.serving import serve as run
        from keydyn.service.settings import Deployment, default_database
    deployment = Deployment(
        database=database or default_database(),
        key_file=key_file,
        host=host,
        port=port,
        workers=workers,
        behind_proxy=behind_proxy,
        names=tuple(name or ()),
        private_webhooks=private_webhooks,
        metrics_token=os.environ.get("KEYDYN_METRICS_TOKEN"),
    )
    check_deployment(deployment)
    # An address that cannot be used is reported before anything that takes long or is shown only once.
    with listening_on(deployment):
        pass
    with working("bringing the database up to date"):
        prepare(deployment)
    with working("loading compiled code"):
        compile_first()
    # A key or a link must not be written to a log file.
    watched = sys.stdout.isatty() and not as_json
    key = first_key(deployment) if watched else None
    if key is not None:
        say(f'The first API key, for programs, of the tenant "default"; shown only once:\n\n    {key}\n')
    again, options = f"{own_command()} service", _given(database, key_file)

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            say(f"keydyn service on {address}   reference: {address}/docs   stop with Ctrl-C")
        if watched:
            link = page_link(deployment, address)
            say(f"\nTry it on yourself. This link opens the page once, within an hour:\n\n    {link}\n")
            say(f'People on the page belong to the tenant "{PAGE}". For an API key that sees them, run')
            say(f"    {again} keys create --tenant {PAGE} --scope all{options}")
        elif not as_json:
            url = "" if address == DEFAULT_ADDRESS else f" --url {address}"
            say("Links and keys are not written to a log. For a link to the page, or an API key, run")
            say(f"    {again} link{options}{url}")
            say(f"    {again} keys create --tenant {PAGE} --scope all{options}")
        sys.stdout.flush()

    run(deployment, ready)


def _given(database: str | None, key_file: Path | None) -> str:
    """Repeat the options of this command line that other commands need too, without passwords."""
    shown = {"--database": re.sub(r"(//[^/:@]*):[^/@]*@", r"\1:…@", database or ""), "--key-file": key_file}
    here = (name for name in shown if any(word.startswith(name) for word in sys.argv))
    return "".join(f" {name} {shlex.quote(str(shown[name]))}" for name in here)
