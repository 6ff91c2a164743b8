"""The options of commands that compute for long, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

JobsOption = Annotated[int, typer.Option("--jobs", min=-1, help="Threads; -1 or 0 for all cores.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="dask://HOST:PORT: fit on a Dask cluster (extra: distributed).")
]
