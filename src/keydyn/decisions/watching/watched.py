"""How sessions are watched, and what is known after each key.

Two things are followed. The *ratio* says how much more probable the last keys are coming from the claimed
person than from someone else, calibrated, with older keys forgotten: show it, or base other decisions on it.
The *suspicion* is Page's sum (`calibration.sequential`), which notices a change of person soonest: a session
is locked when it rises above the level, and stays locked until it is restarted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.sequential import ALLOWED, KEEP, LEAST
from keydyn.decisions.calibration.trials import open_set_scores
from keydyn.short_repr import short_repr

# The term of a member of the cohort who does not count.
ABSENT = -1e9
# How much of the ratio is left after each key: it is that of the last fifty, roughly.
RATIO_KEEPS = 0.98


def faded_ratios(calibration: Calibration, sums: Floats, keys: Floats) -> Floats:
    """(n,) calibrated ratios of fading sums, (n, 1 + C), and of the number of keys they amount to, (n,)."""
    cohort = sums[:, 1:]
    scores = open_set_scores(sums[:, :1], cohort, keys, cohort <= ABSENT)[:, 0]
    return calibration.llr(scores, np.rint(keys).astype(np.int64))


@dataclass(frozen=True)
class Watching:
    """Settings of watched sessions.

    Attributes
    ----------
    level : suspicion above which a session is locked
    accept : the suspicion restarts when it has fallen to −accept: 0 for Page's sum, Wald's bound for his test
    ratio_keeps : how much of the ratio is left after each key
    keep, least : see `sequential.increments`
    allowed : nats in favour of the claim with every key

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
    allowed: float = ALLOWED

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
    >>> watched = Verifier.shipped().watch_pool(1).update_keystrokes(make_typists(1, 1, "free", 80), [0] * 80)
    >>> watched.trust.shape, bool(watched.locked.any())
    ((80,), False)
    """

    ratio: Floats
    keys: Floats
    suspicion: Floats
    locked: Truths
    pausing: Floats

    __repr__ = short_repr

    @property
    def trust(self) -> Floats:
        """(B,) probability that the claimed person typed the last keys, if both were equally probable before.

        It is 1 / (1 + e^−ratio), and 0.5 before there is a ratio: nothing is known yet.
        """
        # As a hyperbolic tangent nothing overflows.
        trust: Floats = 0.5 + 0.5 * np.tanh(0.5 * np.where(np.isnan(self.ratio), 0.0, self.ratio))
        return trust

    def in_order(self, order: Integers) -> Watched:
        """What was found for rows taken in this order, in the order in which the rows came."""
        place = np.argsort(order)
        return Watched(*(getattr(self, field.name)[place] for field in fields(self)))
