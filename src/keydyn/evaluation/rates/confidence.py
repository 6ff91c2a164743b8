"""The uncertainty of figures: intervals by bootstrap over users, and the rule of three.

Samples of one person resemble each other, so people are drawn, not samples (ISO/IEC 19795-1 asks for
intervals that respect this). The rule of three: if none of n independent trials went wrong, the rate is below
3/n with 95 % confidence. So a rate of p needs 3/p trials; with fewer it cannot be distinguished from 0.

A trial is a sample that a person typed, counted once, even if it was compared with several templates: a
further comparison adds no information about the person who typed it. Samples of one person are not perfectly
independent either; the rule is a necessary condition, and the interval accounts for the dependence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers, Truths
from keydyn.short_repr import short_repr

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = 1000
CONFIDENCE = 0.95
# Errors to be observed for a precision of ±30 % (Doddington and others, Speech Communication 31, 2000).
THIRTY = 30


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval over people.

    Attributes
    ----------
    value : the figure; None if it cannot be given, infinite if it is beyond what was observed
    low, high : the interval; None if there is none, as with a single user
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The figure and the ends of its interval; NaN for a missing one."""
        value, low, high = (math.nan if one is None else one for one in (self.value, self.low, self.high))
        return value, low, high

    def times(self, factor: float) -> Estimate:
        """The figure and its interval multiplied by a factor, to change the unit."""
        return Estimate(*(factor * one for one in self.numbers))

    def columns(self, name: str) -> dict[str, float | None]:
        """The figure under this name, and its interval, as columns of a CSV file."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def text(self, digits: int = 0) -> str:
        """The figure for tables: "31 (24–44)", or without brackets if there is no interval."""
        value, low, high = (f"{one:.{digits}f}" if one < math.inf else "∞" for one in self.numbers)
        return value if self.low is None or self.high is None else f"{value} ({low}–{high})"


@dataclass(frozen=True)
class Rate(Estimate):
    """A rate, or the reason why there is none.

    Attributes
    ----------
    value : the rate; None if there are too few trials to support it
    low, high : the 95 % interval; None if there is none, as with a single user
    trials : the number of independent trials
    needed : the number that the rule of three asks for, if they were too few
    std : standard deviation over users; None for a rate of all users together

    Examples
    --------
    >>> from keydyn.evaluation import Rate
    >>> Rate(0.042, 0.031, 0.055, trials=2000).text()
    '4.2 % (3.1–5.5)'
    >>> Rate(0.0, 0.0, 0.0, trials=1000).text()  # no error was seen
    '< 0.3 %'
    """

    trials: int = 0
    needed: int = 0
    std: float | None = None

    __repr__ = short_repr

    @property
    def supported(self) -> bool:
        """Whether there are enough trials to support a rate."""
        return self.value is not None

    @property
    def below(self) -> float | None:
        """The upper bound of the rate if no error was observed, 3 / trials; otherwise None."""
        return min(1.0, 3.0 / self.trials) if self.value == 0.0 and self.trials else None

    @property
    def above(self) -> float | None:
        """The lower bound of the rate if all trials were counted, 1 − 3 / trials; otherwise None."""
        return max(0.0, 1.0 - 3.0 / self.trials) if self.value == 1.0 and self.trials else None

    @property
    def errors(self) -> int | None:
        """The approximate number of trials counted as errors; None if there is no rate."""
        return None if self.value is None else round(self.value * self.trials)

    @property
    def precise(self) -> bool:
        """The rule of thirty: with 30 errors or more the rate lies within ±30 % with 90 % confidence."""
        return self.errors is not None and self.errors >= THIRTY

    def figure(self, digits: int = 1) -> str:
        """The rate without interval: "4.2 %", "< 0.3 %", "> 99.7 %" or "not supported by 240 trials"."""
        if self.value is None:
            return f"not supported by {self.trials:,} trials"
        if self.below is not None:
            return f"< {percentage(self.below, digits, upwards=True)} %"
        if self.above is not None:
            # The difference from 100 % is rounded upwards, so that the bound is rounded downwards.
            missing = float(percentage(1.0 - self.above, digits, upwards=True))
            return f"> {100.0 - missing:.{digits}f} %"
        return f"{percentage(self.value, digits)} %"

    def text(self, digits: int = 1) -> str:
        """The rate for tables: "4.2 % (3.1–5.5)", or `figure` if there is no interval."""
        bounded = self.value is None or self.below is not None or self.above is not None
        if bounded or self.low is None or self.high is None:
            return self.figure(digits)
        return f"{self.figure(digits)} ({percentage(self.low, digits)}–{percentage(self.high, digits)})"


def unsupported(trials: int, needed: int) -> Rate:
    """A rate without a value, because the rule of three asks for more trials than there are."""
    return Rate(None, None, None, trials, needed)


def percentage(rate: float, digits: int, upwards: bool = False) -> str:
    """A rate in per cent, without the sign; `upwards` rounds up, for upper bounds."""
    if upwards:
        # A small number is subtracted, so that 0.3 stored as 0.30000000000000004 stays 0.3.
        unit = 10.0**digits
        return f"{math.ceil(100.0 * rate * unit - 1e-9) / unit:.{digits}f}"
    return f"{100.0 * rate:.{digits}f}"


def trials_needed(rate: float) -> int:
    """The number of independent trials that a rate p needs by the rule of three, 3/p; 0 is refused.

    Examples
    --------
    >>> from keydyn.evaluation import trials_needed
    >>> trials_needed(0.001)
    3000
    """
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"a rate must be above 0 and at most 1, not {rate}")
    return math.ceil(3.0 / rate - 1e-9)


def mean_estimate(values: ArrayLike, seed: int = 0) -> Estimate:
    """The mean of one figure per user, (U,), with its interval, which has no width for a single user."""
    figures = np.asarray(values, dtype=np.float64)
    low, high = bootstrap_mean(figures[:, None], seed=seed)
    return Estimate(float(figures.mean()), float(low[0]), float(high[0]))


def mean_rate(values: Floats, trials: int, replicates: int = REPLICATES, seed: int = 0) -> Rate:
    """The mean of the users' rates (U,) with its interval, and their standard deviation (divisor U − 1)."""
    low, high = bootstrap_mean(values[:, None], replicates, seed)
    mean = float(values.mean())
    if len(values) == 1:
        return Rate(mean, None, None, trials)
    return Rate(mean, float(low[0]), float(high[0]), trials, std=float(values.std(ddof=1)))


def bootstrap_mean(values: Floats, replicates: int = REPLICATES, seed: int = 0) -> tuple[Floats, Floats]:
    """Percentile interval of the mean over users of each column, (U, F) → (F,) low and (F,) high."""
    _check(values)
    return interval(user_weights(len(values), replicates, seed) @ values / len(values))


def interval(replicated: Floats) -> tuple[Floats, Floats]:
    """The percentile interval of replicates, (R, …) → (…) low and (…) high."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(replicated, [tail, 1.0 - tail], axis=0)
    return low, high


@lru_cache(maxsize=32)
def user_weights(n_users: int, replicates: int = REPLICATES, seed: int = 0) -> Floats:
    """The number of times each user is drawn in each replicate, (R, U), fixed by the seed; rows sum to U."""
    if n_users < 1:
        raise ValueError("there are no users to draw from")
    if replicates < 1:
        raise ValueError(f"replicates must be 1 or more, not {replicates}")
    drawn = np.random.default_rng(seed).multinomial(n_users, np.full(n_users, 1.0 / n_users), size=replicates)
    weights: Floats = drawn.astype(np.float64)
    weights.flags.writeable = False
    return weights


def _check(values: Floats) -> None:
    if len(values) == 0:
        raise ValueError("there are no users to take a mean of")
    if np.isnan(values).any():
        raise ValueError(f"user {int(np.argwhere(np.isnan(values))[0][0])} has no rate: it is NaN")


class Claims:
    """Claims between people, for intervals of shares of claims: people are drawn with replacement.

    `claimed` and `typist` (n,) are the numbers of the people in each claim. In a replicate a claim is counted
    as often as its typist was drawn, times as often as the person claimed was drawn.
    """

    def __init__(
        self, claimed: Integers, typist: Integers, replicates: int = REPLICATES, seed: int = 0
    ) -> None:
        people, places = np.unique(np.concatenate([claimed, typist]), return_inverse=True)
        n, self.n_people = len(claimed), len(people)
        self.pairs = places[:n] * self.n_people + places[n:]
        self.weights = user_weights(self.n_people, replicates, seed)
        self.totals = self._drawn(np.ones(n))

    def interval(self, counted: Truths | Floats) -> tuple[float, float]:
        """The 95 % interval of the share of claims that are counted, (n,)."""
        there = self.totals > 0
        low, high = interval(self._drawn(counted.astype(np.float64))[there] / self.totals[there])
        return float(low), float(high)

    def rate(self, counted: Truths) -> Rate:
        """The share of claims that are counted (n,), with its interval."""
        return Rate(float(counted.mean()), *self.interval(counted), trials=len(counted))

    def _drawn(self, counted: Floats) -> Floats:
        """The sum of what is counted (n,) in each replicate, (R,)."""
        n = self.n_people
        counts = np.bincount(self.pairs, counted, n * n).reshape(n, n)
        # For a genuine claim both people are the same, who counts once, not squared.
        own = np.diag(counts).copy()
        np.fill_diagonal(counts, 0.0)
        drawn: Floats = ((self.weights @ counts) * self.weights).sum(axis=1) + self.weights @ own
        return drawn


LEVEL = 0.05
# Rates are quotients of counts; a difference below this is rounding and must not break a tie.
DIGITS = 12


def signed_rank_p(one: Floats, other: Floats) -> float:
    """The two-sided p-value of the signed-rank test of paired figures (U,); 1 if no pair differs.

    With fewer than 6 differing pairs it cannot fall below 0.05.
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    if len(difference) == 0:
        raise ValueError("there are no users to compare over")
    if np.isnan(difference).any():
        raise ValueError(f"user {int(np.argmax(np.isnan(difference)))} has no figure: it is NaN")
    rounded = np.round(difference, DIGITS)
    differing = rounded[rounded != 0.0]
    if len(differing) == 0:
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(differing).pvalue)


def compare_with_best(figures: pd.DataFrame, higher_is_better: bool) -> pd.DataFrame:
    """Test each detector against the one with the best mean.

    `figures` has one row per user and one column per detector. The result has one row per detector: mean,
    best (whether the others are tested against it), p (1 for the best), level (corrected for the number of
    tests) and bold (whether p is above the level). Of detectors with the same mean the first is the best.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from keydyn.evaluation import compare_with_best
    >>> good = np.linspace(0.8, 0.9, 20)
    >>> table = compare_with_best(pd.DataFrame({"good": good, "poor": good - 0.2}), higher_is_better=True)
    >>> table["bold"].tolist()
    [True, False]
    """
    if figures.shape[0] == 0 or figures.shape[1] == 0:
        raise ValueError("there is nothing to compare: figures need users and detectors")
    missing = figures.isna().to_numpy()
    if missing.any():
        u, d = (int(place) for place in np.argwhere(missing)[0])
        raise ValueError(f"user {figures.index[u]} has no figure of {figures.columns[d]}")
    means = figures.mean()
    best = means.idxmax() if higher_is_better else means.idxmin()
    reference = figures[best].to_numpy()
    p = [1.0 if name == best else signed_rank_p(figures[name].to_numpy(), reference) for name in figures]
    corrected = LEVEL / max(len(figures.columns) - 1, 1)
    import pandas as pd

    return pd.DataFrame(
        {
            "mean": means.to_numpy(),
            "best": np.asarray(figures.columns == best),
            "p": p,
            "level": corrected,
            "bold": np.array(p) > corrected,
        },
        index=pd.Index(figures.columns, name="detector"),
    )
