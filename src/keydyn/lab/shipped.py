"""Learns the data shipped with keydyn from published free-text recordings: population, people, calibrations.

`python -m keydyn.lab.shipped` writes the three files into the package; the core only reads them.

The calibrations must hold for people, keyboards and places that are in none of the recordings. They are
therefore learnt across recordings: population and cohort from one, claims from the other, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike

import numpy as np
import pandas as pd

from keydyn import files
from keydyn.datasets import load_dataset
from keydyn.decisions.calibration.amounts import Calibrations
from keydyn.decisions.calibration.background import SHIPPED as CALIBRATIONS
from keydyn.decisions.calibration.background import retyped_cohort
from keydyn.decisions.calibration.trials import AMOUNTS, LENGTHS, Cohort, Trials, Typists, claims, together
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import COLUMNS
from keydyn.population.model import SHIPPED, SHIPPED_PEOPLE, PopulationModel

DATASETS = ("fable", "essay")
MOST_PEOPLE = 1000
# Standard deviation of strangers' scores between places, in units of the score: a deviation of 0.15
# multiplies a rate of 1 % by about 1.6. An assumption, checked by `keydyn study transfer`.
BETWEEN_PLACES = 0.15


def published_people(data: str | PathLike[str] | None = None) -> Iterator[Samples]:
    """Iterate over the recordings, each with all its people; names are distinct across recordings."""
    for name in DATASETS:
        keystrokes = load_dataset(name, data).keystrokes
        named = keystrokes.assign(user=f"{name} " + keystrokes["user"].astype(str))
        yield recorded_samples(named[list(COLUMNS)])


def across_places(places: list[Samples], n_jobs: int | None = None) -> Calibrations:
    """Calibrations from claims in each place, with population and cohort from another place."""
    parts: dict[int, list[Trials]] = {keys: [] for keys in AMOUNTS}
    lengths = np.array(LENGTHS)
    for n, here in enumerate(places):
        # Numbers of people are distinct across places.
        typists = Typists(here, pd.factorize(here.users)[0] + MOST_PEOPLE * n, lengths)
        for elsewhere in places:
            if elsewhere is here:
                continue
            people = PopulationModel().fit(elsewhere, n_jobs)
            pattern, cohort = retyped_cohort(people, people.enrol_each(elsewhere))
            beside = Cohort(cohort, np.full(len(cohort), -1))
            for keys, trials in parts.items():
                trials.append(claims(pattern, typists, typists.some(), beside, n_jobs, keys))
    return Calibrations.learn({keys: together(some) for keys, some in parts.items()}, BETWEEN_PLACES)


def main() -> None:
    """Write all three files."""
    places = list(published_people())
    people = PopulationModel().fit(places, n_jobs=-1)
    people.save(SHIPPED)
    templates = [template for place in places for template in people.enrol_each(place)]
    files.write(SHIPPED_PEOPLE, people.packed_people(templates))
    calibrations = across_places(places, n_jobs=-1)
    files.write(CALIBRATIONS, replace(calibrations, population=people.sha256).packed())


if __name__ == "__main__":
    main()
