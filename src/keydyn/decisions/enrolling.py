"""The enrolled people of a verifier: enrolling, updating, removing and saving them.

If the calibration was learnt elsewhere, the enrolled people join the cohort, and comparisons among them
adjust the calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from keydyn.arrays import Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.calibration.comparisons import LEAST_PEOPLE, Comparisons, OwnPlace, own_place, own_rate
from keydyn.decisions.calibration.trials import LARGEST_COHORT, spread
from keydyn.decisions.decision import Decision, Targets, calibration_keys, evidence
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.folder import changing
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.decisions.liveness.hands import with_manner
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.evaluation.rates.confidence import Rate
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress
from keydyn.population.score.fitted import SideBySide

if TYPE_CHECKING:
    import pandas as pd

    Typing = pd.DataFrame | Samples

# A sample may update a template if at most this share of strangers would score as high.
CONFIDENT = 0.001
UNCALIBRATED = "the verifier is not calibrated: call calibrate, or use shipped or learn"
# The most others whom a person's samples are compared with, and the most samples compared.
MOST_CLAIMED, MOST_ASKED = 50, 10


@dataclass(frozen=True, eq=False)
class State:
    """Everything that decisions depend on; immutable, and replaced as a whole.

    Attributes
    ----------
    background : the background as it was learnt or given; None before a calibration
    people : the enrolled people by name, in the order of their enrolment
    others : people who are enrolled but not open to claims: the rest of a folder of which only some people
        were loaded
    learning : whether enrolled people adjust the background; False if it was given already adjusted
    """

    background: Background | None
    people: Mapping[str, Enrolled]
    others: Mapping[str, Enrolled] = field(default_factory=dict)
    learning: bool = True
    # Counts the calls of `together`.
    _calls: Iterator[int] = field(default_factory=count, init=False, repr=False)

    @property
    def everyone(self) -> dict[str, Enrolled]:
        """All enrolled people, including those who are not open to claims."""
        return {**self.others, **self.people}

    def together(self) -> SideBySide | None:
        """The people's templates, laid out side by side; None on the first call, and without a population.

        The layout is worth its time and memory only from the second identification on: some programs make a
        verifier for each.
        """
        return self._side_by_side if next(self._calls) else None

    @cached_property
    def _side_by_side(self) -> SideBySide | None:
        everyone = [one.template for one in self.people.values()]
        templates = [one.template_ for one in everyone if of_population(one)]
        if self.background is None or len(templates) < len(everyone):
            return None
        return self.background.population.side_by_side(templates)

    @cached_property
    def adjusted(self) -> Background | None:
        """The background that is in use, adjusted by the enrolled people unless it is not `learning`."""
        if self.background is None or not self.learning:
            return self.background
        return adjusted_by(self.background, self.everyone)


class EnrolledPeople:
    """The people enrolled with one detector and one background; threads may share them.

    Readers see the state before a change or after it, never in between.
    """

    def __init__(self, pattern: Detector, secret: bytes) -> None:
        self.pattern, self.secret = pattern, secret
        self.sensors: tuple[str, ...] = ()
        self._state = State(None, MappingProxyType({}))
        self._writing = Lock()

    @property
    def users(self) -> list[str]:
        """The names of the enrolled people, in the order in which they were first enrolled."""
        return list(self._state.people)

    @property
    def background(self) -> Background:
        """The background before any adjustment by the enrolled people; see `in_use`."""
        if self._state.background is None:
            raise ValueError(UNCALIBRATED)
        return self._state.background

    @property
    def in_use(self) -> Background:
        """The background adjusted by the enrolled people, who join the cohort and shift the calibration."""
        return self._ready()[1]

    @property
    def place(self) -> OwnPlace:
        """The shift of strangers' scores at this place, estimated by comparing the enrolled people.

        Examples
        --------
        >>> verifier.place.people  # too few to learn from
        0
        """
        return place_of(self.background, self._state.everyone)

    def own_rate(self, false_match: float = Targets.false_match) -> Rate | None:
        """The share of comparisons among the enrolled people that would be accepted at this target.

        None with too few people, or where the calibration was learnt from the place's own people.

        Examples
        --------
        >>> verifier.own_rate() is None  # a single person has nobody to be compared with
        True
        """
        people = {user: one.comparisons for user, one in self._state.everyone.items()}
        return own_rate(self.in_use.calibrations, people, false_match)

    def person(self, user: str) -> Enrolled:
        """The template and fingerprints of an enrolled user; a `ValueError` if there is no such user."""
        return person_of(self._state, user)

    def enrol(self, user: str, samples: Typing) -> Enrolled:
        """Enrol a user, or enrol the user again, with one sample or more; the samples are not kept."""
        return self.enrol_many({user: recorded_samples(samples, self.sensors)})[user]

    def enrolled(self, samples: Typing) -> Enrolled:
        """Return what `enrol` would store, for programs that store it elsewhere; nothing changes here."""
        typed = recorded_samples(samples, self.sensors)
        return self._enrolled(self.pattern.fresh().fit(typed), typed)

    def _enrolled(self, template: Detector, typed: Samples) -> Enrolled:
        known = Fingerprints.of(typed, self.secret)
        if of_population(template):
            template = template.carrying(with_manner(template.people, template.template_, typed))
        return Enrolled(template, len(typed), typed.sequences.n_events, known)

    def enrol_many(
        self, samples: Mapping[str, Typing], n_jobs: int | None = None, progress: Progress | None = None
    ) -> dict[str, Enrolled]:
        """Enrol several people in one step; `progress` is called with the number done."""
        groups = [recorded_samples(typed, self.sensors) for typed in samples.values()]
        templates = fit_templates(self.pattern, groups, n_jobs, progress)
        newly = {
            user: self._enrolled(template, group)
            for user, template, group in zip(samples, templates, groups, strict=True)
        }
        with self._writing:
            state = self._state
            people = {**state.people, **newly}
            if state.background is not None:
                typed, everyone = dict(zip(samples, groups, strict=True)), {**state.others, **people}
                for user, comparisons in compared(state.background, everyone, typed).items():
                    newly[user] = people[user] = replace(people[user], comparisons=comparisons)
            self._state = replace(state, people=MappingProxyType(people))
        return newly

    def remove(self, user: str) -> None:
        """Remove a user, also from the cohort; a `ValueError` if there is no such user."""
        with self._writing:
            person_of(self._state, user)
            left = {
                name: replace(one, comparisons=one.comparisons.without(user))
                for name, one in self._state.people.items()
                if name != user
            }
            background = self._state.background
            if background is not None:
                background = background.without(user)
            self._state = replace(self._state, background=background, people=MappingProxyType(left))

    def _change(self, user: str, changed: Callable[[Enrolled], Enrolled]) -> None:
        """Replace one person's entry; the caller holds the lock for writing."""
        one = changed(person_of(self._state, user))
        self._state = replace(self._state, people=MappingProxyType({**self._state.people, user: one}))

    def remember(self, user: str, samples: Typing) -> None:
        """Store the fingerprints of later samples too, so that copies of them are recognised."""
        later = Fingerprints.of(recorded_samples(samples, self.sensors), self.secret)
        with self._writing:
            self._change(user, lambda one: one.remembering(later))

    def updated(
        self, user: str, sample: Typing, decision: Decision, confident: float = CONFIDENT
    ) -> Enrolled | None:
        """Return what `update` would store after this decision about a sample; None if nothing would change.

        For programs that store it elsewhere; this verifier does not change.
        """
        if not decision.accepted or decision.false_match_rate > confident:
            return None
        typed = recorded_samples(sample, self.sensors)
        return self.person(user).after(typed, Fingerprints.of(typed, self.secret))

    def undo(self, user: str) -> None:
        """Take back the last update of a user's template; a `ValueError` if there is none."""
        with self._writing:
            self._change(user, Enrolled.undone)

    def save(self, folder: str | PathLike[str], key: bytes | None = None) -> None:
        """Save all people to a folder, replacing its contents in one step or not at all.

        If a `key` is given, only its holder can alter the list of people unnoticed.

        Examples
        --------
        >>> verifier.save("people")
        >>> Verifier.load("people").users
        ['ada']
        """
        state, _ = self._ready()
        with changing(Path(folder), key, anew=True) as change:
            change.commit(state.background, state.people, self.secret, self.sensors)

    def _ready(self) -> tuple[State, Background]:
        """The state, and the adjusted background that belongs to it; a `ValueError` if there is none yet."""
        state = self._state
        background = state.adjusted
        if background is None:
            raise ValueError(UNCALIBRATED)
        return state, background


def person_of(state: State, user: str) -> Enrolled:
    if user not in state.people:
        some = ", ".join(list(state.people)[:8]) + (" …" if len(state.people) > 8 else "")
        raise ValueError(f"user {user!r} is not enrolled; enrolled are {some or 'no users at all'}")
    return state.people[user]


def of_population(template: Detector) -> TypeGuard[PopulationDetector]:
    return isinstance(template, PopulationDetector)


def learns_from_own(background: Background) -> bool:
    """Whether enrolled people adjust the calibration: only if it was learnt elsewhere."""
    return background.calibrations.unsure > 0.0


def place_of(background: Background, people: Mapping[str, Enrolled]) -> OwnPlace:
    """Estimate from these enrolled people how strangers at their place score."""
    return own_place(background.calibrations, {user: one.comparisons for user, one in people.items()})


def adjusted_by(
    background: Background, people: Mapping[str, Enrolled], place: OwnPlace | None = None
) -> Background:
    """The background adjusted by these enrolled people; `place` is the result of `place_of`, if known."""
    if not learns_from_own(background) or len(people) < LEAST_PEOPLE:
        return background
    place = place or place_of(background, people)
    own = _cohort(people)
    return replace(
        background,
        cohort=background.cohort + tuple(own.values()),
        members=background.members + tuple(own),
        calibrations=background.calibrations.moved(place.shift, place.unsure),
    )


def compared(
    background: Background, people: Mapping[str, Enrolled], newly: Mapping[str, Samples]
) -> dict[str, Comparisons]:
    """Score the samples of newly enrolled people as claims to be other enrolled people.

    Each claim is scored against the cohort and the other enrolled people, leaving out the typist and the
    person claimed, so that no template involved has seen the sample.
    """
    if not learns_from_own(background) or len(people) < LEAST_PEOPLE:
        return dict.fromkeys(newly, Comparisons.none())
    cohort, users = _cohort(people), list(people)
    names, C = list(cohort), len(background.others)
    found = {}
    for user, samples in newly.items():
        asked = samples[spread(np.arange(len(samples)), MOST_ASKED)]
        others = np.array([n for n, name in enumerate(users) if name != user])
        claimed = [users[n] for n in _from(others, users.index(user), MOST_CLAIMED).tolist()]
        templates = [people[name].template for name in claimed]
        raw = type(background.pattern).score_many([*templates, *cohort.values()], asked)
        everyone = np.hstack([background.beside_scores(asked), raw[:, len(claimed) :]])
        scores = np.empty((len(asked), len(claimed)))
        for v, name in enumerate(claimed):
            counts = np.array([True] * C + [one not in (user, name) for one in names])
            beside = everyone[:, counts]
            scores[:, [v]] = open_set_scores(raw[:, [v]], beside, asked.sequences.lengths)
        keys = calibration_keys(evidence(asked, templates[0]))
        amounts = np.array([people[name].keys for name in claimed], dtype=np.int64)
        found[user] = Comparisons(
            tuple(claimed) * len(asked),
            scores.ravel(),
            np.repeat(keys, len(claimed)),
            np.tile(amounts, len(asked)),
        )
    return found


def _from(others: Integers, first: int, most: int) -> Integers:
    """Choose at most `most` of the others, evenly spread, starting at a different place for each person."""
    return np.sort(np.roll(others, -first)[: len(others)][spread(np.arange(len(others)), most)])


def _cohort(people: Mapping[str, Enrolled]) -> dict[str, Detector]:
    """The templates of enrolled people who serve as cohort, by name."""
    names = list(people)
    return {
        names[n]: people[names[n]].template for n in spread(np.arange(len(names)), LARGEST_COHORT).tolist()
    }
