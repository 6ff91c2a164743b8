"""Turn scores into decisions whose error rates are stated and measured."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.decisions.calibration.amounts import Calibrations
    from keydyn.decisions.calibration.background import Background, shipped_background
    from keydyn.decisions.calibration.calibration import Calibration, MatchRate
    from keydyn.decisions.calibration.error_rates import (
        CountedRates,
        StatedRates,
        claims_among,
        counted_rates,
        stated_rates,
    )
    from keydyn.decisions.decision import (
        Candidate,
        Costs,
        Decision,
        Evidence,
        Identification,
        Targets,
        Typed,
    )
    from keydyn.decisions.enrolled import DRIFTED, Enrolled, EnrolmentQuality, enrolment_quality
    from keydyn.decisions.folder.enrolled_bytes import (
        background_bytes,
        background_of,
        enrolled_of,
        template_bytes,
    )
    from keydyn.decisions.known_twice import find_twice
    from keydyn.decisions.liveness.copies import Fingerprints, fingerprints_bytes, fingerprints_of
    from keydyn.decisions.liveness.hands import typed
    from keydyn.decisions.verifier import Verifier
    from keydyn.decisions.watching.sessions import WatchedSessions
    from keydyn.decisions.watching.watch import Watch
    from keydyn.decisions.watching.watched import Watched, Watching
    from keydyn.keystrokes.one_sample import recorded_samples

__all__ = [
    "DRIFTED",
    "Background",
    "Calibration",
    "Calibrations",
    "Candidate",
    "Costs",
    "CountedRates",
    "Decision",
    "Enrolled",
    "EnrolmentQuality",
    "Evidence",
    "Fingerprints",
    "Identification",
    "MatchRate",
    "StatedRates",
    "Targets",
    "Typed",
    "Verifier",
    "Watch",
    "Watched",
    "WatchedSessions",
    "Watching",
    "background_bytes",
    "background_of",
    "claims_among",
    "counted_rates",
    "enrolled_of",
    "enrolment_quality",
    "find_twice",
    "fingerprints_bytes",
    "fingerprints_of",
    "recorded_samples",
    "shipped_background",
    "stated_rates",
    "template_bytes",
    "typed",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".calibration.amounts": "Calibrations",
        ".calibration.background": "Background shipped_background",
        ".calibration.calibration": "Calibration MatchRate",
        ".calibration.error_rates": "CountedRates StatedRates claims_among counted_rates stated_rates",
        ".decision": "Candidate Costs Decision Evidence Identification Targets Typed",
        ".enrolled": "DRIFTED Enrolled EnrolmentQuality enrolment_quality",
        ".folder.enrolled_bytes": "background_bytes background_of enrolled_of template_bytes",
        ".known_twice": "find_twice",
        ".liveness.copies": "Fingerprints fingerprints_bytes fingerprints_of",
        ".liveness.hands": "typed",
        ".verifier": "Verifier",
        ".watching.sessions": "WatchedSessions",
        ".watching.watch": "Watch",
        ".watching.watched": "Watched Watching",
        "keydyn.keystrokes.one_sample": "recorded_samples",
    },
)
