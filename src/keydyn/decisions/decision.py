"""Decisions about samples and the reasons for them, and the operating point at which they are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.detectors.detector import Detector
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

if TYPE_CHECKING:
    from keydyn.decisions.calibration.calibration import Meanings

ACCEPT, REJECT, UNSURE = "accept", "reject", "unsure"
LOCKOUTS_PER_HOUR = 1.0
# The share of people's samples that are rejected as forged.
ALARMS = 0.01
# A rate that was rounded is not above its target.
ROUNDING = 1.0 + 1e-9
# Probability that a sample to identify is a stranger's, before it is looked at.
STRANGER = 0.5
LEAST_KEYSTROKES = 6
LEAST_KNOWN = 4
# With fewer of its pairs of keys typed at enrolment, a sample is of another text. In the paper's datasets the
# share is 0.5 or more for samples of the same kind of text, and at most 0.2 for digits under essays' models.
LEAST_FAMILIAR = 0.25
# Samples with fewer pairs are too short to tell.
LEAST_PAIRS = 8


@dataclass(frozen=True)
class Targets:
    """Accept where few strangers would score as high, reject where few genuine samples would score as low.

    Attributes
    ----------
    false_match : the largest share of strangers accepted
    false_non_match : the largest share of genuine samples rejected; in between the answer is unsure
    lockouts_per_hour : how often a watched session may be locked although the right person types
    alarms : the share of people's samples that may be rejected as forged; 0 to reject none as such

    Examples
    --------
    >>> from keydyn.decisions import Targets, Verifier
    >>> strict = Verifier.shipped(at=Targets(false_match=0.001))
    >>> strict.at.false_match
    0.001
    """

    false_match: float = 0.01
    false_non_match: float = 0.01
    lockouts_per_hour: float = LOCKOUTS_PER_HOUR
    alarms: float = ALARMS

    def __post_init__(self) -> None:
        """Check that the rates are rates."""
        _check_alarms(self.alarms)
        for name in ("false_match", "false_non_match"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")

    def answers(self, scores: Meanings) -> list[str]:
        """The answer to each claim, given what its score means."""
        rates = zip(scores.false_match.tolist(), scores.false_non_match.tolist(), strict=True)
        most, least = self.false_match * ROUNDING, self.false_non_match * ROUNDING
        return [ACCEPT if above <= most else REJECT if below <= least else UNSURE for above, below in rates]


@dataclass(frozen=True)
class Costs:
    """Accept where that is expected to cost less, given how probable a genuine claim is to begin with.

    Attributes
    ----------
    false_match, false_non_match : the cost of each error, in any unit
    prior : probability that a claim is genuine
    lockouts_per_hour, alarms : as of `Targets`

    Examples
    --------
    >>> from keydyn.decisions import Costs, Verifier
    >>> costs = Costs(false_match=50.0, false_non_match=1.0, prior=0.99)
    >>> round(costs.threshold, 3)  # ln 50 − ln 99
    -0.683
    >>> verifier = Verifier.shipped(at=costs)
    """

    false_match: float
    false_non_match: float
    prior: float = 0.5
    lockouts_per_hour: float = LOCKOUTS_PER_HOUR
    alarms: float = ALARMS

    def __post_init__(self) -> None:
        """Check that costs are positive and the prior is a probability."""
        _check_alarms(self.alarms)
        for name in ("false_match", "false_non_match"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f"the cost {name} must be positive, not {getattr(self, name)}")
        if not 0.0 < self.prior < 1.0:
            raise ValueError(f"prior must lie between 0 and 1, not {self.prior}")

    @property
    def threshold(self) -> float:
        """The log-likelihood ratio from which accepting costs less."""
        odds = self.prior / (1.0 - self.prior)
        return math.log(self.false_match / self.false_non_match) - math.log(odds)

    def answers(self, scores: Meanings) -> list[str]:
        """The answer to each claim, given what its score means."""
        return [ACCEPT if ratio >= self.threshold else REJECT for ratio in scores.llr.tolist()]


OperatingPoint = Targets | Costs


def _check_alarms(alarms: float) -> None:
    if not 0.0 <= alarms < 1.0:
        raise ValueError(f"alarms must be from 0 to below 1, not {alarms}")


class Typed(NamedTuple):
    """Whether a hand typed a sample.

    Attributes
    ----------
    answer : "yes", "no" or "unsure"
    llr : natural logarithm of the likelihood ratio of typed against forged
    rate : the share of people's samples of this length that have as low a ratio
    reason : in words, what speaks against a hand, if the answer is "no"; why a low ratio is no proof, if keys
        came in bursts and the answer is "unsure"

    Examples
    --------
    >>> from keydyn.decisions import typed
    >>> from keydyn.population import PopulationModel
    >>> people = PopulationModel.shipped()
    >>> typed(people.retyped(people.draw(1, 0), 1, 100, 0)).answer
    'yes'
    """

    answer: Literal["yes", "no", "unsure"] = "unsure"
    llr: float = 0.0
    rate: float = 1.0
    reason: str | None = None


NOT_JUDGED = Typed()


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
    typed : whether a hand typed it at all

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
    typed: Typed = NOT_JUDGED

    __repr__ = short_repr

    @property
    def accepted(self) -> bool:
        """Whether the claim is believed."""
        return self.answer == ACCEPT


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
    evidence, reasons, typed : as of a decision, for the first candidate

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
    typed: Typed = NOT_JUDGED

    __repr__ = short_repr

    @property
    def user(self) -> str | None:
        """The user who typed it; None if none of them did."""
        return None if self.nobody else self.candidates[0].user


def together(found: Sequence[Identification]) -> Identification:
    """One sample's identification among people who were judged in groups, each beside another background."""
    if len(found) == 1:
        return found[0]
    candidates = sorted((one for part in found for one in part.candidates), key=lambda one: -one.llr)
    posterior = posterior_of(np.array([one.llr for one in candidates]))
    (first,) = (part for part in found if candidates[0] in part.candidates)
    nobody = first.nobody or bool(posterior[-1] >= posterior[0])
    shares = zip(candidates, posterior[:-1].tolist(), strict=True)
    ranked = tuple(one._replace(probability=share) for one, share in shares)
    return Identification(ranked, nobody, float(posterior[-1]), first.evidence, first.reasons, first.typed)


def posterior_of(llr: Floats) -> Floats:
    """(U + 1,) the probabilities of people with these likelihood ratios, and of a stranger, who is last."""
    # All enrolled people are equally probable before the sample is looked at.
    logs = np.append(llr + np.log((1.0 - STRANGER) / len(llr)), np.log(STRANGER))
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


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
        "typed": decision.typed.answer,
        "typed_llr": decision.typed.llr,
        "typed_false_alarm_rate": decision.typed.rate,
    }
