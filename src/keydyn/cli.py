"""The command line. Imports the numerical stack only inside a command, so that --help is quick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from keydyn.commands import data, evaluate, fit_studies, recognise, study
from keydyn.commands.terminal import fail_clearly

app = typer.Typer(
    name="keydyn",
    help="Recognise people by the rhythm of their typing.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
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


app.add_typer(data.app)
STUDIES: dict[str, Callable[..., None]] = {
    "simulation": fit_studies.simulation,
    "goodness-of-fit": fit_studies.goodness_of_fit,
    "calibration": fit_studies.calibration,
    "model-choice": fit_studies.model_choice,
    "all": fit_studies.everything,
}
for name, one in STUDIES.items():
    study.app.command(name)(one)
app.add_typer(study.app)
COMMANDS: tuple[Callable[..., None], ...] = (
    recognise.fit,
    recognise.score,
    recognise.identify,
    recognise.verify,
    recognise.watch,
    evaluate.evaluate,
    evaluate.report,
)
for command in COMMANDS:
    app.command()(command)


@app.command()
@fail_clearly
def demo(
    out: Annotated[Path, typer.Option(help="Folder for tables, figures, a model and the recordings.")] = Path(
        "demo"
    ),
    users: Annotated[int, typer.Option(min=2, max=200, help="Number of simulated typists.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed: the same seed gives the same typists.")] = 1,
) -> None:
    """Simulated typists: fit, identify, verify, watch, and show hidden states.

    Example: `keydyn demo --users 20 --seed 7 --out demo-20`
    """
    from keydyn.demo import run

    run(out, users, seed)


def main() -> None:
    """Entry point."""
    app()
