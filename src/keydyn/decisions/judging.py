"""From a sample and a claim to a decision: the score and its meaning, signs of fraud, too little evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import Meanings
from keydyn.decisions.calibration.operating_point import ACCEPT, REJECT, UNSURE, OperatingPoint
from keydyn.decisions.decision import Candidate, Decision, Evidence, Identification, Spoke, evidence
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.liveness.copies import copy_evidence
from keydyn.decisions.liveness.not_typed import not_typed, remarks
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.population.score.fitted import SideBySide

# Probability that a sample to identify is a stranger's, before it is looked at.
STRANGER = 0.5
# The number of keys named that spoke for a claim, and against it.
NAMED = 3

Spokes = tuple[Spoke, ...]
Reasons = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges samples beside one background, at one operating point."""

    background: Background  # what scores are compared with, and what they mean
    at: OperatingPoint  # where a score becomes an answer
    # The fewest keystrokes, and the fewest of known keys, for an answer other than "unsure"
    least: tuple[int, int]
    secret: bytes  # the key of the fingerprints by which copies are recognised

    def decisions(self, user: str, one: Enrolled, samples: Samples) -> list[Decision]:
        """Whether this person typed each of the samples."""
        scores, terms = self.background.explained_scores(user, one.template, samples)
        counts = evidence(samples, one.template)
        meanings = self.background.calibrations.at(one.keys).meanings(scores, _telling(counts))
        copies = copy_evidence(samples, one.fingerprints, self.secret).tolist()
        answers, ends = self.at.answers(meanings), samples.sequences.offsets.tolist()
        llr, rates, low, high, _ = (each.tolist() for each in meanings)
        found = []
        for n, sample in enumerate(_each(samples)):
            answer, reasons = self._answer(sample, counts[n], copies[n], answers[n])
            own = None if terms is None else terms[ends[n] : ends[n + 1]]
            spoke, rate = _loudest(one.template, sample, own), (rates[n], (low[n], high[n]))
            score = float(scores[n])
            found.append(Decision(user, answer, llr[n], *rate, counts[n], reasons, *spoke, score))
        return found

    def identifications(
        self, people: Mapping[str, Enrolled], samples: Samples, together: SideBySide | None = None
    ) -> list[Identification]:
        """Which of these people typed each of the samples; `together` are their templates, if laid out."""
        templates = {user: one.template for user, one in people.items()}
        scores = self.background.scores(templates, samples, together)
        return [self._identification(people, sample, scores[n]) for n, sample in enumerate(_each(samples))]

    def _answer(self, sample: Samples, counts: Evidence, copied: float, answer: str) -> tuple[str, Reasons]:
        """The answer and its reasons: what was not typed is rejected, and too little is unsure."""
        attacks, doubts = not_typed(sample, copied), remarks(sample, counts)
        if attacks:
            return REJECT, (*attacks, *doubts)
        shortage = counts.shortage(*self.least)
        if shortage:
            return UNSURE, (*shortage, *doubts)
        return answer, tuple(doubts)

    def _identification(
        self, people: Mapping[str, Enrolled], sample: Samples, scores: Floats
    ) -> Identification:
        users, everyone = list(people), list(people.values())
        enrolled = np.array([one.keys for one in everyone])
        keys = _telling(evidence(sample, everyone[0].template))
        meanings = self.background.calibrations.meanings(scores, keys, enrolled)
        posterior = _posterior(meanings.llr)
        order = np.argsort(-meanings.llr, kind="stable").tolist()
        best = order[0]
        first = everyone[best]
        counts = evidence(sample, first.template)[0]
        copied = float(copy_evidence(sample, first.fingerprints, self.secret)[0])
        (said,) = self.at.answers(Meanings(*(each[best : best + 1] for each in meanings)))
        answer, reasons = self._answer(sample, counts, copied, said)
        columns = (values[order].tolist() for values in (posterior, meanings.llr, meanings.false_match))
        candidates = tuple(map(Candidate, [users[u] for u in order], *columns))
        nobody = answer != ACCEPT or bool(posterior[-1] >= posterior[best])
        return Identification(candidates, nobody, float(posterior[-1]), counts, reasons)


def together(found: Sequence[Identification]) -> Identification:
    """One sample's identification among people who were judged in groups, each beside another background."""
    if len(found) == 1:
        return found[0]
    candidates = sorted((one for part in found for one in part.candidates), key=lambda one: -one.llr)
    posterior = _posterior(np.array([one.llr for one in candidates]))
    (first,) = (part for part in found if candidates[0] in part.candidates)
    nobody = first.nobody or bool(posterior[-1] >= posterior[0])
    shares = zip(candidates, posterior[:-1].tolist(), strict=True)
    ranked = tuple(one._replace(probability=share) for one, share in shares)
    return Identification(ranked, nobody, float(posterior[-1]), first.evidence, first.reasons)


def _posterior(llr: Floats) -> Floats:
    """(U + 1,) the probabilities of people with these likelihood ratios, and of a stranger, who is last."""
    # All enrolled people are equally probable before the sample is looked at.
    logs = np.append(llr + np.log((1.0 - STRANGER) / len(llr)), np.log(STRANGER))
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def _telling(counts: list[Evidence]) -> Integers:
    """(n,) keystrokes that tell something: those of keys that the detector knows."""
    return np.array([max(one.known, 1) for one in counts])


def _each(samples: Samples) -> list[Samples]:
    """The samples one by one."""
    return [samples] if len(samples) == 1 else [samples[[n]] for n in range(len(samples))]


def _loudest(template: Detector, sample: Samples, terms: Floats | None) -> tuple[Spokes, Spokes]:
    """What speaks for the template and against it, loudest first; nothing where the detector cannot say."""
    if terms is None or not isinstance(template, PopulationDetector):
        return (), ()
    said = template.people.evidence(sample, terms)
    sides = np.flatnonzero(said["evidence"] > 0)[:NAMED], np.flatnonzero(said["evidence"] < 0)[:NAMED]

    def spoke(row: int) -> Spoke:
        key = said["key"][row]
        name = "a key never seen" if key is None else str(key)
        return Spoke(name, str(said["feature"][row]), float(said["evidence"][row]))

    return tuple(map(spoke, sides[0])), tuple(map(spoke, sides[1]))
