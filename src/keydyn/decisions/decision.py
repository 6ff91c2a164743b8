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
# The share of samples typed by people that may be rejected as forged.
ALARMS = 0.01
# A rate that exceeds its target only by rounding does not count as above it.
ROUNDING = 1.0 + 1e-9
# Prior probability that a sample to identify is a stranger's.
STRANGER = 0.5
LEAST_KEYSTROKES = 6
LEAST_KNOWN = 4
# A sample is of another text if less than this share of its pairs of keys was typed at enrolment. In the
# paper's datasets the share is at least 0.5 for the same kind of text, and at most 0.2 for digits under
# essays' models.
LEAST_FAMILIAR = 0.25
# Samples with fewer pairs are too short to tell whether the text is another one.
LEAST_PAIRS = 8


@dataclass(frozen=True)
class Targets:
    """An operating point set by the largest error rates that are tolerated.

    A claim is accepted if few strangers would score as high, and rejected if few genuine samples would score
    as low; otherwise the answer is unsure.

    Attributes
    ----------
    false_match : the largest share of strangers accepted
    false_non_match : the largest share of genuine samples rejected
    lockouts_per_hour : how often a watched session may be locked although the right person types
    alarms : the largest share of samples typed by people that may be rejected as forged; with 0, none is

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
        """Check that each rate is in its range."""
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
    """An operating point set by the costs of errors: a claim is accepted if that is expected to cost less.

    Attributes
    ----------
    false_match, false_non_match : the cost of each error, in any unit
    prior : probability that a claim is genuine, before the sample is looked at
    lockouts_per_hour, alarms : as in `Targets`

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
        """The log-likelihood ratio from which accepting is expected to cost less than rejecting."""
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
    """The judgement whether a sample was typed by hand.

    Attributes
    ----------
    answer : "yes", "no" or "unsure"
    llr : natural logarithm of the likelihood ratio of typed against forged
    rate : the share of samples of this length typed by people that have a ratio as low as this
    reason : a phrase that says what speaks against typing by hand, if the answer is "no"; or why a low ratio
        is no proof, if keys came in bursts and the answer is "unsure"

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
    """The amount of evidence in a sample.

    `keystrokes` counts the keystrokes with a time to score, and `known` those of them whose keys the model
    knows; `pairs` counts the pairs of consecutive keys, and `familiar` those that were typed at enrolment.

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
        """Whether the text of the sample differs from what was typed at enrolment."""
        return self.pairs >= LEAST_PAIRS and self.familiar < LEAST_FAMILIAR * self.pairs

    def shortage(self, least_keystrokes: int = LEAST_KEYSTROKES, least_known: int = LEAST_KNOWN) -> list[str]:
        """Reasons why the evidence does not suffice for a decision; an empty list if it does."""
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
    """Count the evidence in each sample for a comparison with this template."""
    starts = samples.sequences.offsets[:-1]
    counts = np.add.reduceat(evidence_by_key(samples, template).T, starts, axis=1)
    return [Evidence(*each) for each in counts.T.tolist()]


def evidence_by_key(samples: Samples, template: Detector) -> Integers:
    """The contribution of each keystroke to the four counts of `Evidence`, (N, 4)."""
    sequences = samples.sequences
    scored = np.isfinite(sequences.X).any(axis=1)
    counts: Integers = np.zeros((4, sequences.n_events), dtype=np.int64)
    counts[0] = counts[1] = scored
    recognised = template.recognised(samples)
    if recognised is not None:
        # A detector that ignores event types recognises nothing: all its keys count, and pairs mean nothing.
        known, counts[3] = recognised
        counts[1] &= known
        counts[2] = 1
        counts[2, sequences.offsets[:-1]] = 0
    return counts.T


def _counted(n: int) -> str:
    return f"{n} keystroke{'' if n == 1 else 's'}"


def calibration_keys(counts: Sequence[Evidence]) -> Integers:
    """(n,) numbers of keys by which the scores of samples are calibrated: those of known keys, at least 1."""
    return np.array([max(one.known, 1) for one in counts], dtype=np.int64)


@dataclass(frozen=True)
class KeyEvidence:
    """The evidence for a claim, in nats, from one time of a key; negative if it speaks against the claim."""

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
    claimed : the user whom the typist claims to be
    answer : "accept", "reject" or "unsure"; unsure counts as not accepted
    llr : natural logarithm of the calibrated likelihood ratio; above 0 the sample speaks for the claim
    false_match_rate : the share of strangers who would score as high
    interval : its 95 % interval over people
    evidence : the amount of evidence in the sample
    reasons : phrases that say why the answer is not based on the score alone, or why the score is in doubt
    spoke_for, spoke_against : the times of keys that spoke most strongly, if the detector can name them
    score : the score before calibration
    typed : the judgement whether the sample was typed by hand at all

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
    spoke_for: tuple[KeyEvidence, ...]
    spoke_against: tuple[KeyEvidence, ...]
    score: float
    typed: Typed = NOT_JUDGED

    __repr__ = short_repr

    @property
    def accepted(self) -> bool:
        """Whether the answer is "accept"."""
        return self.answer == ACCEPT


class Candidate(NamedTuple):
    """An enrolled user who may have typed a sample."""

    user: str
    probability: float
    llr: float
    false_match_rate: float


@dataclass(frozen=True)
class Identification:
    """The answer to the question of which enrolled user typed a sample.

    Attributes
    ----------
    candidates : the enrolled people, most probable first
    nobody : whether the answer is that none of them typed it
    nobody_probability : the probability that none of them typed it
    evidence, reasons, typed : as in `Decision`, for the first candidate

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
    """Combine identifications of one sample among groups of people, each made with its own background."""
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
    """(U + 1,) posterior probabilities of people with these log-likelihood ratios, then of a stranger."""
    # All enrolled people are equally probable a priori.
    logs = np.append(llr + np.log((1.0 - STRANGER) / len(llr)), np.log(STRANGER))
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def as_json(decision: Decision) -> dict[str, Any]:
    """The decision as a dictionary that can be written as JSON."""
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
