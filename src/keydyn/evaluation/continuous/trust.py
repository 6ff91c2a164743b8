"""The penalty-and-reward function: trust that each event lowers or raises.

P. Bours, Continuous keystroke dynamics: a different perspective towards biometric evaluation, *Information
Security Technical Report* 17 (2012), in the smooth form of S. Mondal and P. Bours, A computational approach
to the continuous authentication biometric system, *Information Sciences* 304 (2015). Trust begins at 100
and stays between 0 and 100; an event with score s changes it by

    Δ(s) = min(−D + D (1 + 1/C) / (1/C + exp(−(s − A)/B)), C),

which is 0 at s = A, −D at worst and C at best. The score of an event is the share of other templates that the
claimed one beats, 1 − rank/(U − 1): 1 at rank 0, and a half on average if the claim carries no information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.evaluation.continuous.penalty import Ranks

HIGHEST = 100.0


@dataclass(frozen=True)
class TrustSettings:
    """The parameters of Δ. The defaults are round numbers chosen by reasoning, not tuned on any samples.

    Attributes
    ----------
    turning : A, the score that changes nothing; it is above a half, the average score of a claim that carries
        no information, so that trust in a stranger falls
    width : B, how slowly penalty turns into reward around A
    reward : C, the most that an event can add
    penalty : D, the most that an event can take

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation.continuous.trust import TrustSettings
    >>> settings = TrustSettings(turning=0.6)
    >>> change = settings.change(np.array([0.0, 0.6, 1.0]))  # of the worst, a neutral and the best score
    >>> np.sign(change.round(6)).astype(int).tolist()
    [-1, 0, 1]
    """

    turning: float = 0.6
    width: float = 0.1
    reward: float = 1.0
    penalty: float = 1.0

    def __post_init__(self) -> None:
        for name in ("width", "reward", "penalty"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a number above 0, not {getattr(self, name)}")
        if not 0.0 < self.turning < 1.0:
            raise ValueError(f"turning must lie between 0 and 1, not {self.turning}")

    def change(self, scores: Floats) -> Floats:
        """Δ of each score; NaN where there is none."""
        inverse = 1.0 / self.reward
        change: Floats = (self.turning - np.ascontiguousarray(scores)) / self.width
        # Above 700 exp would overflow; the penalty is at its limit long before. The array is large, so all
        # steps share it.
        np.exp(np.minimum(change, 700.0, out=change), out=change)
        change += inverse
        np.divide(self.penalty * (1.0 + inverse), change, out=change)
        change -= self.penalty
        return np.minimum(change, self.reward, out=change)


def beaten(event_ranks: Ranks) -> Floats:
    """The share of other templates that each one beats at each event, (N, U); ties count half."""
    n_templates = (~np.isnan(event_ranks)).sum(axis=1, keepdims=True)
    if (n_templates < 2).any():
        raise ValueError("trust by rank needs two templates or more: with one there is nobody to beat")
    share: Floats = 1.0 - np.asarray(event_ranks, dtype=np.float64) / (n_templates - 1)
    return share


def trust(event_ranks: Ranks, offsets: Integers, settings: TrustSettings | None = None) -> Floats:
    """The trust in each template's claim after every event, (N, U); every sample begins with full trust."""
    changes = (settings or TrustSettings()).change(beaten(event_ranks))
    level = np.empty_like(changes)
    trust_walk(changes, offsets, level)
    return level


@compiled
def moved(level: float, change: float) -> float:
    """Trust after a change, kept between 0 and 100."""
    return min(max(level + change, 0.0), HIGHEST)


@compiled
def trust_walk(changes: Floats, offsets: Integers, level: Floats) -> None:
    """Trust after every event of every sample, into `level`."""
    n_templates = changes.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for u in range(n_templates):
                before = HIGHEST if n == offsets[s] else level[n - 1, u]
                change = changes[n, u]
                # min and max would turn a missing score into a number.
                level[n, u] = change if np.isnan(change) else moved(before, change)
