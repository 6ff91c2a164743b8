"""How sessions are watched, and what is known after each key.

Two things are followed. The *ratio* says how much more probable the last keys are coming from the claimed
person than from someone else, calibrated, with older keys forgotten: show it, or base other decisions on it.
The *suspicion* is Page's sum (`calibration.sequential`), which notices a change of person soonest: a session
is locked when it rises above the level, and stays locked until it is restarted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.sequential import KEEP, LEAST
from keydyn.decisions.calibration.trials import open_set_scores

# From sums of log-likelihoods, (n, 1 + C), the claimed person's first, and the number of keys they amount to,
# (n,), to calibrated log-likelihood ratios (n,).
Ratios = Callable[[Floats, Floats], Floats]
# The term of a member of the cohort who does not count.
ABSENT = -1e9
# How much of the ratio is left after each key: it is that of the last fifty, roughly.
RATIO_KEEPS = 0.98


def calibrated(calibration: Calibration) -> Ratios:
    """The calibrated ratios of fading sums: those of open-set scores after as many keys as they amount to."""

    def ratios(sums: Floats, keys: Floats) -> Floats:
        cohort = sums[:, 1:]
        scores = open_set_scores(sums[:, :1], cohort, cohort <= ABSENT)[:, 0]
        return calibration.llr(scores, np.rint(keys).astype(np.int64))

    return ratios


@dataclass(frozen=True)
class Watching:
    """Settings of watched sessions.

    Attributes
    ----------
    level : suspicion above which a session is locked
    accept : the suspicion restarts when it has fallen to −accept: 0 for Page's sum, Wald's bound for his test
    ratio_keeps : how much of the ratio is left after each key
    keep, least : see `sequential.increments`

    Examples
    --------
    >>> from keydyn.decisions import Targets, Verifier
    >>> often = Verifier.shipped(at=Targets(lockouts_per_hour=5.0)).watching
    >>> rarely = Verifier.shipped(at=Targets(lockouts_per_hour=0.5)).watching
    >>> often.level < rarely.level
    True
    """

    level: float
    accept: float = 0.0
    ratio_keeps: float = RATIO_KEEPS
    keep: float = KEEP
    least: float = LEAST

    def __post_init__(self) -> None:
        if not self.level > 0.0:
            raise ValueError(f"level must be above 0, not {self.level}")


@dataclass(frozen=True, eq=False)
class Watched:
    """What is known after each of B events.

    Attributes
    ----------
    ratio : (B,) calibrated log-likelihood ratio of the last keys; NaN before there is a term
    keys : (B,) how many keys it amounts to
    suspicion : (B,) evidence against the claim
    locked : (B,) whether the session is locked
    pausing : (B,) probability that the typist paused at the key before; NaN if there is none

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier
    >>> typing = make_typists(1, 6, "free", 80)
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrol("ada", typing[typing["session"] < 5])
    >>> watched = verifier.watch("ada").update(typing[typing["session"] == 5])
    >>> watched.trust.shape, bool(watched.trust[-1] > 0.5), bool(watched.locked.any())
    ((80,), True, False)
    """

    ratio: Floats
    keys: Floats
    suspicion: Floats
    locked: Truths
    pausing: Floats

    @property
    def trust(self) -> Floats:
        """(B,) probability that the claimed person typed the last keys, if both were equally probable before.

        It is 1 / (1 + e^−ratio), and 0.5 before there is a ratio: nothing is known yet.
        """
        trust: Floats = expit(np.where(np.isnan(self.ratio), 0.0, self.ratio))
        return trust

    def in_order(self, order: Integers) -> Watched:
        """What was found for rows taken in this order, in the order in which the rows came."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return Watched(
            self.ratio[place],
            self.keys[place],
            self.suspicion[place],
            self.locked[place],
            self.pausing[place],
        )
