"""Detectors, which score samples against a user's template behind one interface."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.detectors.detector import Detector, detector_names, make_detector, register
    from keydyn.detectors.distances import NearestMean, OneClass, ScaledManhattan
    from keydyn.detectors.hybrid import HybridPOHMM
    from keydyn.detectors.markov import Markov, RecommendedPOHMM
    from keydyn.detectors.population_detector import PopulationDetector
    from keydyn.detectors.templates import Population, fit_population

__all__ = [
    "Detector",
    "HybridPOHMM",
    "Markov",
    "NearestMean",
    "OneClass",
    "Population",
    "PopulationDetector",
    "RecommendedPOHMM",
    "ScaledManhattan",
    "detector_names",
    "fit_population",
    "make_detector",
    "register",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".detector": "Detector detector_names make_detector register",
        ".distances": "NearestMean OneClass ScaledManhattan",
        ".hybrid": "HybridPOHMM",
        ".markov": "Markov RecommendedPOHMM",
        ".population_detector": "PopulationDetector",
        ".templates": "Population fit_population",
    },
)
