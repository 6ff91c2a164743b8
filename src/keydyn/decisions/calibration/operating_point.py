"""Where a score becomes an answer: error rates that are accepted, or what errors cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.calibration import Calibration

LOCKOUTS_PER_HOUR = 1.0
ACCEPT, REJECT, UNSURE = "accept", "reject", "unsure"
# A rate that was rounded is not above its target.
ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class Targets:
    """Accept where few strangers would score as high, reject where few genuine samples would score as low.

    Attributes
    ----------
    false_match : the largest share of strangers accepted
    false_non_match : the largest share of genuine samples rejected; in between the answer is unsure
    lockouts_per_hour : how often a watched session may be locked although the right person types

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

    def __post_init__(self) -> None:
        """Check that the rates are rates."""
        for name in ("false_match", "false_non_match"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")

    def answers(self, calibration: Calibration, scores: Floats, keys: Integers) -> list[str]:
        """The answer to each claim, given its score and the number of keys of its sample."""
        accepted = calibration.false_match_rates(scores, keys) <= self.false_match * ROUNDING
        below = calibration.false_non_match_rates(scores, keys)
        rejected = ~accepted & (below <= self.false_non_match * ROUNDING)
        answers: list[str] = np.select([accepted, rejected], [ACCEPT, REJECT], UNSURE).tolist()
        return answers


@dataclass(frozen=True)
class Costs:
    """Accept where that is expected to cost less, given how probable a genuine claim is to begin with.

    Attributes
    ----------
    false_match, false_non_match : the cost of each error, in any unit
    prior : probability that a claim is genuine
    lockouts_per_hour : as of `Targets`

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

    def __post_init__(self) -> None:
        """Check that costs are positive and the prior is a probability."""
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

    def answers(self, calibration: Calibration, scores: Floats, keys: Integers) -> list[str]:
        """The answer to each claim, given its score and the number of keys of its sample."""
        ratios = calibration.llr(scores, keys)
        answers: list[str] = np.where(ratios >= self.threshold, ACCEPT, REJECT).tolist()
        return answers


OperatingPoint = Targets | Costs
