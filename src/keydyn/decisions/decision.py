"""Decisions about samples, and the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keydyn.decisions.evidence import Evidence


@dataclass(frozen=True)
class Spoke:
    """A key and one of its times, and by how many nats it spoke for a claim; against it, if negative."""

    key: str
    feature: str
    nats: float

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

    @property
    def accepted(self) -> bool:
        """Whether the claim is believed."""
        return self.answer == "accept"


@dataclass(frozen=True)
class Candidate:
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
