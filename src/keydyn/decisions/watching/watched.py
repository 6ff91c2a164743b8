"""The settings for watching sessions, and the results after each key.

Two quantities are followed. The *ratio* is the calibrated log-likelihood ratio of the last keys, of the
claimed person to someone else, with older keys forgotten: show it, or base other decisions on it. The
*suspicion* is Page's sum (`calibration.sequential`), which notices a change of person soonest: a session is
locked when it rises above the level, and stays locked until it is restarted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, compiled
from keydyn.decisions.calibration.calibration import (
    HIGHEST,
    LOWEST,
    Calibration,
    CalibrationTables,
    insert,
    open_set_score,
    open_set_scores,
    ratio_of,
)
from keydyn.decisions.calibration.sequential import ALLOWED, KEEP, LEAST, accumulate, fade, predict
from keydyn.decisions.decision import ALARMS
from keydyn.decisions.watching.by_hand import Look
from keydyn.short_repr import short_repr

# The term that marks a member of the cohort who does not count.
ABSENT = -1e9
# The share of the ratio that is left after each key; roughly the last fifty keys count.
RATIO_KEEPS = 0.98


def faded_ratios(calibration: Calibration, sums: Floats, keys: Floats) -> Floats:
    """(n,) calibrated ratios from fading sums, (n, 1 + C), and the numbers of keys they amount to, (n,)."""
    cohort = sums[:, 1:]
    scores = open_set_scores(sums[:, :1], cohort, keys, cohort <= ABSENT)[:, 0]
    return calibration.llr(scores, np.rint(keys).astype(np.int64))


class Standing(NamedTuple):
    """The state of n sessions, one row each, with a cohort of C."""

    sums: Floats  # (n, C + 2) fading sums of terms, claimed and cohort, and the number of keys in them
    weights: Floats  # (n, C) of the cohort
    suspicion: Floats  # (n,)
    # (n,) the key at which each session was locked, from 1, or 0; the number of earlier events; the place of
    # the claimed person in the cohort, or −1
    locked_at: Integers
    before: Integers
    left_out: Integers


class Limits(NamedTuple):
    """The settings of `Watching` in the form that the compiled loop takes."""

    level: float
    accept: float
    ratio_keeps: float
    keep: float
    least: float
    allowed: float


@compiled
def watch(
    terms: Floats,
    offsets: Integers,
    standing: Standing,
    limits: Limits,
    tables: CalibrationTables,
    found: Floats,
) -> None:
    """Fill in the results after each event, (4, B): ratio, keys, suspicion, and whether it is locked.

    `terms` (B, 1 + C) are those of concatenated sessions, which begin at `offsets`, (n + 1,).
    """
    B, U = terms.shape
    sums, ordered, steps = np.empty((B, U)), np.empty(U - 1), np.empty(B)
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            for u in range(U):
                # Limited as in the calibration: however improbable a key, its term makes no one absent.
                if not np.isnan(terms[n, u]):
                    terms[n, u] = min(max(terms[n, u], LOWEST), HIGHEST)
            if standing.left_out[q] >= 0:
                terms[n, 1 + standing.left_out[q]] = ABSENT
    fade(terms, offsets, limits.ratio_keeps, standing.sums, sums, found[1])
    predict(terms, offsets, limits.keep, standing.weights, steps)
    for n in range(B):
        # Keys without evidence stay NaN.
        if steps[n] < limits.least:
            steps[n] = limits.least
        steps[n] += limits.allowed
    accumulate(steps.reshape((B, 1)), offsets, limits.accept, standing.suspicion, found[2])
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            found[0, n], keys = np.nan, found[1, n]
            if keys > 0.0:
                count = 0
                for u in range(1, U):
                    if sums[n, u] > ABSENT:
                        insert(sums[n, u], ordered, count)
                        count += 1
                score = open_set_score(sums[n, 0], ordered, count, keys)
                found[0, n] = ratio_of(score, round(keys), tables)
            if standing.locked_at[q] == 0 and found[2, n] > limits.level:
                standing.locked_at[q] = standing.before[q] + n - offsets[q] + 1
            found[3, n] = 1.0 if standing.locked_at[q] > 0 else 0.0


@dataclass(frozen=True)
class Watching:
    """Settings of watched sessions.

    Attributes
    ----------
    level : suspicion above which a session is locked
    accept : the suspicion restarts when it falls to −accept; 0 for Page's sum, Wald's bound for his test
    ratio_keeps : the share of the ratio that is left after each key
    keep, least : see `sequential.increments`
    allowed : nats in favour of the claim with every key
    alarms : sets the share of blocks of a hundred keys, typed by people, that may lock a session as forged;
        with 0 none does

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
    alarms: float = ALARMS

    def __post_init__(self) -> None:
        if not self.level > 0.0:
            raise ValueError(f"level must be above 0, not {self.level}")
        if not 0.0 <= self.alarms < 1.0:
            raise ValueError(f"alarms must lie between 0 and 1, not {self.alarms}")

    @property
    def limits(self) -> Limits:
        """The settings in the form that the compiled loop takes."""
        return Limits(*(float(getattr(self, name)) for name in Limits._fields))


@dataclass(frozen=True, eq=False)
class Watched:
    """The results after each of B events.

    Attributes
    ----------
    ratio : (B,) calibrated log-likelihood ratio of the last keys; NaN before there is a term
    keys : (B,) number of keys that the ratio amounts to
    suspicion : (B,) evidence against the claim
    locked : (B,) whether the session is locked
    pausing : (B,) probability that the typist paused at the key before; NaN if there is none
    looks : judgements whether the blocks that these events completed were typed by hand

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
    looks: tuple[Look, ...] = ()

    __repr__ = short_repr

    @property
    def trust(self) -> Floats:
        """(B,) probability that the claimed person typed the last keys, with a prior of one half.

        It is 1 / (1 + e^−ratio), and 0.5 before there is a ratio.
        """
        # Written as a hyperbolic tangent so that nothing overflows.
        trust: Floats = 0.5 + 0.5 * np.tanh(0.5 * np.where(np.isnan(self.ratio), 0.0, self.ratio))
        return trust

    def forged(self, event: int) -> str | None:
        """The reason why a block that ended with this event locks the session, if it does."""
        return next((one.typed.reason for one in self.looks if one.event == event and one.forged), None)
