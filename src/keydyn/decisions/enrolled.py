"""Enrolled people: the quality of their samples, and templates that follow slow changes within bounds.

A person is assumed to change in the ways in which people differ, only less: the drift since the last sample
has the covariance of the population, times a small factor. Its posterior, given one sample, moves the whole
template, including keys that the sample lacks. The template's scales, slopes and gains stay as enrolled: only
the means drift, so that no attacker can widen a template.
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
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.shared_parameters import Template
from keydyn.short_repr import short_repr

# Variance of the drift between two samples, in units of that between people.
DRIFT = 0.05
# The farthest that a mean may move from its enrolled value, in units of the template's scale there. A smaller
# bound loses people who change; a larger one lets an impostor who is accepted now and then pull the template
# along.
BOUND = 0.5
# The value comes from sixteen simulated typists, enrolled with four samples of 60 keys and updated with 36
# more. If they did not change, the median drift was 0.51 and the largest 0.68. If holds grew by 1 % with
# every sample, the median was 0.78; if intervals shrank by 5 %, it was 0.81.
#: The drift from which it is advisable to enrol again, because the template can hardly follow any further.
DRIFTED = 0.7
# An update uses at most this many times the mean number of keys per enrolment sample.
OF_MEAN = 2


@dataclass(frozen=True, eq=False)
class Updating:
    """A template that follows a person, together with the one that was enrolled; immutable."""

    enrolled: Template  # the template at enrolment, from which no update leads far
    template: Template  # the current template

    @classmethod
    def of(cls, template: Template) -> Updating:
        """Start with a template that has just been enrolled."""
        return cls(template, template)

    def updated(
        self,
        population: PopulationModel,
        sample: Samples,
        confident: bool,
        weight: float = 1.0,
        bound: float = BOUND,
    ) -> Updating:
        """Return both after a sample that is the person's with probability `weight`.

        Nothing changes unless the sample was accepted with confidence (`confident`).
        """
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
    """The distance of a template from its enrolment, between 0 and 1, the bound of all updates.

    It is the root mean square of the distances of all means, each as a share of its bound. Means are weighted
    by how much the population knows of them: which keys a person has typed is not stored, and rarely typed
    keys tell little. The largest distance would not do, because one rare pair of keys reaches its bound after
    a few samples of any person.
    """
    away = (template.mean - enrolled.mean) / (BOUND * enrolled.scale)
    # Where nothing is known of any mean, all count the same.
    weights = population.parameters.support + np.finfo(np.float64).tiny
    return float(np.sqrt(np.average(away**2, weights=weights)))


def drift(population: PopulationModel, template: Template, sample: Samples) -> Floats:
    """(C,) expected change of the person's means, given samples typed since."""
    if population.sha256 != template.population:
        raise ValueError("the template belongs to another population: enrol the person with this one")
    known, ready = population.parameters, population.ready_for(sample)
    variances = replace(known.variances, cell=DRIFT * known.variances.cell, key=DRIFT * known.variances.key)
    prior = Prior.of(known.cells, np.sqrt(DRIFT) * known.loadings, variances)
    typing = ready.typing._replace(y=ready.typing.y - template.mean[ready.typing.cell])
    moved = fit_people(typing, Chosen.one_person(len(typing.offsets) - 1), prior, spreads=False)
    found: Floats = moved.mean[0]
    return found


@dataclass(frozen=True, eq=False)
class Enrolled:
    """The stored data of an enrolled person; immutable.

    Attributes
    ----------
    template : the template that samples are scored against
    samples, keys : the numbers of samples and keys that it was learnt from
    fingerprints : serve to recognise copies of those samples and of later ones that were remembered
    comparisons : scores of those samples as claims to be other enrolled people
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
        """The distance that updates have moved the template, from 0 to 1, their bound (see `drifted`).

        It is 0 if there was no update. From `DRIFTED` on it is advisable to enrol again.
        """
        now, then = self.template, self.enrolment
        if not isinstance(now, PopulationDetector) or not isinstance(then, PopulationDetector):
            return 0.0
        return drifted(now.people, then.template_, now.template_)

    def updated(self, sample: Samples) -> Enrolled:
        """Return the person updated with a confidently accepted sample.

        A `ValueError` if templates of this detector cannot be updated.
        """
        template, enrolment = self.template, self.enrolment or self.template
        if not isinstance(template, PopulationDetector) or not isinstance(enrolment, PopulationDetector):
            raise ValueError(f"templates of {template.name} cannot be updated; those of a population can")
        # A long sample must not move the template with the weight of many.
        typed = sample.first_keys(max(OF_MEAN * self.keys // self.samples, 1))
        now = Updating(enrolment.template_, template.template_).updated(template.people, typed, True)
        return replace(self, template=template.carrying(now.template), enrolment=enrolment, previous=template)

    def after(self, sample: Samples, known: Fingerprints) -> Enrolled:
        """Return the person updated with an accepted sample, remembering its fingerprints `known`."""
        return self.updated(sample).remembering(known)

    def remembering(self, seen: Fingerprints) -> Enrolled:
        """Return the person with the fingerprints of a later sample, so that copies of it are recognised."""
        return replace(self, fingerprints=self.fingerprints.added(seen))

    def undone(self) -> Enrolled:
        """Return the person as before the last update; a `ValueError` if there is none to undo."""
        if self.previous is None:
            raise ValueError("there is no update to undo")
        return replace(self, template=self.previous, previous=None)


@dataclass(frozen=True)
class EnrolmentQuality:
    """The quality of a sample offered for enrolment.

    Attributes
    ----------
    keystrokes : the number of keystrokes with a time
    known : the number of these whose keys the population knows; all, if there is no population
    tick : the resolution of the clock in milliseconds; 0 if it is not coarse
    reasons : phrases that say why the sample is refused; none if it is accepted
    remarks : phrases that name flaws for which it is not refused

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
        """Whether the sample may be used for enrolment."""
        return not self.reasons


def enrolment_quality(
    sample: Samples,
    background: Background | None,
    earlier: Fingerprints | None = None,
    secret: bytes | None = None,
) -> EnrolmentQuality:
    """Check the quality of one sample offered for enrolment.

    If the fingerprints of `earlier` samples and the secret that keys them are given, copies of those samples
    are refused too. Without a background, as long as none has been learnt, all keys count as known.

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
    """Count keystrokes and those of known keys, but no pairs: before enrolment none is familiar."""
    if background is not None and isinstance(background.pattern, PopulationDetector):
        found = evidence(sample, background.pattern)[0]
        return Evidence(found.keystrokes, found.known)
    there = int(np.isfinite(sample.sequences.X).any(axis=1).sum())
    return Evidence(there, there)


def _missing_times(sample: Samples) -> list[str]:
    """Remark on times that are missing because they were not recorded or no hand could produce them."""
    intervals, holds = (int(count) for count in np.isnan(SampleTimes.of(sample).times).sum(axis=0))
    # A sample's first interval is always missing.
    found = [
        f"{n} {name}{'' if n == 1 else 's'}"
        for n, name in ((intervals - 1, "interval"), (holds, "hold"))
        if n
    ]
    if not found:
        return []
    return [f"left out, because they were not recorded or no hand can produce them: {' and '.join(found)}"]
