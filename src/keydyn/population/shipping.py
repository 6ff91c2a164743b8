"""Learns the population that comes with keydyn, from the published free-text recordings.

`python -m keydyn.population.shipping` writes it into the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import pandas as pd

from keydyn.datasets import load_dataset
from keydyn.keystrokes.samples import Samples
from keydyn.population.model import SHIPPED, PopulationModel

DATASETS = ("fable", "essay")


def published_keystrokes(data: str | PathLike[str] | None = None) -> Iterator[pd.DataFrame]:
    """The recordings; people of different ones are different people."""
    for name in DATASETS:
        keystrokes = load_dataset(name, data).keystrokes
        yield keystrokes.assign(user=f"{name} " + keystrokes["user"].astype(str))


def published_people(data: str | PathLike[str] | None = None) -> Iterator[Samples]:
    """All people of the recordings, one recording at a time."""
    for keystrokes in published_keystrokes(data):
        yield Samples.of(keystrokes, first="missing")


if __name__ == "__main__":
    PopulationModel().fit(published_people(), n_jobs=-1).save(SHIPPED)
