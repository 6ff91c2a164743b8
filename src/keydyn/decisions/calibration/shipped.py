"""The calibration that comes with keydyn, for the population that does.

`python -m keydyn.decisions.calibration.shipped` writes it into the package.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from os import PathLike
from pathlib import Path

import pandas as pd

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.calibration_file import parsed_calibration, write_calibration
from keydyn.decisions.recorded import recorded_samples
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.schema import COLUMNS
from keydyn.population import PopulationModel
from keydyn.population.shipping import published_keystrokes
from keydyn.regular_files import read_regular

SHIPPED = Path(__file__).parent / "shipped.keydyn"
LARGEST_FILE = 1 << 20


@lru_cache(maxsize=1)
def shipped_background() -> Background:
    """The population that comes with keydyn, which is its own cohort, and what its scores mean.

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> shipped_background().calibration.n_people
    115
    """
    calibration = parsed_calibration(read_regular(SHIPPED, LARGEST_FILE), SHIPPED)
    people = PopulationModel.shipped()
    if calibration.population != people.sha256:
        raise ValueError(f"{SHIPPED} is the calibration of another population: run make population")
    return Background(PopulationDetector(population=people), (), calibration)


def learnt_calibration(data: str | PathLike[str] | None = None) -> Calibration:
    """The calibration, by folds over all people in the recordings that the population was learnt from."""
    keystrokes = pd.concat(published_keystrokes(data), ignore_index=True)
    samples = recorded_samples(keystrokes[list(COLUMNS)])
    learnt = Background.learnt(PopulationDetector(), samples, keep_cohort=False, n_jobs=-1)
    return replace(learnt.calibration, population=PopulationModel.shipped().sha256)


if __name__ == "__main__":
    write_calibration(SHIPPED, learnt_calibration())
