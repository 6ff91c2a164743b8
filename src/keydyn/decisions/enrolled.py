"""An enrolled person."""

from __future__ import annotations

from dataclasses import dataclass, replace

from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.decisions.updating import Updating, drifted
from keydyn.detectors import Detector, PopulationDetector
from keydyn.keystrokes.samples import Samples

# It comes from sixteen simulated typists, enrolled with four samples of 60 keys and updated with 36 more. Of
# those who did not change none got so far: half were beyond 0.51, the farthest was at 0.68. Where holds grew
# by 1 % with every sample half were beyond 0.78, and where intervals shrank by 5 % half were beyond 0.81.
#: From this drift on it is advisable to enrol again: the template hardly follows any further.
DRIFTED = 0.7


@dataclass(frozen=True, eq=False)
class Enrolled:
    """What is stored of an enrolled person; immutable.

    Attributes
    ----------
    template : what samples are scored against
    samples, keys : how many it was learnt from
    fingerprints : by which copies of those samples, and of later ones that were remembered, are recognised
    enrolment : the template as it was enrolled, if it has been updated since
    previous : the template before the last update, if that can be undone

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> enrolled = Verifier.shipped().enrolled(make_typists(1, 5, "free", 80))
    >>> enrolled.samples, enrolled.keys, enrolled.drift
    (5, 400, 0.0)
    """

    template: Detector
    samples: int
    keys: int
    fingerprints: Fingerprints
    enrolment: Detector | None = None
    previous: Detector | None = None

    @property
    def drift(self) -> float:
        """How far updates have moved the template, from 0 to 1, the bound that none passes (`drifted`).

        0 if it was never updated. From `DRIFTED` on it is advisable to enrol again.
        """
        now, then = self.template, self.enrolment
        if not isinstance(now, PopulationDetector) or not isinstance(then, PopulationDetector):
            return 0.0
        return drifted(now.people, then.template_, now.template_)

    def updated(self, sample: Samples) -> Enrolled:
        """After a sample that was accepted with confidence; a `ValueError` if the detector cannot follow."""
        template, enrolment = self.template, self.enrolment or self.template
        if not isinstance(template, PopulationDetector) or not isinstance(enrolment, PopulationDetector):
            raise ValueError(f"templates of {template.name} cannot be updated; those of a population can")
        now = Updating(enrolment.template_, template.template_).updated(template.people, sample, True)
        return replace(self, template=template.carrying(now.template), enrolment=enrolment, previous=template)

    def after(self, sample: Samples, known: Fingerprints) -> Enrolled:
        """After an accepted sample, with its fingerprints, so that copies of it are recognised."""
        return self.updated(sample).remembering(known)

    def remembering(self, seen: Fingerprints) -> Enrolled:
        """With the fingerprints of a later sample, so that copies of it are recognised."""
        return replace(self, fingerprints=self.fingerprints.added(seen))

    def undone(self) -> Enrolled:
        """As it was before the last update; a `ValueError` if there is none to undo."""
        if self.previous is None:
            raise ValueError("there is no update to undo")
        return replace(self, template=self.previous, previous=None)
