"""Somebody who is enrolled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from keydyn.decisions.copies import Fingerprints
from keydyn.decisions.updating import Updating
from keydyn.detectors import Detector, PopulationDetector
from keydyn.keystrokes.samples import Samples


@dataclass(frozen=True, eq=False)
class Enrolled:
    """Immutable.

    Attributes
    ----------
    template : what samples are scored against
    samples, keys : how many it was learnt from
    fingerprints : by which copies of those samples, and of later ones that were remembered, are recognised
    enrolment : the template as it was enrolled, if it has been updated since
    previous : the template before the last update, if that can be undone
    """

    template: Detector
    samples: int
    keys: int
    fingerprints: Fingerprints
    enrolment: Detector | None = None
    previous: Detector | None = None

    def updated(self, sample: Samples) -> Enrolled:
        """After a sample that was accepted with confidence; a `ValueError` if the detector cannot follow."""
        template, enrolment = self.template, self.enrolment or self.template
        if not isinstance(template, PopulationDetector) or not isinstance(enrolment, PopulationDetector):
            raise ValueError(f"templates of {template.name} cannot be updated; those of a population can")
        now = Updating(enrolment.template_, template.template_).updated(template.people, sample, True)
        return replace(self, template=template.carrying(now.template), enrolment=enrolment, previous=template)

    def undone(self) -> Enrolled:
        """As it was before the last update; a `ValueError` if there is none to undo."""
        if self.previous is None:
            raise ValueError("there is no update to undo")
        return replace(self, template=self.previous, previous=None)
