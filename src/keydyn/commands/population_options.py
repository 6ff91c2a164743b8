"""The population that --population names, wherever people are enrolled or evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from keydyn.detectors import Detector
    from keydyn.population import PopulationModel

PopulationOption = Annotated[
    Path | None,
    typer.Option(
        "--population",
        metavar="PEOPLE",
        help="A population that `keydyn population fit` wrote, for the detector population.",
        show_default=False,
    ),
]


def population_of(path: Path | None) -> PopulationModel | None:
    """What the file holds; None if no file is named."""
    from keydyn.population import PopulationModel

    return None if path is None else PopulationModel.load(path)


def with_population(names: Sequence[str], people: PopulationModel | None) -> list[str | Detector]:
    """The detectors of these names; that of the population, which is added if need be, with these people."""
    from keydyn.detectors import PopulationDetector

    own = PopulationDetector.name
    if people is None:
        return list(names)
    every = names if own in names else [*names, own]
    return [PopulationDetector(population=people) if name == own else name for name in every]
