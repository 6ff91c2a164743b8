"""An enrolled person: samples that are good enough, and a template that follows accepted ones, never far.

People are taken to change as people differ, only less: the drift since the last sample has the population's
own covariance, times a small factor. Its posterior, given one sample, moves the whole template, keys that the
sample lacks included. The template's scales, slopes and gains stay as enrolled: only a person's means drift,
so that no attacker can widen a template.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.comparisons import Comparisons
from keydyn.decisions.decision import Evidence, evidence
from keydyn.decisions.liveness.copies import Fingerprints, copy_evidence
from keydyn.decisions.liveness.not_typed import SampleTimes, not_typed, remarks
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples
from keydyn.population.model import PopulationModel
from keydyn.population.parameters import Template
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.short_repr import short_repr

# Variance of the drift between two samples, in units of that between people.
DRIFT = 0.05
# How far a mean may go from where it was enrolled, in units of the template's scale there. With less, people
# who change are lost; with more, an impostor who is accepted now and then pulls the template along.
BOUND = 0.5
# It comes from sixteen simulated typists, enrolled with four samples of 60 keys and updated with 36 more. Of
# those who did not change none got so far: half were beyond 0.51, the farthest was at 0.68. Where holds grew
# by 1 % with every sample half were beyond 0.78, and where intervals shrank by 5 % half were beyond 0.81.
#: From this drift on it is advisable to enrol again: the template hardly follows any further.
DRIFTED = 0.7
# A sample moves a template with at most this many times the keys of the mean sample of the enrolment.
OF_MEAN = 2


@dataclass(frozen=True, eq=False)
class Updating:
    """A template that follows a person, and the one that was enrolled; immutable."""

    enrolled: Template  # what the person was enrolled as, from which no update leads far
    template: Template  # what it is now

    @classmethod
    def of(cls, template: Template) -> Updating:
        """A template that has just been enrolled."""
        return cls(template, template)

    def updated(
        self,
        population: PopulationModel,
        sample: Samples,
        confident: bool,
        weight: float = 1.0,
        bound: float = BOUND,
    ) -> Updating:
        """After a sample that is the person's with probability `weight`, if the answer was `confident`."""
        if not 0.0 <= weight <= 1.0:
            raise ValueError(f"weight must be from 0 to 1, not {weight}")
        if not bound > 0.0:
            raise ValueError(f"bound must be above 0, not {bound}")
        if not confident or weight == 0.0:
            return self
        mean = self.template.mean + weight * drift(population, self.template, sample)
        reach = bound * self.enrolled.scale
        mean = np.clip(mean, self.enrolled.mean - reach, self.enrolled.mean + reach)
        return replace(self, template=replace(self.template, mean=mean))


def drifted(population: PopulationModel, enrolled: Template, template: Template) -> float:
    """How far a template has gone from its enrolment, from 0 to 1, which no update passes.

    It is the root mean square over all means of their distance as a share of the farthest that they may go.
    Means count by how much the population knows of them: which keys a person has typed is not kept, and of
    rarely typed keys nothing would be noticed. The largest distance would not do, because one
    rare pair of keys reaches its bound after a few samples of any person.
    """
    away = (template.mean - enrolled.mean) / (BOUND * enrolled.scale)
    # Where nothing is known of any mean, all count the same.
    weights = population.parameters.support + np.finfo(np.float64).tiny
    return float(np.sqrt(np.average(away**2, weights=weights)))


def drift(population: PopulationModel, template: Template, sample: Samples) -> Floats:
    """(C,) how far the person's means are expected to have moved, given samples typed since."""
    if population.sha256 != template.population:
        raise ValueError("the template belongs to another population: enrol the person with this one")
    known, ready = population.parameters, population.ready_for(sample)
    variances = replace(known.variances, cell=DRIFT * known.variances.cell, key=DRIFT * known.variances.key)
    prior = Prior.of(known.cells, np.sqrt(DRIFT) * known.loadings, variances)
    typing = ready.typing._replace(y=ready.typing.y - template.mean[ready.typing.cell])
    moved = fit_people(typing, Chosen.one_person(len(typing.offsets) - 1), prior)
    found: Floats = moved.mean[0]
    return found


@dataclass(frozen=True, eq=False)
class Enrolled:
    """What is stored of an enrolled person; immutable.

    Attributes
    ----------
    template : what samples are scored against
    samples, keys : how many it was learnt from
    fingerprints : by which copies of those samples, and of later ones that were remembered, are recognised
    comparisons : scores of those samples in the names of others who are enrolled
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
    comparisons: Comparisons = field(default_factory=Comparisons.none)

    __repr__ = short_repr

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
        # No sample moves it with the weight of many.
        typed = sample.first_keys(max(OF_MEAN * self.keys // self.samples, 1))
        now = Updating(enrolment.template_, template.template_).updated(template.people, typed, True)
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


@dataclass(frozen=True)
class EnrolmentQuality:
    """The quality of a sample that a person is to be enrolled with.

    Attributes
    ----------
    keystrokes : how many have a time
    known : how many of these are of keys that the population knows; all, if there is no population
    tick : of the clock, milliseconds; 0 if it is not coarse
    reasons : in words, why the sample is refused
    remarks : in words, what makes it worth less without refusing it

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import enrolment_quality, shipped_background
    >>> from keydyn.keystrokes import Samples
    >>> quality = enrolment_quality(Samples.of(make_typists(1, 1, "free", 80)), shipped_background())
    >>> quality.accepted, quality.keystrokes, quality.tick
    (True, 80, 0.0)
    """

    keystrokes: int
    known: int
    tick: float
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the sample may be enrolled with."""
        return not self.reasons


def enrolment_quality(
    sample: Samples,
    background: Background | None,
    earlier: Fingerprints | None = None,
    secret: bytes | None = None,
) -> EnrolmentQuality:
    """Check one sample; with the fingerprints of `earlier` ones, and their secret, copies are refused too.

    Without a background, as long as none has been learnt, every key is as good as any other.

    Examples
    --------
    >>> from keydyn.decisions import enrolment_quality, shipped_background
    >>> from keydyn.keystrokes import one_sample
    >>> presses = [100.0 * n for n in range(60)]  # no person types like a clock
    >>> sample = one_sample(list("the cats " * 7)[:60], presses, [press + 50.0 for press in presses])
    >>> quality = enrolment_quality(sample, shipped_background())
    >>> quality.accepted, len(quality.reasons) > 0
    (False, True)
    """
    if len(sample) != 1:
        raise ValueError(f"the quality is that of one sample, not of {len(sample)}")
    sample, copied = without_impossible(sample), -np.inf
    if earlier is not None:
        if secret is None:
            raise ValueError("earlier fingerprints can be compared only with the secret that keys them")
        copied = float(copy_evidence(sample, earlier, secret)[0])
    counts = _counts(sample, background)
    reasons = [*not_typed(sample, copied), *counts.shortage()]
    tick = SampleTimes.of(sample).tick
    remarked = (*_missing_times(sample), *remarks(sample, counts))
    return EnrolmentQuality(counts.keystrokes, counts.known, tick, tuple(reasons), remarked)


def _counts(sample: Samples, background: Background | None) -> Evidence:
    """Keystrokes, and those of known keys; before an enrolment, no pairs of keys are familiar."""
    if background is not None and isinstance(background.pattern, PopulationDetector):
        found = evidence(sample, background.pattern)[0]
        return Evidence(found.keystrokes, found.known)
    there = int(np.isfinite(sample.sequences.X).any(axis=1).sum())
    return Evidence(there, there)


def _missing_times(sample: Samples) -> list[str]:
    """Times that were not recorded, or that no hand makes."""
    intervals, holds = (int(count) for count in np.isnan(SampleTimes.of(sample).times).sum(axis=0))
    # A sample's first interval is always missing.
    found = [
        f"{n} {name}{'' if n == 1 else 's'}"
        for n, name in ((intervals - 1, "interval"), (holds, "hold"))
        if n
    ]
    if not found:
        return []
    return [f"left out, because not recorded or not what hands can do: {' and '.join(found)}"]
