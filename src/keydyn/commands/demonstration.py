"""keydyn demo: a demonstration on simulated typists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.terminal import JsonOption, being_quiet, is_quiet, print_json


@every_command
def demo(
    out: Annotated[Path, typer.Option(help="Folder for tables, figures, a model and the recordings.")] = Path(
        "demo"
    ),
    users: Annotated[int, typer.Option(min=2, max=200, help="Number of simulated typists.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed: the same seed gives the same typists.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Demonstrate fit, identify, verify, watch and hidden states on simulated typists.

    Example: `keydyn demo --users 20 --seed 7 --out demo-20`
    """
    from keydyn.demo import run

    with being_quiet(as_json or is_quiet()):
        results = run(out, users, seed)
    if as_json:
        print_json(results)
