"""Enrolling people: a model for each, and thresholds beside those who are enrolled already."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from keydyn.detectors import Detector, PopulationDetector, fit_population, make_detector
from keydyn.engine import Progress, counting_on
from keydyn.enrolment.enrolled import Enrolled, sequence_samples
from keydyn.enrolment.manifest import LARGEST_COHORT, Manifest, Person
from keydyn.enrolment.thresholds import find_thresholds, n_folds
from keydyn.keystrokes.schema import sample_starts
from keydyn.population import PopulationModel


def enrol(
    keystrokes: pd.DataFrame,
    detector: str = "pohmm",
    sensors: tuple[str, ...] = (),
    min_samples: int = 2,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    beside: Enrolled | None = None,
    population: PopulationModel | None = None,
) -> Enrolled:
    """Fit a template to each user's samples and find the thresholds.

    `detector` is hmm, pohmm, pohmm-recommended or population: their templates can be stored, and need only
    keys and times to score samples and to watch sessions. `progress` is called with the number of steps
    done, of `n_steps`. People of `beside` stay as they are, except those who are among the
    keystrokes: they are enrolled again. What is returned has everybody in its manifest.

    The detector `population` enrols with the `population` that is given, or else with that of `beside`, or
    else with the one that comes with keydyn.
    """
    before = _nobody(detector, sensors, population) if beside is None else beside
    if before.manifest.people and (before.manifest.detector, before.manifest.sensors) != (detector, sensors):
        raise ValueError("people who are judged beside each other need the same detector and sensors")
    # Where everybody has left, the next ones may be enrolled in another way.
    pattern = before.pattern if before.manifest.people else None
    pattern = pattern or storing_detector(detector, population)
    own = pattern.people if isinstance(pattern, PopulationDetector) else None
    if population is not None and own is not None and own.sha256 != population.sha256:
        raise ValueError("people who are judged beside each other need the same population")
    samples = sequence_samples(keystrokes, sensors)
    codes, labels = pd.factorize(samples.users)
    counts, names = np.bincount(codes), [str(label) for label in labels]
    _check_users(names, counts, min_samples)
    newcomers = fit_population(pattern, samples, n_jobs, progress)
    fitted = dict(zip(names, newcomers.detectors, strict=True))
    numbers, next_number = _numbers(before.manifest, names)
    cohort = set(sorted(numbers, key=numbers.__getitem__)[:LARGEST_COHORT])
    thresholds, penalties = find_thresholds(
        pattern,
        samples,
        newcomers.users,
        [name in cohort for name in names],
        [before.templates[name] for name in numbers if name in cohort and name not in fitted],
        n_jobs,
        counting_on(progress, len(names)),
    )
    newly = [
        Person(name, int(count), _number(threshold), _number(penalty), numbers[name], next_number)
        for name, count, threshold, penalty in zip(names, counts, thresholds, penalties, strict=True)
    ]
    kept = [person for person in before.manifest.people if person.user not in fitted]
    people = tuple(sorted([*kept, *newly], key=lambda person: person.number))
    return Enrolled(Manifest(detector, sensors, people, next_number), {**before.templates, **fitted}, pattern)


def n_fits(keystrokes: pd.DataFrame, n_others: int = 0) -> int:
    """How many templates `enrol` will fit beside so many people, for a progress bar."""
    users = keystrokes.iloc[sample_starts(keystrokes)]["user"]
    return users.nunique() * (n_folds(users.to_numpy(), n_others) + 1)


def n_steps(keystrokes: pd.DataFrame, n_others: int = 0) -> int:
    """The last number that `enrol` will call its `progress` with, beside so many people."""
    users = keystrokes.iloc[sample_starts(keystrokes)]["user"]
    return users.nunique() * (2 * n_folds(users.to_numpy(), n_others) + 1)


def storing_detector(name: str, population: PopulationModel | None = None) -> Detector:
    """The detector of this name; a `ValueError` if its templates cannot be stored.

    `population` is for the detector of that name; by default it is the one that comes with keydyn.
    """
    if name == PopulationDetector.name:
        return PopulationDetector(population=population or PopulationModel.shipped())
    pattern = make_detector(name)
    if not pattern.stores_templates:
        raise ValueError(f"{name} cannot enrol users here; hmm, pohmm, pohmm-recommended and population can")
    if population is not None:
        raise ValueError(f"a population is for the detector population, not for {name}")
    return pattern


def _nobody(detector: str, sensors: tuple[str, ...], population: PopulationModel | None) -> Enrolled:
    return Enrolled(Manifest(detector, sensors, (), 0), {}, storing_detector(detector, population))


def _numbers(before: Manifest, names: list[str]) -> tuple[dict[str, int], int]:
    """Everybody's number, and the next one to give; people who are enrolled again keep theirs."""
    numbers, next_number = {person.user: person.number for person in before.people}, before.next_number
    for name in names:
        if name not in numbers:
            numbers[name] = next_number
            next_number += 1
    return numbers, next_number


def _check_users(names: list[str], counts: np.ndarray, min_samples: int) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"two users are called {twice[0]}")
    few = np.flatnonzero(counts < min_samples)
    if len(few):
        raise ValueError(
            f"user {names[few[0]]} has {counts[few[0]]} sample{'s' if counts[few[0]] != 1 else ''}; at least "
            f"{min_samples} are required"
        )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
