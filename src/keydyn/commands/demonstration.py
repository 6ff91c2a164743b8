"""keydyn demo: the main job on simulated typists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keydyn.exit_codes import fail_clearly


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
