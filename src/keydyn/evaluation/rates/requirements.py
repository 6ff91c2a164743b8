"""Whether a test shows that an error rate is below a limit, and how many people that takes.

In a test of people only different people are independent, so one attempt of each is counted: if n people each
err in a share of their attempts, one attempt drawn from each gives, on average, as many errors as the sum of
these shares. For that number, rounded up, there is an exact upper bound of the rate (Clopper and Pearson,
1934). A limit is shown if this bound, with 95 % confidence, is not above it. Without any error the bound is
1 − 0.05^(1/n); the rule of three, 3/n, is its approximation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from keydyn.evaluation.rates.confidence import CONFIDENCE
from keydyn.short_repr import short_repr

MET, NOT_MET, NOT_SHOWN = "met", "not met", "cannot be shown"
# The tolerance for shares, quotients of whole numbers that are inexact in their last digits.
ROUNDING = 1e-9
# A rate so close to its limit that more errors than this would be needed is not distinguished from it.
MOST_ERRORS = 10_000


def upper_bound(errors: int, people: int) -> float:
    """The upper 95 % confidence bound of the rate, given the errors in one attempt per person."""
    if people < 1 or not 0 <= errors <= people:
        raise ValueError(f"{errors} errors of {people} people are not possible")
    if errors == people:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(errors + 1, people - errors, CONFIDENCE))


def people_needed(limit: float, rate: float = 0.0) -> int | None:
    """The least number of people to show that a rate is not above the limit, if this rate is observed.

    None if no number is enough: the observed rate is not below the limit, or too close to it.

    Examples
    --------
    >>> from keydyn.evaluation import people_needed
    >>> people_needed(1 / 10_000), people_needed(0.05), people_needed(0.05, rate=0.02)
    (29956, 59, 181)
    """
    if not 0.0 < limit < 1.0:
        raise ValueError(f"a limit on a rate lies between 0 and 1, not {limit}")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a rate lies from 0 to 1, not {rate}")
    if rate >= limit * (1.0 - ROUNDING):
        return None
    from scipy.stats import nbinom

    first = 0
    while first <= MOST_ERRORS:
        errors = np.arange(first, 2 * first + 16)
        # With this number of attempts more errors would be seen, with 95 % probability, at a rate of `limit`.
        enough = nbinom.ppf(CONFIDENCE, errors + 1, limit) + errors + 1
        if rate == 0.0:
            return int(enough[0])
        # From `least` to `most` people, ⌈rate · n⌉ is this number of errors.
        most = np.floor(errors / rate + ROUNDING)
        least = np.floor((errors - 1) / rate + ROUNDING) + 1
        found = np.flatnonzero(np.maximum(enough, least) <= most)
        if len(found):
            return int(max(enough[found[0]], least[found[0]]))
        first = int(errors[-1]) + 1
    return None


@dataclass(frozen=True)
class Shown:
    """The result of testing a limit on an error rate.

    Attributes
    ----------
    outcome : "met", "not met" if the observed rate is above the limit, or "cannot be shown"
    limit, rate : the limit, and the observed rate, a mean over people
    people : the number of people observed; bound : the rate is below this with 95 % confidence
    needed : the number of people to show the limit if the same rate is observed; None if none is enough
    """

    outcome: str
    limit: float
    rate: float
    people: int
    bound: float
    needed: int | None

    __repr__ = short_repr

    def text(self) -> str:
        """The result for a table: "met", "not met", or the number of people needed."""
        if self.outcome != NOT_SHOWN:
            return self.outcome
        needed = "no number is enough at this rate" if self.needed is None else f"{self.needed:,} are needed"
        return f"cannot be shown with {self.people:,} people: {needed}"


def limit_shown(shares: ArrayLike, limit: float) -> Shown:
    """Test a limit with people who err in these shares of their attempts, (n,) from 0 to 1.

    Examples
    --------
    >>> from keydyn.evaluation import limit_shown
    >>> limit_shown([0.0] * 60, 0.05).outcome, limit_shown([0.0, 0.2] * 30, 0.05).outcome
    ('met', 'not met')
    """
    each = np.asarray(shares, dtype=np.float64)
    if each.ndim != 1 or len(each) == 0:
        raise ValueError("there are no people to test the limit with")
    if not ((each >= 0.0) & (each <= 1.0)).all():
        raise ValueError("each person's share of errors must be from 0 to 1")
    rate, people = float(each.mean()), len(each)
    bound = upper_bound(min(people, math.ceil(each.sum() - ROUNDING)), people)
    needed = people_needed(limit, rate)
    outcome = NOT_MET if rate > limit * (1.0 + ROUNDING) else MET if bound <= limit else NOT_SHOWN
    return Shown(outcome, limit, rate, people, bound, needed)
