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
# As in keydyn.detectors, which needs the numerical stack.
DETECTORS = (
    *("manhattan", "manhattan-scaled", "manhattan-filtered", "euclidean", "euclidean-normed"),
    *("mahalanobis", "mahalanobis-normed", "nearest-neighbour", "outlier-count", "k-means", "svm"),
    *("hmm", "pohmm", "pohmm-recommended", "population", "context-hmm", "partly-hmm", "partially-hmm"),
)
DetectorOption = Annotated[
    list[str] | None,
    typer.Option("--detector", help=f"Repeatable: {', '.join(DETECTORS)}, or a plug-in's name."),
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder with the recordings; or set KEYDYN_DATA.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for results; by default out/STUDY.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Recompute everything; by default finished parts are kept.")
]
SurrogatesOption = Annotated[int, typer.Option("--surrogates", min=19, help="Number of surrogates per test.")]
SecondOption = Annotated[
    int,
    typer.Option(
        "--second",
        min=0,
        help="Number of surrogates per surrogate, for a double bootstrap: 0 for none, or 2 or more.",
    ),
]
