"""Learns the population that comes with keydyn, from the published free-text recordings.

`python -m keydyn.population.shipping` writes it into the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from keydyn.datasets import load_dataset
from keydyn.keystrokes.samples import Samples
from keydyn.population.model import SHIPPED, PopulationModel

DATASETS = ("fable", "essay")


def published_people(data: str | PathLike[str] | None = None) -> Iterator[Samples]:
    """Everybody of the recordings; people of different ones are different people."""
    for name in DATASETS:
        keystrokes = load_dataset(name, data).keystrokes
        users = f"{name} " + keystrokes["user"].astype(str)
        yield Samples.of(keystrokes.assign(user=users), first="missing")


if __name__ == "__main__":
    PopulationModel().fit(published_people(), n_jobs=-1).save(SHIPPED)
