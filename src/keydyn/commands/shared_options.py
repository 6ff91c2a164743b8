"""Options that several commands share, and functions that load what they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from keydyn.detectors import Detector
    from keydyn.population import PopulationModel

JobsOption = Annotated[int, typer.Option("--jobs", min=-1, help="Threads; -1 or 0 for all cores.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="dask://HOST:PORT: fit on a Dask cluster (extra: distributed).")
]
PopulationOption = Annotated[
    Path | None,
    typer.Option(
        "--population",
        metavar="PEOPLE",
        help="A population that `keydyn population fit` wrote, for the detector population.",
        show_default=False,
    ),
]
ModelsOption = Annotated[Path, typer.Option("--models", help="Folder that `keydyn fit` wrote.")]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help="File with the secret key that authenticates the folder's list of users.",
        show_default=False,
    ),
]


def key_of(key_file: Path | None) -> bytes | None:
    """Read the key from a file, if one is named."""
    from keydyn.decisions.folder.manifest import read_key

    return None if key_file is None else read_key(key_file)


def population_of(path: Path | None) -> PopulationModel | None:
    """Load the population from a file; None if no file is named."""
    from keydyn.population import PopulationModel

    return None if path is None else PopulationModel.load(path)


def with_population(names: Sequence[str], people: PopulationModel | None) -> list[str | Detector]:
    """Give a population to the detector `population`, which is added to the names if it is not among them."""
    from keydyn.detectors import PopulationDetector

    own = PopulationDetector.name
    if people is None:
        return list(names)
    every = names if own in names else [*names, own]
    return [PopulationDetector(population=people) if name == own else name for name in every]
