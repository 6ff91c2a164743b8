"""The verifier: enrolled people, and decisions about samples in their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeGuard

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.calibration.background import Background, nobody, shipped_background
from keydyn.decisions.calibration.comparisons import OwnPlace, own_rate
from keydyn.decisions.calibration.operating_point import OperatingPoint, Targets
from keydyn.decisions.calibration.trials import suspicion_of
from keydyn.decisions.decision import LEAST_KEYSTROKES, LEAST_KNOWN, Decision, Identification
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.folder import changing, new_secret, read_folder
from keydyn.decisions.judging import Judge
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.decisions.own_people import beside_own, compared, place_of
from keydyn.decisions.watching.recordings import Recording
from keydyn.decisions.watching.sessions import WatchedSessions, watched_sessions
from keydyn.decisions.watching.watch import Watch
from keydyn.decisions.watching.watched import Watching
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.evaluation.rates.confidence import Rate
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress
from keydyn.population.model import PopulationModel
from keydyn.population.score.fitted import SideBySide

if TYPE_CHECKING:
    import pandas as pd

    Typing = pd.DataFrame | Samples

# A sample may update a template where at most this share of strangers would score as high.
CONFIDENT = 0.001
UNCALIBRATED = "the verifier is not calibrated: call calibrate, or use shipped or learn"


@dataclass(frozen=True, eq=False)
class State:
    """What decisions depend on; immutable, and replaced as a whole."""

    background: Background | None
    people: Mapping[str, Enrolled]
    # Enrolled too, but not asked about: those of a folder of which only some people were read
    others: Mapping[str, Enrolled] = field(default_factory=dict)
    # Whether people change the background: not if it was given as they change it
    learning: bool = True

    @property
    def everyone(self) -> dict[str, Enrolled]:
        """All who are enrolled."""
        return {**self.others, **self.people}

    # Counts how often it was asked who typed a sample
    _questions: Iterator[int] = field(default_factory=count, init=False, repr=False)

    def together(self) -> SideBySide | None:
        """The people's templates side by side, from the second question on; None without a population.

        A program that makes a verifier for each question is quicker without, and has the memory for others.
        """
        return self._side_by_side if next(self._questions) else None

    @cached_property
    def _side_by_side(self) -> SideBySide | None:
        everyone = [one.template for one in self.people.values()]
        templates = [one.template_ for one in everyone if _of_population(one)]
        if self.background is None or len(templates) < len(everyone):
            return None
        return self.background.population.side_by_side(templates)

    @cached_property
    def beside(self) -> Background | None:
        """The background as the people who are enrolled change it."""
        if self.background is None or not self.learning:
            return self.background
        return beside_own(self.background, self.everyone)


class Verifier:
    """Decides whether people are who they say, who they are, and whether it is still them.

    Threads may share a verifier. Readers see the people before a change or those after it.

    Parameters
    ----------
    people : what templates are made with: a `PopulationModel` that has been learnt, or a `Detector` whose
        templates can be stored
    at : the operating point, `Targets` or `Costs`; by default one stranger in a hundred is accepted
    least_keystrokes : with fewer keystrokes, the answer is "unsure"
    least_known : likewise with fewer keystrokes of keys that the claimed person's template knows; with 0,
        samples of another text are judged too
    secret : 16 to 64 bytes with which fingerprints are keyed; by default new random ones

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(2, 6, "free", 80)
    >>> ada, other = typing[typing["user"] == 0], typing[typing["user"] == 1]
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", ada[ada["session"] < 5])
    >>> verifier.verify("ada", ada[ada["session"] == 5]).answer
    'accept'
    >>> verifier.verify("ada", other[other["session"] == 5]).accepted
    False
    """

    def __init__(
        self,
        people: PopulationModel | Detector,
        at: OperatingPoint | None = None,
        least_keystrokes: int = LEAST_KEYSTROKES,
        least_known: int = LEAST_KNOWN,
        secret: bytes | None = None,
    ) -> None:
        self.pattern = (
            PopulationDetector(population=people) if isinstance(people, PopulationModel) else people
        )
        self.at = at or Targets()
        self.least = least_keystrokes, least_known
        self.secret = secret or new_secret()
        self.sensors: tuple[str, ...] = ()
        self._state = State(None, MappingProxyType({}))
        self._writing = Lock()

    def __repr__(self) -> str:
        """The number of people enrolled, and the detector."""
        ready = "" if self._state.background else ", not calibrated"
        enrolled = len(self._state.people)
        people = "1 person" if enrolled == 1 else f"{enrolled} people"
        return f"<Verifier of {people} with {self.pattern.name}{ready}>"

    @classmethod
    def shipped(cls, at: OperatingPoint | None = None) -> Self:
        """A verifier with the population that comes with keydyn and its calibration; no data is needed."""
        return cls.of(shipped_background(), at)

    @classmethod
    def of(
        cls,
        background: Background,
        at: OperatingPoint | None = None,
        sensors: tuple[str, ...] = (),
        secret: bytes | None = None,
        people: Mapping[str, Enrolled] | None = None,
        learning: bool = True,
    ) -> Self:
        """A verifier with a calibrated background and people who were enrolled with it.

        `secret` is the one that keys their fingerprints. This takes microseconds, so that a program which
        keeps people in a database can make a verifier for each request. Without `learning`, the people do not
        change the background: it is used as it is.
        """
        verifier = cls(background.pattern, at, secret=secret)
        state = State(background, MappingProxyType(dict(people or {})), learning=learning)
        verifier._state, verifier.sensors = state, sensors
        return verifier

    @classmethod
    def learn(
        cls,
        samples: Typing,
        detector: Detector | None = None,
        at: OperatingPoint | None = None,
        sensors: tuple[str, ...] = (),
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn a population from these people, by default, and calibrate by folds over them.

        In each fold a quarter of the people are strangers to a population that is learnt from the others.
        `progress` is called with the number of parts done, of
        `keydyn.decisions.calibration.background.FOLDS` + 1.
        """
        typed = recorded_samples(samples, sensors)
        learnt = Background.learnt(detector or PopulationDetector(), typed, n_jobs=n_jobs, progress=progress)
        return cls.of(learnt, at, sensors)

    def calibrate(self, samples: Typing, n_jobs: int | None = None, progress: Progress | None = None) -> Self:
        """Learn what scores mean, from people who are not enrolled and whom the population does not know.

        They become the cohort. Enrolled people are removed: enrol them again.
        """
        typed = recorded_samples(samples, self.sensors)
        background = Background.calibrated(self.pattern, typed, True, n_jobs, progress)
        with self._writing:
            self._state = State(background, MappingProxyType({}))
        return self

    @property
    def users(self) -> list[str]:
        """The names of the enrolled people, in the order in which they were first enrolled."""
        return list(self._state.people)

    @property
    def background(self) -> Background:
        """What decisions rest on besides the enrolled people; see `in_use`."""
        if self._state.background is None:
            raise ValueError(UNCALIBRATED)
        return self._state.background

    @property
    def in_use(self) -> Background:
        """The background as the enrolled people change it: they join the cohort and move the calibration."""
        return self._ready()[1]

    @property
    def place(self) -> OwnPlace:
        """What the enrolled people's comparisons with each other say of this place.

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
        return _person(self._state, user)

    def enrol(self, user: str, samples: Typing) -> Enrolled:
        """Enrol a user, or enrol the user again, from one sample up; the samples are not kept."""
        return self.enrol_many({user: recorded_samples(samples, self.sensors)})[user]

    def enrolled(self, samples: Typing) -> Enrolled:
        """What `enrol` would keep, for programs that store it elsewhere; this verifier does not change."""
        typed = recorded_samples(samples, self.sensors)
        return self._enrolled(self.pattern.fresh().fit(typed), typed)

    def _enrolled(self, template: Detector, typed: Samples) -> Enrolled:
        known = Fingerprints.of(typed, self.secret)
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
        """Remove a user, from the cohort too; a `ValueError` if there is no such user."""
        with self._writing:
            _person(self._state, user)
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
        one = changed(_person(self._state, user))
        self._state = replace(self._state, people=MappingProxyType({**self._state.people, user: one}))

    def remember(self, user: str, samples: Typing) -> None:
        """Keep fingerprints of later samples too, so that copies of these are recognised."""
        later = Fingerprints.of(recorded_samples(samples, self.sensors), self.secret)
        with self._writing:
            self._change(user, lambda one: one.remembering(later))

    def update(self, user: str, sample: Typing, confident: float = CONFIDENT) -> Decision:
        """Verify one sample and, if it is accepted with confidence, let the person's template follow it.

        `confident` is the largest false-match rate at which it does. However many samples follow, no mean
        goes far from where it was enrolled; `undo` takes the last update back. Copies of the sample are
        recognised from then on.
        """
        typed = recorded_samples(sample, self.sensors)
        # The template that follows is the one that accepted, and of two copies at once one is recognised.
        with self._writing:
            decision = self.verify(user, typed)
            after = self.updated(user, typed, decision, confident)
            if after is not None:
                self._change(user, lambda _: after)
        return decision

    def updated(
        self, user: str, sample: Typing, decision: Decision, confident: float = CONFIDENT
    ) -> Enrolled | None:
        """What `update` would keep of a user after the decision about this sample; None for no change.

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

    def verify(self, user: str, sample: Typing) -> Decision:
        """Is one sample typed by the person it is claimed to be?"""
        decisions = self.verify_many(user, sample)
        if len(decisions) != 1:
            raise ValueError(f"verify takes one sample, not {len(decisions)}; verify_many takes several")
        return decisions[0]

    def verify_many(self, user: str, samples: Typing) -> list[Decision]:
        """Decide about each of several samples, as `verify` does about one."""
        state, background = self._ready()
        one = _person(state, user)
        return self._judge(background).decisions(user, one, recorded_samples(samples, self.sensors))

    def identify(self, sample: Typing) -> Identification:
        """Which enrolled user typed one sample, if any?

        Examples
        --------
        >>> verifier.identify(ada[ada["session"] == 5]).user
        'ada'
        """
        found = self.identify_many(sample)
        if len(found) != 1:
            raise ValueError(f"identify takes one sample, not {len(found)}; identify_many takes several")
        return found[0]

    def identify_many(self, samples: Typing) -> list[Identification]:
        """Identify each of several samples, as `identify` does one."""
        state, background = self._ready()
        if not state.people:
            raise ValueError("nobody is enrolled")
        typed = recorded_samples(samples, self.sensors)
        return self._judge(background).identifications(state.people, typed, state.together())

    def watch(self, user: str, level: float | None = None) -> Watch:
        """Follow a session in a user's name, key by key.

        `level` is the suspicion above which the session is locked, in place of the calibrated one.

        Examples
        --------
        >>> watch = verifier.watch("ada")
        >>> watched = watch.update(other[other["session"] == 5])  # a stranger types
        >>> bool(watched.trust[-1] < 0.5)
        True
        """
        known = self.person(user).fingerprints
        return Watch(self.watch_many([user], level), Recording(known, self.secret))

    def watch_many(self, users: Sequence[str], level: float | None = None) -> WatchedSessions:
        """Follow many sessions, each in the name of one of these users; one call advances all of them."""
        state, background = self._ready()
        people = [_person(state, user) for user in users]
        watching = self._watching(background, people) if level is None else Watching(level)
        beside = background.watched
        places = [beside.place(user) for user in users]
        return watched_sessions(beside, [one.template for one in people], watching, places)

    def watch_pool(self, sessions: int) -> WatchedSessions:
        """Room for a number of sessions; `WatchedSessions.restart` begins each in a user's name.

        Only with a population.
        """
        _, background = self._ready()
        anyone = list(nobody(self.pattern)) * sessions
        return watched_sessions(background.watched, anyone, self._watching(background), [-1] * sessions)

    def suspicion(self, user: str, samples: Typing) -> Floats:
        """(N,) the suspicion after each key of samples that are complete, each watched in the user's name.

        It is what `watch` finds, but for two things: the first interval of a sample is not missing, and with
        a population a key's worth is known at the key itself, since the next one is there.
        """
        state, background = self._ready()
        typed = recorded_samples(samples, self.sensors)
        templates = [_person(state, user).template, *background.watched.beside(user)]
        return suspicion_of(type(self.pattern).score_events_many(templates, typed), typed.sequences.offsets)

    def watching_for(self, user: str) -> Watching:
        """How sessions in a user's name are watched, given how much the user enrolled with."""
        state, background = self._ready()
        return self._watching(background, [_person(state, user)])

    @property
    def watching(self) -> Watching:
        """How sessions are watched: the right person is locked out as rarely as the operating point says."""
        return self._watching(self.in_use)

    def hidden_states(self, user: str, samples: Typing) -> Floats:
        """(N, 2) probability that the user was active, or paused, at each key; only with a population."""
        template = self.person(user).template
        if not _of_population(template):
            raise ValueError(f"hidden states are those of a population, not of {self.pattern.name}")
        return template.people.predict_proba(template.template_, recorded_samples(samples, self.sensors))

    def log_likelihoods(self, samples: Typing) -> Floats:
        """(n, U) log-likelihood of each sample under the template of each user, in the order of `users`."""
        templates = [one.template for one in self._state.people.values()]
        if not templates:
            raise ValueError("nobody is enrolled")
        typed = recorded_samples(samples, self.sensors)
        return np.ascontiguousarray(type(self.pattern).score_many(templates, typed))

    def save(self, folder: str | PathLike[str], key: bytes | None = None) -> None:
        """Write all people to a folder, in place of its contents; it changes in one step, or not at all.

        With a `key` only its holder can alter the list of people unnoticed.

        Examples
        --------
        >>> verifier.save("people")
        >>> Verifier.load("people").users
        ['ada']
        """
        state, _ = self._ready()
        with changing(Path(folder), key, anew=True) as change:
            change.commit(state.background, state.people, self.secret, self.sensors)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        key: bytes | None = None,
        users: Iterable[str] | None = None,
        at: OperatingPoint | None = None,
    ) -> Self:
        """Read what `save` wrote, or `keydyn fit`; of `users` alone if they are named.

        A `ValueError` says what is wrong with the folder, or names a user who is not enrolled.
        """
        found = read_folder(Path(folder), key, users)
        verifier = cls.of(found.background, at, found.manifest.sensors, found.secret, found.people)
        verifier._state = replace(verifier._state, others=MappingProxyType(found.others))
        return verifier

    def _ready(self) -> tuple[State, Background]:
        """The people and the background of one moment; a `ValueError` if there is no background yet."""
        state = self._state
        beside = state.beside
        if beside is None:
            raise ValueError(UNCALIBRATED)
        return state, beside

    def _judge(self, background: Background) -> Judge:
        return Judge(background, self.at, self.least, self.secret)

    def _watching(self, background: Background, people: Sequence[Enrolled] = ()) -> Watching:
        """For these people, or for any: what they enrolled with decides how soon suspicion is meant."""
        amounts = [one.keys for one in people] or None
        return Watching(background.calibrations.lockout_level(self.at.lockouts_per_hour, amounts))


def _person(state: State, user: str) -> Enrolled:
    if user not in state.people:
        some = ", ".join(list(state.people)[:8]) + (" …" if len(state.people) > 8 else "")
        raise ValueError(f"user {user!r} is not enrolled; enrolled are {some or 'no users at all'}")
    return state.people[user]


def _of_population(template: Detector) -> TypeGuard[PopulationDetector]:
    return isinstance(template, PopulationDetector)
