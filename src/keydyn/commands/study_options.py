"""The options that studies share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DatasetOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="password, keypad, mobile, mobile+, fable, essay, simulated; repeatable."),
]
TextOption = Annotated[
    list[str] | None, typer.Option("--dataset", help="fable, essay or simulated; repeatable.")
]
DetectorOption = Annotated[
    list[str] | None, typer.Option("--detector", help="A detector by its name; repeatable.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder that has the recordings; or set KEYDYN_DATA.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for results; by default out/STUDY.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=-1, help="Threads; -1 or 0 for all cores.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="dask://HOST:PORT: fit on a Dask cluster (extra: distributed).")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Compute again what is there already.")]
SurrogatesOption = Annotated[int, typer.Option("--surrogates", min=19, help="Surrogates of each test.")]
SecondOption = Annotated[
    int,
    typer.Option(
        "--second",
        min=0,
        help="Surrogates of each surrogate for a double bootstrap: 0 for none, or 2 or more.",
    ),
]
