"""Detectors: everything that scores a sample against a user's template, behind one interface."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.detectors.detector import Detector, detector_names, detector_title, make_detector, register
    from keydyn.detectors.distances import (
        Euclidean,
        FilteredManhattan,
        Mahalanobis,
        Manhattan,
        NearestMean,
        NearestNeighbour,
        NormedEuclidean,
        NormedMahalanobis,
        OneClass,
        OutlierCount,
        ScaledManhattan,
    )
    from keydyn.detectors.hybrid import HybridPOHMM
    from keydyn.detectors.markov import Markov, PublishedHMM, PublishedPOHMM, RecommendedPOHMM
    from keydyn.detectors.population_detector import PopulationDetector
    from keydyn.detectors.relatives import (
        ContextDetector,
        PartiallyDetector,
        PartlyDetector,
        RelativeDetector,
    )
    from keydyn.detectors.templates import Population, fit_population

__all__ = [
    "ContextDetector",
    "Detector",
    "Euclidean",
    "FilteredManhattan",
    "HybridPOHMM",
    "Mahalanobis",
    "Manhattan",
    "Markov",
    "NearestMean",
    "NearestNeighbour",
    "NormedEuclidean",
    "NormedMahalanobis",
    "OneClass",
    "OutlierCount",
    "PartiallyDetector",
    "PartlyDetector",
    "Population",
    "PopulationDetector",
    "PublishedHMM",
    "PublishedPOHMM",
    "RecommendedPOHMM",
    "RelativeDetector",
    "ScaledManhattan",
    "detector_names",
    "detector_title",
    "fit_population",
    "make_detector",
    "register",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".detector": "Detector detector_names detector_title make_detector register",
        ".distances": "Euclidean FilteredManhattan Mahalanobis Manhattan NearestMean NearestNeighbour "
        "NormedEuclidean NormedMahalanobis OneClass OutlierCount ScaledManhattan",
        ".hybrid": "HybridPOHMM",
        ".markov": "Markov PublishedHMM PublishedPOHMM RecommendedPOHMM",
        ".population_detector": "PopulationDetector",
        ".relatives": "ContextDetector PartiallyDetector PartlyDetector RelativeDetector",
        ".templates": "Population fit_population",
    },
)
