"""The verifier, which makes decisions about samples typed in the names of enrolled people.

A decision rests on the score and its meaning, on signs of fraud, and on whether there is enough evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.calibration.background import Background, nobody, shipped_background
from keydyn.decisions.calibration.calibration import Meanings
from keydyn.decisions.calibration.trials import suspicion_of
from keydyn.decisions.decision import (
    ACCEPT,
    LEAST_KEYSTROKES,
    LEAST_KNOWN,
    REJECT,
    UNSURE,
    Candidate,
    Decision,
    Evidence,
    Identification,
    KeyEvidence,
    OperatingPoint,
    Targets,
    Typed,
    calibration_keys,
    evidence,
    posterior_of,
)
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.enrolling import CONFIDENT, EnrolledPeople, State, of_population, person_of
from keydyn.decisions.folder.folder import new_secret, read_folder
from keydyn.decisions.liveness.copies import copy_evidence
from keydyn.decisions.liveness.hands import REJECTED_FROM, typed_in_name_of
from keydyn.decisions.liveness.not_typed import not_typed, remarks
from keydyn.decisions.watching.playback import PlaybackCheck
from keydyn.decisions.watching.sessions import WatchedSessions, watched_sessions
from keydyn.decisions.watching.watch import Watch
from keydyn.decisions.watching.watched import Watching
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress
from keydyn.population.model import PopulationModel

if TYPE_CHECKING:
    from keydyn.decisions.enrolling import Typing

# The most times of keys named as evidence for a claim, and against it.
NAMED = 3

Reasons = tuple[str, ...]


class Verifier(EnrolledPeople):
    """Verifies claimed identities, identifies typists, and watches whether a session stays in the same hands.

    Threads may share a verifier. Readers see the enrolled people before a change or after it.

    Parameters
    ----------
    people : the model that templates are made with: a `PopulationModel` that has been learnt, or a `Detector`
        whose templates can be stored
    at : the operating point, `Targets` or `Costs`; by default one stranger in a hundred is accepted
    least_keystrokes : with fewer keystrokes, the answer is "unsure"
    least_known : with fewer keystrokes of keys that the claimed person's template knows, the answer is
        "unsure" too; with 0, samples of another text are judged as well
    secret : 16 to 64 bytes that key the fingerprints; random by default

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
        detector = PopulationDetector(population=people) if isinstance(people, PopulationModel) else people
        super().__init__(detector, secret or new_secret())
        self.at = at or Targets()
        self.least = least_keystrokes, least_known

    def __repr__(self) -> str:
        """The number of people enrolled, and the detector."""
        ready = "" if self._state.background else ", not calibrated"
        enrolled = len(self._state.people)
        people = "1 person" if enrolled == 1 else f"{enrolled} people"
        return f"<Verifier of {people} with {self.pattern.name}{ready}>"

    @classmethod
    def shipped(cls, at: OperatingPoint | None = None) -> Self:
        """Make a verifier with the population and calibration that come with keydyn; it needs no data."""
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
        """Make a verifier from a calibrated background and people who were enrolled with it.

        `secret` must be the one that keys their fingerprints. This takes microseconds, so a program that
        stores people in a database can make a verifier for each request. Without `learning`, the people do
        not adjust the background: it is used as it is.
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
        """Learn from these people, by default a population, and calibrate by cross-validation over them.

        In each fold a quarter of the people are strangers to a population that is learnt from the others.
        `progress` is called with the number of parts done, out of
        `keydyn.decisions.calibration.background.FOLDS` + 1.
        """
        typed = recorded_samples(samples, sensors)
        learnt = Background.learnt(detector or PopulationDetector(), typed, n_jobs=n_jobs, progress=progress)
        return cls.of(learnt, at, sensors)

    def calibrate(self, samples: Typing, n_jobs: int | None = None, progress: Progress | None = None) -> Self:
        """Calibrate scores with people who are not enrolled and from whom the population was not learnt.

        They become the cohort. All enrolled people are removed and must be enrolled again.
        """
        typed = recorded_samples(samples, self.sensors)
        background = Background.calibrated(self.pattern, typed, True, n_jobs, progress)
        with self._writing:
            self._state = State(background, MappingProxyType({}))
        return self

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        key: bytes | None = None,
        users: Iterable[str] | None = None,
        at: OperatingPoint | None = None,
    ) -> Self:
        """Load a verifier that `save` or `keydyn fit` wrote; only these `users`, if they are named.

        A `ValueError` says what is wrong with the folder, or names a user who is not enrolled.
        """
        found = read_folder(Path(folder), key, users)
        verifier = cls.of(found.background, at, found.manifest.sensors, found.secret, found.people)
        verifier._state = replace(verifier._state, others=MappingProxyType(found.others))
        return verifier

    def update(self, user: str, sample: Typing, confident: float = CONFIDENT) -> Decision:
        """Verify one sample and, if it is accepted with confidence, let the person's template follow it.

        `confident` is the largest false-match rate at which the template is updated. However many updates
        follow, no mean moves far from its enrolled value; `undo` reverts the last update. Copies of a sample
        that led to an update are recognised from then on.
        """
        typed = recorded_samples(sample, self.sensors)
        # Under the lock, the template that accepts is the one that is updated, and of two copies that arrive
        # at the same time one is recognised.
        with self._writing:
            decision = self.verify(user, typed)
            after = self.updated(user, typed, decision, confident)
            if after is not None:
                self._change(user, lambda _: after)
        return decision

    def verify(self, user: str, sample: Typing) -> Decision:
        """Decide whether a sample was typed by the user it is claimed to be from."""
        decisions = self.verify_many(user, sample)
        if len(decisions) != 1:
            raise ValueError(f"verify takes one sample, not {len(decisions)}; verify_many takes several")
        return decisions[0]

    def verify_many(self, user: str, samples: Typing) -> list[Decision]:
        """Decide about each of several samples, as `verify` does about one."""
        state, background = self._ready()
        one = person_of(state, user)
        return self._decisions(background, user, one, recorded_samples(samples, self.sensors))

    def identify(self, sample: Typing) -> Identification:
        """Find the enrolled user who typed one sample, if any of them did.

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
        templates = {user: one.template for user, one in state.people.items()}
        scores = background.scores(templates, typed, state.together())
        each = zip(typed, scores, strict=True)
        return [self._identification(background, state.people, sample, own) for sample, own in each]

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
        return Watch(self.watch_many([user], level), PlaybackCheck(known, self.secret))

    def watch_many(self, users: Sequence[str], level: float | None = None) -> WatchedSessions:
        """Follow many sessions, each in the name of one of these users; one call advances all of them."""
        state, background = self._ready()
        people = [person_of(state, user) for user in users]
        watching = self._watching(background, people) if level is None else self._at_level(level)
        watched = background.watched
        places = [watched.place(user) for user in users]
        return watched_sessions(watched, [one.template for one in people], watching, places)

    def watch_pool(self, sessions: int) -> WatchedSessions:
        """Make room for a number of sessions; `WatchedSessions.restart` begins each in a user's name.

        This needs a population.
        """
        _, background = self._ready()
        anyone = list(nobody(self.pattern)) * sessions
        return watched_sessions(background.watched, anyone, self._watching(background), [-1] * sessions)

    def suspicion(self, user: str, samples: Typing) -> Floats:
        """(N,) suspicion after each key of complete samples, each watched in the user's name.

        It differs from what `watch` finds in two ways: the first interval of a sample is not missing, and
        with a population the evidence of a key is available at the key itself, since the next key is known.
        """
        state, background = self._ready()
        typed = recorded_samples(samples, self.sensors)
        templates = [person_of(state, user).template, *background.watched.beside(user)]
        return suspicion_of(type(self.pattern).score_events_many(templates, typed), typed.sequences.offsets)

    def watching_for(self, user: str) -> Watching:
        """The settings for watching sessions in a user's name, given how much the user enrolled with."""
        state, background = self._ready()
        return self._watching(background, [person_of(state, user)])

    @property
    def watching(self) -> Watching:
        """The settings for watching sessions, with as few false lock-outs as the operating point asks for."""
        return self._watching(self.in_use)

    def hidden_states(self, user: str, samples: Typing) -> Floats:
        """(N, 2) probability that the user was active, or paused, at each key; needs a population."""
        template = self.person(user).template
        if not of_population(template):
            raise ValueError(f"hidden states are those of a population, not of {self.pattern.name}")
        return template.people.predict_proba(template.template_, recorded_samples(samples, self.sensors))

    def log_likelihoods(self, samples: Typing) -> Floats:
        """(n, U) log-likelihood of each sample under the template of each user, in the order of `users`."""
        templates = [one.template for one in self._state.people.values()]
        if not templates:
            raise ValueError("nobody is enrolled")
        typed = recorded_samples(samples, self.sensors)
        return np.ascontiguousarray(type(self.pattern).score_many(templates, typed))

    def _watching(self, background: Background, people: Sequence[Enrolled] = ()) -> Watching:
        """The settings for these people, or for any; how much they enrolled with sets the lock-out level."""
        amounts = [one.keys for one in people] or None
        return self._at_level(background.calibrations.lockout_level(self.at.lockouts_per_hour, amounts))

    def _at_level(self, level: float) -> Watching:
        return Watching(level, alarms=self.at.alarms)

    def _decisions(
        self, background: Background, user: str, one: Enrolled, samples: Samples
    ) -> list[Decision]:
        """Decide for each sample whether this person typed it."""
        scores, terms = background.explained_scores(user, one.template, samples)
        counts = evidence(samples, one.template)
        meanings = background.calibrations.at(one.keys).meanings(scores, calibration_keys(counts))
        answers, offsets = self.at.answers(meanings), samples.sequences.offsets.tolist()
        llr, rates, low, high, _ = (each.tolist() for each in meanings)
        found = []
        for n, sample in enumerate(samples):
            by_hand = typed_in_name_of(one.template, sample)
            (copied,) = copy_evidence(sample, one.fingerprints, self.secret).tolist()
            answer, reasons = self._answer(sample, counts[n], copied, answers[n], by_hand)
            own = None if terms is None else terms[offsets[n] : offsets[n + 1]]
            spoke_for, spoke_against = _loudest(one.template, sample, own)
            found.append(
                Decision(
                    claimed=user,
                    answer=answer,
                    llr=llr[n],
                    false_match_rate=rates[n],
                    interval=(low[n], high[n]),
                    evidence=counts[n],
                    reasons=reasons,
                    spoke_for=spoke_for,
                    spoke_against=spoke_against,
                    score=float(scores[n]),
                    typed=by_hand,
                )
            )
        return found

    def _answer(
        self, sample: Samples, counts: Evidence, copied: float, answer: str, by_hand: Typed
    ) -> tuple[str, Reasons]:
        """Return the answer to a claim and its reasons; `answer` is the one that the score alone gives.

        A sample that was not typed is rejected, and one with too little evidence is unsure. A sample that may
        be forged, but whose keys came in bursts, is not accepted.
        """
        attacks, doubts = not_typed(sample, copied), remarks(sample, counts)
        if by_hand.reason is not None and by_hand.rate <= self.at.alarms and counts.known >= REJECTED_FROM:
            if by_hand.answer == "no":
                attacks.append(by_hand.reason)
            else:
                doubts.insert(0, by_hand.reason)
                answer = UNSURE if answer == ACCEPT else answer
        if attacks:
            return REJECT, (*attacks, *doubts)
        shortage = counts.shortage(*self.least)
        if shortage:
            return UNSURE, (*shortage, *doubts)
        return answer, tuple(doubts)

    def _identification(
        self, background: Background, people: Mapping[str, Enrolled], sample: Samples, scores: Floats
    ) -> Identification:
        users, everyone = list(people), list(people.values())
        enrolled = np.array([one.keys for one in everyone])
        keys = calibration_keys(evidence(sample, everyone[0].template))
        meanings = background.calibrations.meanings(scores, keys, enrolled)
        posterior = posterior_of(meanings.llr)
        order = np.argsort(-meanings.llr, kind="stable").tolist()
        best = order[0]
        first = everyone[best]
        counts = evidence(sample, first.template)[0]
        copied = float(copy_evidence(sample, first.fingerprints, self.secret)[0])
        (by_score,) = self.at.answers(Meanings(*(each[best : best + 1] for each in meanings)))
        by_hand = typed_in_name_of(first.template, sample)
        answer, reasons = self._answer(sample, counts, copied, by_score, by_hand)
        columns = (values[order].tolist() for values in (posterior, meanings.llr, meanings.false_match))
        candidates = tuple(map(Candidate, [users[u] for u in order], *columns))
        nobody = answer != ACCEPT or bool(posterior[-1] >= posterior[best])
        return Identification(candidates, nobody, float(posterior[-1]), counts, reasons, by_hand)


def _loudest(
    template: Detector, sample: Samples, terms: Floats | None
) -> tuple[tuple[KeyEvidence, ...], tuple[KeyEvidence, ...]]:
    """The strongest evidence for a template and against it; none if the detector cannot attribute it."""
    if terms is None or not isinstance(template, PopulationDetector):
        return (), ()
    sides = template.people.strongest(sample, terms, NAMED)
    spoke_for, spoke_against = (tuple(starmap(_spoke, side)) for side in sides)
    return spoke_for, spoke_against


def _spoke(key: str | None, feature: str, nats: float) -> KeyEvidence:
    return KeyEvidence("a key never seen" if key is None else key, feature, nats)
