"""A population's calibration, in a file beside the population's own."""

from __future__ import annotations

from pathlib import Path

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration_file import parsed_calibration, write_calibration
from keydyn.detectors import PopulationDetector
from keydyn.population import PopulationModel
from keydyn.regular_files import read_regular

LARGEST = 1 << 24


def calibration_file(population: Path) -> Path:
    """people.keydyn has its calibration in people.calibration.keydyn."""
    return population.with_name(f"{population.stem}.calibration{population.suffix}")


def write_background(path: Path, background: Background) -> None:
    """Write the population, then its calibration; of the cohort nothing is written."""
    if background.cohort:
        raise ValueError("only a population that is its own cohort can be written")
    background.population.save(path)
    write_calibration(calibration_file(path), background.own_calibration)


def write_population(path: Path, people: PopulationModel) -> None:
    """Write a population without a calibration; one that was beside it belonged to another population."""
    people.save(path)
    calibration_file(path).unlink(missing_ok=True)


def read_background(path: Path, people: PopulationModel) -> Background | None:
    """The population with the calibration beside it; None if there is none.

    A `ValueError` if it is the calibration of another population.
    """
    beside = calibration_file(path)
    if not beside.exists():
        return None
    calibration = parsed_calibration(read_regular(beside, LARGEST), beside)
    if calibration.population != people.sha256:
        raise ValueError(f"{beside} is the calibration of a different population from {path}")
    return Background(PopulationDetector(population=people), (), calibration)
