"""The command line; the numerical stack is imported only inside commands, so that --help is fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from keydyn.exit_codes import EXIT_CODES

# The location of every command, then of the groups of commands, in the order of the help.
COMMANDS = {
    "record": "keydyn.commands.record:record",
    "pair": "keydyn.commands.pair_events:pair",
    "fit": "keydyn.commands.people.enrol:fit",
    "users": "keydyn.commands.people.enrol:users",
    "score": "keydyn.commands.people.recognise:score",
    "identify": "keydyn.commands.people.recognise:identify",
    "verify": "keydyn.commands.people.recognise:verify",
    "watch": "keydyn.commands.people.watch_command:watch",
    "evaluate": "keydyn.lab.run_study:evaluation",
    "report": "keydyn.lab.run_study:report",
    "demo": "keydyn.commands.demonstration:demo",
    "serve": "keydyn.commands.serve:serve",
    "data": "keydyn.commands.data:app",
    "population": "keydyn.commands.population:app",
    "study": "keydyn.lab.run_study:app",
    "service": "keydyn.commands.service:app",
}


class Commands(Mapping[str, Any]):
    """All commands by name, each imported on first access."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, _, attribute = COMMANDS[name].partition(":")
            found = getattr(import_module(module), attribute)
            if not isinstance(found, typer.Typer):
                alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
                alone.command(name)(found)
                found = alone
            self._made[name] = typer.main.get_command(found)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Keydyn(TyperGroup):
    """The group of all commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Commands()


app = typer.Typer(
    name="keydyn",
    cls=Keydyn,
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


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    from keydyn.__main__ import main as run

    run()
