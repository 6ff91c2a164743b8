"""What decisions rest on besides the enrolled people: a prepared detector, a cohort and a calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.calibration_file import calibration_digest
from keydyn.decisions.calibration.cohort import SMALLEST, open_set_scores
from keydyn.decisions.calibration.trials import (
    LARGEST_ASKED,
    LARGEST_COHORT,
    Trials,
    claims,
    lengths_for,
    people_of,
    spread,
    together,
)
from keydyn.detectors import Detector, PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress
from keydyn.population import PopulationModel

# People are left out in so many groups when the detector learns from the same people that calibrate it.
FOLDS = 4


@dataclass(frozen=True, eq=False)
class Background:
    """Immutable.

    Attributes
    ----------
    pattern : a detector that fits templates without further preparation
    cohort : templates of people at large; if there are none, the population itself is compared with
    calibration : what scores beside that cohort mean
    members : the name of each person in the cohort

    Examples
    --------
    >>> from keydyn.decisions import Verifier, shipped_background
    >>> background = shipped_background()
    >>> background.calibration.population == background.population.sha256
    True
    >>> verifier = Verifier.of(background)
    """

    pattern: Detector
    cohort: tuple[Detector, ...]
    calibration: Calibration
    members: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.members) != len(self.cohort):
            raise ValueError(f"{len(self.cohort)} people in the cohort have {len(self.members)} names")

    @cached_property
    def others(self) -> tuple[Detector, ...]:
        """What claimed templates are compared with."""
        return self.cohort or nobody(self.pattern)

    @property
    def population(self) -> PopulationModel:
        """The population that templates are made with; a `ValueError` if there is none."""
        if not isinstance(self.pattern, PopulationDetector):
            raise ValueError(f"{self.pattern.name} has no population")
        return self.pattern.people

    @cached_property
    def own_calibration(self) -> Calibration:
        """The calibration, which says that it is this population's."""
        return replace(self.calibration, population=self.population.sha256)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the population and its calibration; it does not depend on the cohort."""
        # The calibration names its population.
        return calibration_digest(self.own_calibration)

    def with_cohort(self, members: Mapping[str, Detector]) -> Background:
        """Beside these people; if they are too few to compare with, beside the population itself."""
        some = members if len(members) >= SMALLEST else {}
        return replace(self, cohort=tuple(some.values()), members=tuple(some))

    def place(self, user: str) -> int:
        """Where somebody is in the cohort; −1 for nowhere."""
        return self.members.index(user) if user in self.members else -1

    def beside(self, user: str) -> tuple[Detector, ...]:
        """What claims to be somebody are compared with: everybody but that person."""
        place = self.place(user)
        return tuple(one for n, one in enumerate(self.others) if n != place)

    def without(self, user: str) -> Background:
        """With a cohort that lacks somebody; a `ValueError` if it is needed and too few are left."""
        place = self.place(user)
        if place < 0:
            return self
        cohort = self.cohort[:place] + self.cohort[place + 1 :]
        members = self.members[:place] + self.members[place + 1 :]
        if len(cohort) < SMALLEST:
            cohort, members = (), ()
        left = replace(self, cohort=cohort, members=members)
        # Asked for now: without anybody in it, only a population can do.
        _ = left.others
        return left

    def scores(self, templates: Mapping[str, Detector], samples: Samples) -> Floats:
        """(n, U) open-set score of each sample under each person's template, beside the others."""
        U = len(templates)
        raw = type(self.pattern).score_many([*templates.values(), *self.others], samples)
        claimed, cohort = raw[:, :U], raw[:, U:]
        scores = open_set_scores(claimed, cohort)
        for u, place in enumerate(map(self.place, templates)):
            if place >= 0:
                scores[:, [u]] = open_set_scores(claimed[:, [u]], np.delete(cohort, place, axis=1))
        return scores

    @classmethod
    def calibrated(
        cls,
        pattern: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """From people that the pattern has not learnt from; they are the cohort, unless it is not kept."""
        people, lengths = people_of(samples), lengths_for(samples)
        cohort = _cohort(pattern, samples, people, keep_cohort, n_jobs)
        trials = _asked(pattern, samples, people, _some(people), cohort, lengths, n_jobs, progress)
        return cls(pattern, cohort[0], Calibration.learn(trials), _names(samples, people, cohort[1]))

    @classmethod
    def learnt(
        cls,
        detector: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """The detector is prepared on all of these people, and calibrated by folds over them.

        In each fold it is prepared on the others. Without `keep_cohort`, nobody's template is kept, and the
        population itself is compared with. `progress` is called with the number of parts done, `FOLDS` + 1
        in all.
        """
        return learnt_with_trials(detector, samples, keep_cohort, n_jobs, progress)[0]


def learnt_with_trials(
    detector: Detector,
    samples: Samples,
    keep_cohort: bool = True,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Background, Trials]:
    """`Background.learnt`, and the trials that the calibration was learnt from."""
    people, lengths = people_of(samples), lengths_for(samples)
    asked = _some(people)
    parts = []
    # What learns nothing from people needs no folds; of very many some can be left out all at once.
    n_folds = FOLDS if detector.needs_everyone and len(np.unique(people)) <= FOLDS * LARGEST_ASKED else 1
    for fold in range(n_folds):
        here = asked[np.arange(len(asked)) % n_folds == fold]
        pattern = detector.prepare(samples[~np.isin(people, here)])
        cohort = _cohort(pattern, samples, people, keep_cohort, n_jobs)
        parts.append(_asked(pattern, samples, people, here, cohort, lengths, n_jobs, None))
        if progress is not None:
            progress(fold + 1)
    trials = together(parts)
    pattern = detector.prepare(samples)
    cohort = _cohort(pattern, samples, people, keep_cohort, n_jobs)
    if progress is not None:
        progress(FOLDS + 1)
    names = _names(samples, people, cohort[1])
    return Background(pattern, cohort[0], Calibration.learn(trials), names), trials


def nobody(pattern: Detector) -> tuple[Detector, ...]:
    """The population itself as the only one to compare with, for those who have nobody else."""
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} needs a cohort of people; only population can do without")
    return (pattern.anyone(),)


_Cohort = tuple[tuple[Detector, ...], Integers]


def _cohort(pattern: Detector, samples: Samples, people: Integers, keep: bool, n_jobs: int | None) -> _Cohort:
    """Templates of everybody, or of some of very many, each from all samples; and who they are."""
    if not keep:
        return (), np.zeros(0, dtype=np.int64)
    members = _some(people, LARGEST_COHORT)
    templates = fit_templates(pattern, [samples[people == u] for u in members.tolist()], n_jobs)
    return tuple(templates), members


def _names(samples: Samples, people: Integers, members: Integers) -> tuple[str, ...]:
    return tuple(str(samples.users[np.argmax(people == u)]) for u in members.tolist())


def _asked(
    pattern: Detector,
    samples: Samples,
    people: Integers,
    asked: Integers,
    cohort: _Cohort,
    lengths: Integers,
    n_jobs: int | None,
    progress: Progress | None,
) -> Trials:
    templates, members = cohort
    if not templates:
        templates, members = nobody(pattern), np.array([-1])
    return claims(pattern, samples, people, asked, templates, members, lengths, n_jobs, progress)


def _some(people: Integers, most: int = LARGEST_ASKED) -> Integers:
    """The numbers of the people, or of some of very many, evenly spread."""
    return spread(np.unique(people), most)
