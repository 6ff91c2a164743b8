"""What decisions rest on besides the enrolled people: a prepared detector, a cohort and a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration import Calibration
from keydyn.decisions.cohort import open_set_scores
from keydyn.decisions.trials import (
    LARGEST_ASKED,
    LARGEST_COHORT,
    Trials,
    claims,
    lengths_for,
    people_of,
    together,
)
from keydyn.detectors import Detector, PopulationDetector
from keydyn.detectors.population import fit_templates
from keydyn.engine import Progress
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel

# People are left out in so many groups when the detector learns from the same people that calibrate it.
FOLDS = 4


@dataclass(frozen=True, eq=False)
class Background:
    """Immutable.

    Attributes
    ----------
    pattern : a detector that fits templates without further preparation
    cohort : templates of people at large, or of nobody in particular
    calibration : what scores beside that cohort mean
    """

    pattern: Detector
    cohort: tuple[Detector, ...]
    calibration: Calibration

    def scores(self, templates: Sequence[Detector], samples: Samples) -> Floats:
        """(n, U) open-set score of each sample under each template."""
        raw = type(self.pattern).score_many([*templates, *self.cohort], samples)
        return open_set_scores(raw[:, : len(templates)], raw[:, len(templates) :])

    @classmethod
    def calibrated(
        cls,
        pattern: Detector,
        samples: Samples,
        cohort: Sequence[Detector] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """From people that the pattern has not learnt from; they are the cohort unless one is given."""
        people = people_of(samples)
        own = _cohort(pattern, samples, people, n_jobs) if cohort is None else (tuple(cohort), None)
        trials = _asked(pattern, samples, people, _some(people), own, lengths_for(samples), n_jobs, progress)
        return cls(pattern, own[0], Calibration.learn(trials))

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

        In each fold it is prepared on the others. Without `keep_cohort`, nobody's template is kept: the
        cohort is `nobody`. `progress` is called with the number of parts done, of `FOLDS` + 1.
        """
        return cls(*learnt_with_trials(detector, samples, keep_cohort, n_jobs, progress)[:3])


def learnt_with_trials(
    detector: Detector,
    samples: Samples,
    keep_cohort: bool = True,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Detector, tuple[Detector, ...], Calibration, Trials]:
    """The parts of `Background.learnt`, and the trials that the calibration was learnt from."""
    people, lengths = people_of(samples), lengths_for(samples)
    asked = _some(people)
    parts = []
    for fold in range(FOLDS if detector.needs_everyone else 1):
        here = asked[np.arange(len(asked)) % FOLDS == fold] if detector.needs_everyone else asked
        pattern = detector.prepare(samples[~np.isin(people, here)])
        cohort = _cohort(pattern, samples, people, n_jobs) if keep_cohort else (nobody(pattern), None)
        parts.append(_asked(pattern, samples, people, here, cohort, lengths, n_jobs, None))
        if progress is not None:
            progress(fold + 1)
    trials = together(parts)
    pattern = detector.prepare(samples)
    cohort = _cohort(pattern, samples, people, n_jobs) if keep_cohort else (nobody(pattern), None)
    if progress is not None:
        progress(FOLDS + 1)
    return pattern, cohort[0], Calibration.learn(trials), trials


def nobody(pattern: Detector) -> tuple[Detector, ...]:
    """The population itself as the only one to compare with, for those who have nobody else."""
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} needs a cohort of people; only population can do without")
    return (pattern.anyone(),)


def of_population(people: PopulationModel) -> PopulationDetector:
    """The detector that enrols with this population."""
    return PopulationDetector(population=people)


_Cohort = tuple[tuple[Detector, ...], Integers | None]


def _cohort(pattern: Detector, samples: Samples, people: Integers, n_jobs: int | None) -> _Cohort:
    """Templates of everybody, or of some of very many, each from all samples; and who they are."""
    members = _some(people, LARGEST_COHORT)
    templates = fit_templates(pattern, [samples[people == u] for u in members.tolist()], n_jobs)
    return tuple(templates), members


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
    strangers = np.full(len(templates), -1, dtype=np.int64) if members is None else members
    return claims(pattern, samples, people, asked, templates, strangers, lengths, n_jobs, progress)


def _some(people: Integers, most: int = LARGEST_ASKED) -> Integers:
    """The numbers of the people, or of some of very many, evenly spread."""
    everybody = np.unique(people)
    if len(everybody) <= most:
        return everybody
    return everybody[np.linspace(0, len(everybody) - 1, most).round().astype(np.int64)]
