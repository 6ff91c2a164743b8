"""Detectors whose templates can be stored, by name."""

from __future__ import annotations

from keydyn.detectors import Detector, PopulationDetector, make_detector
from keydyn.population import PopulationModel


def storing_detector(name: str, population: PopulationModel | None = None) -> Detector:
    """The detector of this name; a `ValueError` if its templates cannot be stored.

    `population` is for the detector of that name, which otherwise has to learn one.
    """
    if name == PopulationDetector.name:
        return PopulationDetector(population=population)
    pattern = make_detector(name)
    if not pattern.stores_templates:
        raise ValueError(f"{name} cannot enrol users here; hmm, pohmm, pohmm-recommended and population can")
    if population is not None:
        raise ValueError(f"a population is for the detector population, not for {name}")
    return pattern
