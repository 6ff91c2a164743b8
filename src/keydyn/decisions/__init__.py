"""From scores to decisions whose error rates are stated, measured and kept."""

from keydyn.decisions.calibration import Calibration, MatchRate
from keydyn.decisions.decision import Candidate, Decision, Identification
from keydyn.decisions.evidence import Evidence
from keydyn.decisions.operating_point import Costs, Targets
from keydyn.decisions.verifier import Verifier

__all__ = [
    "Calibration",
    "Candidate",
    "Costs",
    "Decision",
    "Evidence",
    "Identification",
    "MatchRate",
    "Targets",
    "Verifier",
]
