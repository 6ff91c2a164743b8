"""The background of decisions: a prepared detector, a cohort of other people, and calibrations."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from keydyn import files
from keydyn.arrays import Floats
from keydyn.decisions.calibration.amounts import CALIBRATIONS, Calibrations
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.calibration.trials import (
    LARGEST_ASKED,
    LARGEST_COHORT,
    SMALLEST_COHORT,
    WATCHED_BESIDE,
    Cohort,
    Trials,
    Typists,
    claims,
    spread,
    together,
)
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress
from keydyn.population.model import PopulationModel
from keydyn.population.score.fitted import SideBySide
from keydyn.population.shared_parameters import Template
from keydyn.regular_files import read_regular

# The number of folds if the detector learns from the same people who calibrate it.
FOLDS = 4
LARGEST = 1 << 24
SHIPPED = Path(__file__).parent / "shipped.keydyn"
# The number of samples that an unnamed member of the cohort is enrolled with, and their keys.
RETYPED = (2, 50)
# The number of samples, and their keys, of each person who comes with keydyn, if a population is learnt from
# these people too.
PRIOR = (10, 50)
# The least share of keystrokes with known keys for that.
LEAST_KNOWN = 0.8
# Stands for the name of a cohort member who has none: a person from the recordings that keydyn comes with.
UNNAMED = ""


@dataclass(frozen=True, eq=False)
class Background:
    """The detector, cohort and calibrations that claims are judged with; immutable.

    Attributes
    ----------
    pattern : a detector that fits templates without further preparation
    cohort : templates of other people, to compare claims with; if there are none, the population serves
    calibrations : the calibrations of scores against that cohort
    members : the name of each person in the cohort, `UNNAMED` for those who come with keydyn

    Examples
    --------
    >>> from keydyn.decisions import Verifier, shipped_background
    >>> background = shipped_background()
    >>> background.calibrations.population == background.population.sha256
    True
    >>> verifier = Verifier.of(background)
    """

    pattern: Detector
    cohort: tuple[Detector, ...]
    calibrations: Calibrations
    members: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The size of the cohort, and the detector."""
        return f"<Background of {len(self.cohort)} people with {self.pattern.name}>"

    def __post_init__(self) -> None:
        if len(self.members) != len(self.cohort):
            raise ValueError(f"{len(self.cohort)} people in the cohort have {len(self.members)} names")

    @cached_property
    def others(self) -> tuple[Detector, ...]:
        """The templates that claims are compared with."""
        return self.cohort or nobody(self.pattern)

    @cached_property
    def _side_by_side(self) -> SideBySide | None:
        """The templates that claims are compared with, side by side; None without a population."""
        templates = [one.template_ for one in self.others if isinstance(one, PopulationDetector)]
        return self.population.side_by_side(templates) if len(templates) == len(self.others) else None

    def beside_scores(self, samples: Samples) -> Floats:
        """(n, C) score of each sample under each template that claims are compared with."""
        if self._side_by_side is None:
            return type(self.pattern).score_many(self.others, samples)
        return self.population.log_likelihoods(self._side_by_side, samples, n_jobs=1)

    @property
    def unnamed(self) -> list[Template]:
        """The templates of cohort members without a name."""
        return [
            one.template_
            for one, name in zip(self.cohort, self.members, strict=True)
            if name == UNNAMED and isinstance(one, PopulationDetector)
        ]

    @property
    def population(self) -> PopulationModel:
        """The population that templates are made with; a `ValueError` if there is none."""
        if not isinstance(self.pattern, PopulationDetector):
            raise ValueError(f"{self.pattern.name} has no population")
        return self.pattern.people

    @cached_property
    def own_calibrations(self) -> Calibrations:
        """The calibrations, labelled with the digest of this background's population."""
        return replace(self.calibrations, population=self.population.sha256)

    @property
    def sha256(self) -> str:
        """SHA-256 of the population; templates are valid as long as it is in use."""
        return self.population.sha256

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the population, calibrations and cohort; sessions advanced together must share them."""
        # The calibrations name their population.
        named = "\n".join([self.own_calibrations.sha256, *self.members])
        return hashlib.sha256(named.encode()).hexdigest()

    def with_cohort(self, members: Mapping[str, Detector]) -> Background:
        """The background with these people as the cohort; with too few, the population itself serves."""
        some = members if len(members) >= SMALLEST_COHORT else {}
        return replace(self, cohort=tuple(some.values()), members=tuple(some))

    def place(self, user: str) -> int:
        """The index of a user in the cohort; −1 for a user who is not in it."""
        return self._places.get(user, -1)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.members) if name != UNNAMED}

    def beside(self, user: str) -> tuple[Detector, ...]:
        """The templates to compare with when this user is claimed: all but the user's own."""
        place = self.place(user)
        return tuple(one for n, one in enumerate(self.others) if n != place)

    @cached_property
    def watched(self) -> Background:
        """The background for watching sessions, with part of the cohort: as good, and it takes less time."""
        some = spread(np.arange(len(self.cohort)), WATCHED_BESIDE).tolist()
        few = tuple(self.cohort[n] for n in some), tuple(self.members[n] for n in some)
        return replace(self, cohort=few[0], members=few[1])

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

    def scores(
        self, templates: Mapping[str, Detector], samples: Samples, together: SideBySide | None = None
    ) -> Floats:
        """(n, U) open-set score of each sample under each person's template.

        `together` has the same templates laid out side by side, if that was done.
        """
        if together is None:
            claimed = type(self.pattern).score_many(list(templates.values()), samples)
        else:
            claimed = self.population.log_likelihoods(together, samples, n_jobs=1)
        cohort, keys = self.beside_scores(samples), samples.sequences.lengths
        scores = open_set_scores(claimed, cohort, keys)
        # A user can be in the cohort only if it has names.
        for u, place in enumerate(map(self.place, templates)) if self._places else ():
            if place >= 0:
                scores[:, [u]] = open_set_scores(claimed[:, [u]], np.delete(cohort, place, axis=1), keys)
        return scores

    def explained_scores(
        self, user: str, template: Detector, samples: Samples
    ) -> tuple[Floats, Floats | None]:
        """(n,) open-set scores under one template, and the terms that they are made of.

        The terms, (N, F, 2), are those of each value under the template and under anyone, as
        `PopulationModel.evidence` takes them; None without a population.
        """
        if not isinstance(template, PopulationDetector):
            return self.scores({user: template}, samples)[:, 0], None
        people, place = template.people, self.place(user)
        # Without a cohort, claims are compared with anyone.
        beside = self._side_by_side if self.cohort else None
        raw, terms = people.score_terms([template.template_, people.anyone()], samples, beside)
        # Columns of `raw`: the user's template, anyone's, then the cohort, if there is one.
        beside_scores = raw[:, 1:] if beside is None else raw[:, 2:]
        if place >= 0:
            beside_scores = np.delete(beside_scores, place, axis=1)
        return open_set_scores(raw[:, :1], beside_scores, samples.sequences.lengths)[:, 0], terms

    @classmethod
    def calibrated(
        cls,
        pattern: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """Calibrate on people from whom the pattern was not learnt; they become the cohort, if it is kept."""
        typists = Typists.of(samples)
        cohort = _cohort(pattern, typists, keep_cohort, n_jobs)
        trials, amounts = {}, _amounts(pattern, typists)
        for done, (keys, amount) in enumerate(amounts.items(), start=1):
            compared = _compared(pattern, cohort)
            trials[keys] = claims(pattern, typists, typists.some(), compared, n_jobs, amount)
            if progress is not None:
                progress(done)
        return cls(pattern, cohort.templates, Calibrations.learn(trials), typists.names(cohort.people))

    @classmethod
    def learnt(
        cls,
        detector: Detector,
        samples: Samples,
        keep_cohort: bool = True,
        prior: Samples | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Background:
        """Prepare the detector on all of these people, and calibrate it by cross-validation over them.

        In each fold it is prepared on the people outside the fold. Without `keep_cohort`, no template is
        kept, and claims are compared with the population itself. The detector also learns from the people of
        a `prior`, who join the cohort without their names (see `shipped_prior`). `progress` is called with
        the number of parts done, out of `FOLDS` + 1.
        """
        return learnt_with_trials(detector, samples, keep_cohort, prior, n_jobs, progress)[0]


def learnt_with_trials(
    detector: Detector,
    samples: Samples,
    keep_cohort: bool = True,
    prior: Samples | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Background, Trials]:
    """Return the result of `Background.learnt`, and the trials of people enrolled with all they typed."""
    typists = Typists.of(samples)
    people, asked, amounts = typists.people, typists.some(), _amounts(detector, typists)
    parts: dict[int, list[Trials]] = {keys: [] for keys in amounts}
    # A detector that learns nothing from people needs no folds; with very many people, all who are tested can
    # be left out at once.
    n_folds = FOLDS if detector.needs_everyone and len(np.unique(people)) <= FOLDS * LARGEST_ASKED else 1
    for fold in range(n_folds):
        here = asked[np.arange(len(asked)) % n_folds == fold]
        pattern = detector.prepare(_with(prior, samples[~np.isin(people, here)]))
        cohort = _with_prior(pattern, prior, _cohort(pattern, typists, keep_cohort, n_jobs))
        for keys, amount in amounts.items():
            parts[keys].append(claims(pattern, typists, here, _compared(pattern, cohort), n_jobs, amount))
        if progress is not None:
            progress(fold + 1)
    trials = {keys: together(some) for keys, some in parts.items()}
    pattern = detector.prepare(_with(prior, samples))
    cohort = _with_prior(pattern, prior, _cohort(pattern, typists, keep_cohort, n_jobs))
    if progress is not None:
        progress(FOLDS + 1)
    named = cohort.people[cohort.people >= 0]
    names = (UNNAMED,) * (len(cohort.people) - len(named)) + typists.names(named)
    whole = next(trials[keys] for keys, amount in amounts.items() if amount is None)
    return Background(pattern, cohort.templates, Calibrations.learn(trials), names), whole


def _amounts(detector: Detector, typists: Typists) -> dict[int, int | None]:
    """The amounts to enrol people with; templates that take long to learn are learnt from all samples."""
    amounts = typists.amounts()
    return amounts if detector.learns_people else {keys: n for keys, n in amounts.items() if n is None}


def shipped_prior(samples: Samples) -> Samples | None:
    """Draw typing of the people who come with keydyn, to learn from them together with these samples.

    With a few dozen people of one's own, a population learnt from both is better than from either. The result
    is None if all samples are of the same text, or of keys that those people did not type: about such typing
    they say nothing.
    """
    if samples.sequences.n_features > 2 or _share_known(samples) < LEAST_KNOWN or _same_text(samples):
        return None
    people = PopulationModel.shipped()
    typed = people.retyped(PopulationModel.shipped_people(), *PRIOR, random_state=0)
    return replace(typed, names=[(f"keydyn {user}", n) for user, n in typed.names])


def _share_known(samples: Samples) -> float:
    """The share of keystrokes with keys that the shipped population knows."""
    known = np.isin(samples.sequences.event_types, PopulationModel.shipped().parameters.cells.vocabulary)
    codes = samples.sequences.codes
    return float(np.mean((codes >= 0) & np.append(known, False)[codes]))


def _same_text(samples: Samples) -> bool:
    """Whether all samples consist of the same keys."""
    lengths, codes = samples.sequences.lengths, samples.sequences.codes
    return bool(
        (lengths == lengths[0]).all() and (codes.reshape(len(samples), -1) == codes[: lengths[0]]).all()
    )


def _with(prior: Samples | None, samples: Samples) -> Samples:
    """Join the samples of a prior, if there is one, with these."""
    if prior is None:
        return samples
    return Samples.joined([prior, replace(samples, feature_table=None, kind=prior.kind)])


def _with_prior(pattern: Detector, prior: Samples | None, cohort: Cohort) -> Cohort:
    """The cohort with the people of a prior put first."""
    if prior is None or not isinstance(pattern, PopulationDetector) or not cohort.templates:
        return cohort
    unnamed = map(pattern.carrying, pattern.people.enrol_each(prior[prior.numbers < RETYPED[0]]))
    templates = (*unnamed, *cohort.templates)
    people = np.full(len(templates), -1)
    people[len(templates) - len(cohort.people) :] = cohort.people
    return Cohort(templates, people)


def nobody(pattern: Detector) -> tuple[Detector, ...]:
    """The population itself as the only template to compare with; a `ValueError` if there is none."""
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} needs a cohort of people; only population can do without")
    return (pattern.anyone(),)


def _cohort(pattern: Detector, typists: Typists, keep: bool, n_jobs: int | None) -> Cohort:
    """Templates of all people, or of some if they are very many; empty if the cohort is not kept."""
    if not keep:
        return Cohort((), np.zeros(0, dtype=np.int64))
    members = typists.some(LARGEST_COHORT)
    groups = [typists.samples[typists.people == u] for u in members.tolist()]
    return Cohort(tuple(fit_templates(pattern, groups, n_jobs)), members)


def _compared(pattern: Detector, cohort: Cohort) -> Cohort:
    """The cohort, or the population itself in place of an empty one."""
    return cohort if cohort.templates else Cohort(nobody(pattern), np.array([-1]))


def calibration_file(population: Path) -> Path:
    """The path of a population's calibration: `people.calibration.keydyn` for `people.keydyn`."""
    return population.with_name(f"{population.stem}.calibration{population.suffix}")


def write_background(path: Path, background: Background) -> None:
    """Write the population, then its calibration; a `ValueError` if there is a cohort, too."""
    if background.cohort:
        raise ValueError("only a population that is its own cohort can be written")
    background.population.save(path)
    files.write(calibration_file(path), background.own_calibrations.packed())


def write_population(path: Path, people: PopulationModel) -> None:
    """Write a population without a calibration, deleting that of the population it replaces."""
    people.save(path)
    calibration_file(path).unlink(missing_ok=True)


def read_background(path: Path, people: PopulationModel) -> Background | None:
    """Read the calibration stored beside a population, which must be its own; None if there is none."""
    stored = calibration_file(path)
    if not stored.exists():
        return None
    calibrations = CALIBRATIONS.parsed(read_regular(stored, LARGEST), stored)
    if calibrations.population != people.sha256:
        raise ValueError(f"{stored} is the calibration of a different population from {path}")
    return Background(PopulationDetector(population=people), (), calibrations)


@lru_cache(maxsize=1)
def shipped_background() -> Background:
    """The background that comes with keydyn: a population, an unnamed cohort, and calibrations.

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> background = shipped_background()
    >>> background.calibrations.n_people, len(background.cohort)
    (115, 115)
    """
    people = PopulationModel.shipped()
    calibrations = CALIBRATIONS.parsed(read_regular(SHIPPED, LARGEST), SHIPPED)
    if calibrations.population != people.sha256:
        raise ValueError(f"{SHIPPED} is the calibration of another population: run make population")
    pattern, cohort = retyped_cohort(people, PopulationModel.shipped_people())
    return Background(pattern, cohort, calibrations, (UNNAMED,) * len(cohort))


def retyped_cohort(
    people: PopulationModel, typists: Sequence[Template]
) -> tuple[PopulationDetector, tuple[PopulationDetector, ...]]:
    """A population's detector, and a cohort that types like these people, enrolled with little typing.

    Users often enrol with as little; compared with templates that are more certain, theirs would look unlike
    anyone.
    """
    pattern = PopulationDetector(population=people)
    templates = people.enrol_each(people.retyped(typists, *RETYPED, random_state=0))
    # Rounded as in files, so that a folder's cohort equals the one it was written with.
    kept = people.parsed_people(people.packed_people(templates), "a cohort")
    return pattern, tuple(map(pattern.carrying, kept))
