"""Decisions about samples and the reasons for them; too little evidence is an answer too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Integers
from keydyn.detectors.detector import Detector
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

LEAST_KEYSTROKES = 6
LEAST_KNOWN = 4
# With fewer of its pairs of keys typed at enrolment, a sample is of another text. In the paper's datasets the
# share is 0.5 or more for samples of the same kind of text, and at most 0.2 for digits under essays' models.
LEAST_FAMILIAR = 0.25
# Samples with fewer pairs are too short to tell.
LEAST_PAIRS = 8


@dataclass(frozen=True)
class Evidence:
    """What there is of a sample: keystrokes with a time to score, and those of keys that the model knows.

    `pairs` are the pairs of a key and the next, and `familiar` those that were typed at enrolment.

    Examples
    --------
    >>> from keydyn.decisions import Evidence
    >>> Evidence(keystrokes=80, known=78).shortage()
    []
    >>> len(Evidence(keystrokes=3, known=3).shortage()) > 0
    True
    """

    keystrokes: int
    known: int
    pairs: int = 0
    familiar: int = 0

    @property
    def other_text(self) -> bool:
        """Whether the sample is of another text than the model."""
        return self.pairs >= LEAST_PAIRS and self.familiar < LEAST_FAMILIAR * self.pairs

    def shortage(self, least_keystrokes: int = LEAST_KEYSTROKES, least_known: int = LEAST_KNOWN) -> list[str]:
        """What is too little for a decision, in words; nothing if there is enough."""
        reasons = []
        if self.keystrokes < least_keystrokes:
            reasons.append(f"{_counted(self.keystrokes)}, fewer than {least_keystrokes}")
        if self.known < least_known:
            reasons.append(f"{_counted(self.known)} of known keys, fewer than {least_known}")
        elif least_known > 0 and self.other_text:
            reasons.append(
                f"a different text than at enrolment: {self.familiar} of its {self.pairs} pairs of keys "
                "were typed then"
            )
        return reasons


def evidence(samples: Samples, template: Detector) -> list[Evidence]:
    """The evidence in each sample, for or against the person whose template it is."""
    starts = samples.sequences.offsets[:-1]
    counts = np.add.reduceat(evidence_by_key(samples, template), starts, axis=0)
    return [Evidence(*each) for each in counts.tolist()]


def evidence_by_key(samples: Samples, template: Detector) -> Integers:
    """What each keystroke adds to the counts of `Evidence`, (N, 4)."""
    sequences = samples.sequences
    scored = np.isfinite(sequences.X).any(axis=1)
    counts: Integers = np.zeros((sequences.n_events, 4), dtype=np.int64)
    counts[:, 0] = counts[:, 1] = scored
    recognised = template.recognised(samples)
    if recognised is not None:
        # Without event types every key is as good as any other, and pairs mean nothing.
        known, counts[:, 3] = recognised
        counts[:, 1] &= known
        counts[:, 2] = 1
        counts[sequences.offsets[:-1], 2] = 0
    return counts


def _counted(n: int) -> str:
    return f"{n} keystroke{'' if n == 1 else 's'}"


@dataclass(frozen=True)
class Spoke:
    """A key and one of its times, and by how many nats it spoke for a claim; against it, if negative."""

    key: str
    feature: str
    nats: float

    __repr__ = short_repr

    def __str__(self) -> str:
        times = {"tau": "interval before", "duration": "hold of"}.get(self.feature, f"{self.feature} of")
        return f"{times} {self.key} ({self.nats:+.1f})"


@dataclass(frozen=True)
class Decision:
    """The answer to a claim.

    Attributes
    ----------
    claimed : who the typist is said to be
    answer : "accept", "reject" or "unsure"; unsure counts as not accepted
    llr : natural logarithm of the calibrated likelihood ratio; above 0 the sample speaks for the claim
    false_match_rate : the share of strangers who would score as high
    interval : its 95 % interval over people
    evidence : how much of the sample counts
    reasons : in words, why the answer is not the score's alone, or why the score deserves doubt
    spoke_for, spoke_against : what spoke loudest, if the detector can say so
    score : what was calibrated

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(1, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[typing["session"] < 5])
    >>> decision = verifier.verify("ada", typing[typing["session"] == 5])
    >>> decision.accepted, decision.llr > 0.0, decision.false_match_rate < 0.01
    (True, True, True)
    >>> decision.evidence.keystrokes, decision.reasons
    (80, ())
    """

    claimed: str
    answer: str
    llr: float
    false_match_rate: float
    interval: tuple[float, float]
    evidence: Evidence
    reasons: tuple[str, ...]
    spoke_for: tuple[Spoke, ...]
    spoke_against: tuple[Spoke, ...]
    score: float

    __repr__ = short_repr

    @property
    def accepted(self) -> bool:
        """Whether the claim is believed."""
        return self.answer == "accept"


class Candidate(NamedTuple):
    """An enrolled user who may have typed a sample."""

    user: str
    probability: float
    llr: float
    false_match_rate: float


@dataclass(frozen=True)
class Identification:
    """Who typed a sample.

    Attributes
    ----------
    candidates : the enrolled people, most probable first
    nobody : whether the answer is that none of them did
    nobody_probability : how probable that is
    evidence, reasons : as of a decision, for the first candidate

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(2, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[(typing["user"] == 0) & (typing["session"] < 5)])
    >>> found = verifier.identify(typing[(typing["user"] == 1) & (typing["session"] == 5)])
    >>> found.nobody, found.user, found.candidates[0].user
    (True, None, 'ada')
    """

    candidates: tuple[Candidate, ...]
    nobody: bool
    nobody_probability: float
    evidence: Evidence
    reasons: tuple[str, ...]

    __repr__ = short_repr

    @property
    def user(self) -> str | None:
        """The user who typed it; None if none of them did."""
        return None if self.nobody else self.candidates[0].user


def as_json(decision: Decision) -> dict[str, Any]:
    """The fields of a decision that programs read."""
    counts = decision.evidence
    return {
        "claimed": decision.claimed,
        "answer": decision.answer,
        "llr": decision.llr,
        "false_match_rate": decision.false_match_rate,
        "false_match_rate_interval": list(decision.interval),
        "evidence": {
            "keystrokes": counts.keystrokes,
            "known_keystrokes": counts.known,
            "pairs": counts.pairs,
            "known_pairs": counts.familiar,
            "spoke_for": [vars(one) for one in decision.spoke_for],
            "spoke_against": [vars(one) for one in decision.spoke_against],
        },
        "reasons": list(decision.reasons),
    }
