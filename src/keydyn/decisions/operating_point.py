"""Where a score becomes an answer: error rates that are accepted, or what errors cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from keydyn.decisions.calibration import Calibration

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
    """

    false_match: float = 0.01
    false_non_match: float = 0.01

    def __post_init__(self) -> None:
        """Check that the rates are rates."""
        for name in ("false_match", "false_non_match"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")

    def answer(self, calibration: Calibration, score: float, keys: int) -> str:
        """The answer to a claim with this score, of a sample with so many keys."""
        if calibration.false_match_rate(score, keys).value <= self.false_match * ROUNDING:
            return ACCEPT
        if calibration.false_non_match_rate(score, keys) <= self.false_non_match * ROUNDING:
            return REJECT
        return UNSURE


@dataclass(frozen=True)
class Costs:
    """Accept where that is expected to cost less, given how probable a genuine claim is to begin with.

    Attributes
    ----------
    false_match, false_non_match : the cost of each error, in any unit
    prior : probability that a claim is genuine
    """

    false_match: float
    false_non_match: float
    prior: float = 0.5

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

    def answer(self, calibration: Calibration, score: float, keys: int) -> str:
        """The answer to a claim with this score, of a sample with so many keys."""
        return ACCEPT if calibration.ratio(score, keys) >= self.threshold else REJECT


OperatingPoint = Targets | Costs
