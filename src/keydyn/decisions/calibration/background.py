"""What decisions rest on besides the enrolled people: a prepared detector, a cohort and a calibration.

`python -m keydyn.decisions.calibration.background` writes the calibration that comes with keydyn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from keydyn import files
from keydyn.arrays import Floats
from keydyn.decisions.calibration.calibration import CALIBRATION, Calibration
from keydyn.decisions.calibration.trials import (
    LARGEST_ASKED,
    LARGEST_COHORT,
    SMALLEST_COHORT,
    Cohort,
    Trials,
    Typists,
    claims,
    open_set_scores,
    together,
)
from keydyn.detectors import Detector, PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import COLUMNS
from keydyn.parallel import Progress
from keydyn.population import PopulationModel
from keydyn.population.shipping import published_keystrokes
from keydyn.regular_files import read_regular

# The number of groups in which people are left out when the detector learns from the people who calibrate it.
FOLDS = 4
LARGEST = 1 << 24
SHIPPED = Path(__file__).parent / "shipped.keydyn"
LARGEST_FILE = 1 << 20


@dataclass(frozen=True, eq=False)
class Background:
    """What claims are scored with and compared with, and what the scores mean; immutable.

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
        """The templates that claims are compared with."""
        return self.cohort or nobody(self.pattern)

    @property
    def population(self) -> PopulationModel:
        """The population that templates are made with; a `ValueError` if there is none."""
        if not isinstance(self.pattern, PopulationDetector):
            raise ValueError(f"{self.pattern.name} has no population")
        return self.pattern.people

    @cached_property
    def own_calibration(self) -> Calibration:
        """The calibration, labelled as this population's."""
        return replace(self.calibration, population=self.population.sha256)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the population and its calibration; it does not depend on the cohort."""
        # The calibration names its population.
        return self.own_calibration.sha256

    def with_cohort(self, members: Mapping[str, Detector]) -> Background:
        """The background with these people as the cohort; with too few, the population itself serves."""
        some = members if len(members) >= SMALLEST_COHORT else {}
        return replace(self, cohort=tuple(some.values()), members=tuple(some))

    def place(self, user: str) -> int:
        """A user's place in the cohort; −1 for a user who is not in it."""
        return self.members.index(user) if user in self.members else -1

    def beside(self, user: str) -> tuple[Detector, ...]:
        """The templates that claims to be a user are compared with: all but the user's own."""
        place = self.place(user)
        return tuple(one for n, one in enumerate(self.others) if n != place)

    def without(self, user: str) -> Background:
        """The background without a user in its cohort; a `ValueError` if too few are left to compare with."""
        place = self.place(user)
        if place < 0:
            return self
        cohort = self.cohort[:place] + self.cohort[place + 1 :]
        members = self.members[:place] + self.members[place + 1 :]
        if len(cohort) < SMALLEST_COHORT:
            cohort, members = (), ()
        left = replace(self, cohort=cohort, members=members)
        # Checked now: only a population can do without a cohort.
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

    def explained_scores(
        self, user: str, template: Detector, samples: Samples
    ) -> tuple[Floats, Floats | None]:
        """(n,) open-set scores under one template, and what each value adds under it and under anyone.

        These terms are (N, F, 2), as `PopulationModel.evidence` takes them; None without a population.
        """
        if not isinstance(template, PopulationDetector):
            return self.scores({user: template}, samples)[:, 0], None
        people = template.people
        cohort = [one.template_ for one in self.beside(user) if isinstance(one, PopulationDetector)]
        # Without a cohort, anyone is who claims are compared with.
        templates = [template.template_, people.anyone(), *(cohort if self.cohort else ())]
        raw, terms = people.score_terms(templates, samples, n_explained=2)
        return open_set_scores(raw[:, :1], raw[:, 2 if self.cohort else 1 :])[:, 0], terms

    @classmethod
    def calibrated(
        cls,
        pattern: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """Calibrate on people that the pattern has not learnt from; they are the cohort, if it is kept."""
        typists = Typists.of(samples)
        cohort = _cohort(pattern, typists, keep_cohort, n_jobs)
        trials = claims(pattern, typists, typists.some(), _compared(pattern, cohort), n_jobs, progress)
        return cls(pattern, cohort.templates, Calibration.learn(trials), typists.names(cohort.people))

    @classmethod
    def learnt(
        cls,
        detector: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """Prepare the detector on all of these people, and calibrate it by folds over them.

        In each fold it is prepared on the others. Without `keep_cohort`, no template is kept, and claims are
        compared with the population itself. `progress` is called with the number of parts done, of
        `FOLDS` + 1.
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
    typists = Typists.of(samples)
    people, asked = typists.people, typists.some()
    parts = []
    # What learns nothing from people needs no folds; of very many some can be left out all at once.
    n_folds = FOLDS if detector.needs_everyone and len(np.unique(people)) <= FOLDS * LARGEST_ASKED else 1
    for fold in range(n_folds):
        here = asked[np.arange(len(asked)) % n_folds == fold]
        pattern = detector.prepare(samples[~np.isin(people, here)])
        cohort = _cohort(pattern, typists, keep_cohort, n_jobs)
        parts.append(claims(pattern, typists, here, _compared(pattern, cohort), n_jobs))
        if progress is not None:
            progress(fold + 1)
    trials = together(parts)
    pattern = detector.prepare(samples)
    cohort = _cohort(pattern, typists, keep_cohort, n_jobs)
    if progress is not None:
        progress(FOLDS + 1)
    names = typists.names(cohort.people)
    return Background(pattern, cohort.templates, Calibration.learn(trials), names), trials


def nobody(pattern: Detector) -> tuple[Detector, ...]:
    """The population itself as the only template to compare with; a `ValueError` if there is none."""
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} needs a cohort of people; only population can do without")
    return (pattern.anyone(),)


def _cohort(pattern: Detector, typists: Typists, keep: bool, n_jobs: int | None) -> Cohort:
    """Templates of all people, or of some of very many, each from all samples; empty if it is not kept."""
    if not keep:
        return Cohort((), np.zeros(0, dtype=np.int64))
    members = typists.some(LARGEST_COHORT)
    groups = [typists.samples[typists.people == u] for u in members.tolist()]
    return Cohort(tuple(fit_templates(pattern, groups, n_jobs)), members)


def _compared(pattern: Detector, cohort: Cohort) -> Cohort:
    """The cohort, or the population itself in place of an empty one."""
    return cohort if cohort.templates else Cohort(nobody(pattern), np.array([-1]))


def calibration_file(population: Path) -> Path:
    """people.keydyn has its calibration in people.calibration.keydyn."""
    return population.with_name(f"{population.stem}.calibration{population.suffix}")


def write_background(path: Path, background: Background) -> None:
    """Write the population, then its calibration; of the cohort nothing is written."""
    if background.cohort:
        raise ValueError("only a population that is its own cohort can be written")
    background.population.save(path)
    files.write(calibration_file(path), background.own_calibration.packed())


def write_population(path: Path, people: PopulationModel) -> None:
    """Write a population without a calibration; one that was beside it belonged to another population."""
    people.save(path)
    calibration_file(path).unlink(missing_ok=True)


def read_background(path: Path, people: PopulationModel) -> Background | None:
    """The population with the calibration beside it, which must be its own; None if there is none."""
    beside = calibration_file(path)
    if not beside.exists():
        return None
    calibration = CALIBRATION.parsed(read_regular(beside, LARGEST), beside)
    if calibration.population != people.sha256:
        raise ValueError(f"{beside} is the calibration of a different population from {path}")
    return Background(PopulationDetector(population=people), (), calibration)


@lru_cache(maxsize=1)
def shipped_background() -> Background:
    """The population that comes with keydyn, which is its own cohort, and what its scores mean.

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> shipped_background().calibration.n_people
    115
    """
    calibration = CALIBRATION.parsed(read_regular(SHIPPED, LARGEST_FILE), SHIPPED)
    people = PopulationModel.shipped()
    if calibration.population != people.sha256:
        raise ValueError(f"{SHIPPED} is the calibration of another population: run make population")
    return Background(PopulationDetector(population=people), (), calibration)


def learnt_calibration(data: str | PathLike[str] | None = None) -> Calibration:
    """The calibration, by folds over all people in the recordings that the population was learnt from."""
    keystrokes = pd.concat(published_keystrokes(data), ignore_index=True)
    samples = recorded_samples(keystrokes[list(COLUMNS)])
    learnt = Background.learnt(PopulationDetector(), samples, keep_cohort=False, n_jobs=-1)
    return replace(learnt.calibration, population=PopulationModel.shipped().sha256)


if __name__ == "__main__":
    files.write(SHIPPED, learnt_calibration().packed())
