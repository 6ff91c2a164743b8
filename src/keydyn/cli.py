"""The command line. Imports the numerical stack only inside a command, so that --help is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from keydyn.commands import data, demonstration, pair_events, population, record, serve, service
from keydyn.commands.people import enrol, recognise, watch
from keydyn.exit_codes import EXIT_CODES
from keydyn.lab import run_study

app = typer.Typer(
    name="keydyn",
    help="Recognise people by the rhythm of their typing.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    epilog=EXIT_CODES,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", is_eager=True)
    ] = False,
) -> None:
    """Recognise people by the rhythm of their typing."""
    if version:
        from keydyn import __version__

        typer.echo(f"keydyn {__version__}")
        raise typer.Exit


# Every command, in the order of the help; then the groups of commands.
COMMANDS: tuple[Callable[..., None], ...] = (
    record.record,
    pair_events.pair,
    enrol.fit,
    enrol.users,
    recognise.score,
    recognise.identify,
    recognise.verify,
    watch.watch,
    run_study.command_of(run_study.STUDIES["evaluate"]),
    run_study.report,
    demonstration.demo,
    serve.serve,
)
GROUPS = (data.app, population.app, run_study.app, service.app)

for command in COMMANDS:
    app.command()(command)
for group in GROUPS:
    app.add_typer(group)


def main() -> None:
    """Entry point."""
    from keydyn.__main__ import main as run

    run()
