"""The settings that `keydyn study recommended` chose, for each dataset by the other datasets alone."""

from __future__ import annotations

from keydyn.detectors import Detector, make_detector
from keydyn.detectors.markov import RecommendedPOHMM

# Degrees of freedom and which features are spread at the start. All datasets together choose (4, "all"),
# which is the library's default; without keypad the others choose 2 degrees of freedom.
CHOSEN: dict[str, tuple[float, str]] = {
    "password": (4.0, "all"),
    "keypad": (2.0, "all"),
    "mobile": (4.0, "all"),
    "mobile+": (4.0, "all"),
    "fable": (4.0, "all"),
    "essay": (4.0, "all"),
}
DEFAULT = (4.0, "all")


def detector_for(dataset: str, detector: str | Detector) -> Detector:
    """A detector as it is reported on a dataset: the recommended one has what the other datasets chose."""
    if detector == RecommendedPOHMM.name and dataset in CHOSEN:
        return RecommendedPOHMM(*CHOSEN[dataset])
    return make_detector(detector)
