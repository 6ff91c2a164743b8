"""Scores of claims against a cohort, and their calibration to likelihood ratios and error rates.

The meaning of a score depends on how much was typed, so it is learnt for several numbers of keys and
interpolated between them, on a logarithmic scale of keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers, Truths, compiled, inner
from keydyn.evaluation.rates.confidence import Estimate
from keydyn.files import Tensor, Tensors, check_tensors, within
from keydyn.short_repr import short_repr

if TYPE_CHECKING:
    from keydyn.decisions.calibration.trials import Trials

# Error rates for which the score is stored: ten per factor of ten.
RATES: Floats = np.logspace(0.0, -4.0, 41)
# Lock-outs of genuine people per hour of typing for which the level is stored: twenty per factor of ten, so
# that the gap between rates that the data support and rates that they do not is narrow.
LOCKOUTS: Floats = np.logspace(-1.0, 1.0, 41)
# The rule of three: an event not seen in n hours happens less than 3/n times per hour, with 95 % confidence.
OF_THREE = 3.0
# A claim is compared with the members of the cohort most like the typist: this share, and at least this many.
NEAREST = 0.1
LEAST_NEAREST = 3
# The number of people that the usual spread counts for: between people, the variance of log-likelihoods is
# about one per key.
SPREAD_LEANS = 50.0
# Bounds of log-likelihoods and scores: a sample that no template explains at all still has a finite score.
LOWEST, HIGHEST = -1e6, 1e6
# Larger scores, slopes or levels are refused, so that nothing computed from them overflows.
LARGEST_NUMBER = 1e100
BISECTIONS = 60
# Stands for a rate of 0 where logarithms are taken.
NOTHING = 1e-9
# A 95 % interval reaches this many deviations to either side.
DEVIATIONS = 1.96


class Meanings(NamedTuple):
    """Log-likelihood ratios and error rates that scores correspond to, each of shape (n,)."""

    llr: Floats  # natural-log likelihood ratios
    # Shares of strangers who score as high, with the ends of their intervals
    false_match: Floats
    low: Floats
    high: Floats
    false_non_match: Floats  # shares of genuine samples that score lower


class CalibrationTables(NamedTuple):
    """A calibration for G numbers of keys, in the form that the compiled loop takes."""

    places: Floats  # (G,) the logarithms of these numbers
    # (G,) ln (1 − lapse) + intercept, slope and ln lapse of the logistic regression
    intercept: Floats
    slope: Floats
    lapse: Floats
    # (2, G, L) scores, rising, that strangers reach, and that genuine samples lie below
    scores: Floats
    logs: Floats  # (4, G, L) logarithms of the shares at them: of strangers, with their interval; of genuine


def _reachable(name: str, scores: Floats) -> None:
    """Check scores, where ∞ stands for a rate that too few strangers were tested to measure."""
    _numbers(name, scores[scores != np.inf])


_numbers, _above_0 = within(-LARGEST_NUMBER, LARGEST_NUMBER), within(np.nextafter(0.0, 1.0), LARGEST_NUMBER)
# For G numbers of keys.
TENSORS = {
    "lengths": Tensor(("G",), within(1, files.MOST_COUNTED), np.int64),
    "intercept": Tensor(("G",), _numbers),
    "slope": Tensor(("G",), _above_0),
    "lapse": Tensor(("G",), within(np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))),
    "impostor": Tensor(("G", len(RATES)), _reachable),
    "low": Tensor(("G", len(RATES)), within(0, 1)),
    "high": Tensor(("G", len(RATES)), within(0, 1)),
    "genuine": Tensor(("G", len(RATES)), _numbers),
    "suspicion": Tensor((len(LOCKOUTS),), _above_0),
}


@dataclass(frozen=True)
class MatchRate(Estimate):
    """A share of strangers, with its 95 % interval over people.

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> calibration = shipped_background().calibrations.at(enrolled=250)
    >>> rate = calibration.false_match_rate(score=0.5, keys=100)
    >>> 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
    True
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """The likelihood ratios and error rates that scores correspond to, learnt from trials; immutable.

    Attributes
    ----------
    lengths : (G,) numbers of keys, rising
    intercept, slope : (G,) of the logistic regression of genuine against impostor scores; slopes are positive
    lapse : (G,) share of genuine samples typed as a stranger would; its logarithm is the lowest ratio
    impostor : (G, L) the score that a share RATES of strangers reaches; ∞ where too few were tested to say
    low, high : (G, L) interval of that share, over people
    genuine : (G, L) the score below which a share RATES of genuine samples lies
    suspicion : (len(LOCKOUTS),) the level above which genuine sessions are locked at each of these rates
    n_people : the number of people tested
    hours : the hours of genuine typing that `suspicion` was measured on

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> calibration = shipped_background().calibrations.at(enrolled=250)
    >>> threshold = calibration.threshold(false_match=0.01, keys=100)
    >>> calibration.false_match_rate(threshold, keys=100).value <= 0.01
    True
    >>> calibration.ratio(threshold + 1.0, keys=100) > calibration.ratio(threshold, keys=100)
    True
    """

    lengths: Integers
    intercept: Floats
    slope: Floats
    lapse: Floats
    impostor: Floats
    low: Floats
    high: Floats
    genuine: Floats
    suspicion: Floats
    n_people: int
    hours: float

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Make the arrays read-only; a `ValueError` says what is wrong with them."""
        arrays = {name: getattr(self, name) for name in TENSORS}
        check_tensors(arrays, TENSORS)
        for array in arrays.values():
            array.flags.writeable = False
        wrong = {
            "lengths must rise": len(self.lengths) == 0 or (np.diff(self.lengths) <= 0).any(),
            "impostor must rise as fewer reach it": (self.impostor[:, 1:] < self.impostor[:, :-1]).any(),
            "impostor must begin with what all reach": not np.isfinite(self.impostor[:, :1]).all(),
            "genuine must fall with the share below it": (np.diff(self.genuine) > 0).any(),
            "suspicion must fall with more lock-outs": (np.diff(self.suspicion) > 0).any(),
            "hours must be above 0": not 0.0 < self.hours < np.inf,
        }
        for what, found in wrong.items():
            if found:
                raise ValueError(f"{what} in a calibration")

    @classmethod
    def learn(cls, trials: Trials) -> Calibration:
        """Learn a calibration from claims whose truth is known; a `ValueError` if there are too few."""
        from keydyn.decisions.calibration.learning import learnt

        return cls(n_people=trials.n_people, **learnt(trials))

    def meanings(self, scores: Floats, keys: Integers) -> Meanings:
        """Return the meanings of scores (n,) of samples with these numbers of keys, (n,) or one for all."""
        asked = np.array(scores, dtype=np.float64)
        found = np.empty((len(Meanings._fields), len(asked)))
        fill_meanings(asked, np.full(len(asked), keys, dtype=np.int64), self.tables, found)
        return Meanings(*found)

    def llr(self, scores: Floats, keys: Integers) -> Floats:
        """(n,) natural-log likelihood ratios of scores; the parameters are those of `meanings`."""
        return self.meanings(scores, keys).llr

    def ratio(self, score: float, keys: int) -> float:
        """The log-likelihood ratio of one score."""
        return float(self.meanings(np.array([score]), np.array([keys])).llr[0])

    def false_match_rate(self, score: float, keys: int) -> MatchRate:
        """The share of strangers who reach this score with this number of keys, and its interval."""
        _, value, low, high, _ = self.meanings(np.array([score]), np.array([keys]))
        return MatchRate(float(value[0]), float(low[0]), float(high[0]))

    def false_match_rates(self, scores: Floats, keys: Integers) -> Floats:
        """(n,) the shares of strangers who reach scores (n,) with these numbers of keys (n,)."""
        return self.meanings(scores, keys).false_match

    def false_non_match_rates(self, scores: Floats, keys: Integers) -> Floats:
        """(n,) the shares of genuine samples with these numbers of keys (n,) that lie below scores (n,)."""
        return self.meanings(scores, keys).false_non_match

    def threshold(self, false_match: float, keys: int) -> float:
        """The lowest score that at most this share of strangers reaches with this number of keys.

        It is ∞ if the share is smaller than the calibration can state.
        """
        low, high = float(self.impostor[:, 0].min()), float(self.impostor[np.isfinite(self.impostor)].max())
        if self.false_match_rate(high, keys).value > false_match:
            return np.inf
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            above = self.false_match_rate(middle, keys).value > false_match
            low, high = (middle, high) if above else (low, middle)
        return high

    def lockout_level(self, per_hour: float) -> float:
        """The suspicion above which genuine sessions are locked at this rate per hour of typing.

        The level is measured if the hours of genuine typing support the rate (`supported_lockouts`). For
        lower rates it is extrapolated: it lies above the highest level seen, by 1 for each factor e, as holds
        for people who type as their template says. Real people sometimes do not, so such a rate is a goal and
        not a measurement, and a single odd session can make the level so high that hardly any impostor is
        noticed. Rates above the highest of LOCKOUTS have the level of the highest.
        """
        if not per_hour > 0.0:
            raise ValueError(f"lock-outs per hour must be above 0, not {per_hour}")
        beyond = max(float(np.log(LOCKOUTS[0] / per_hour)), 0.0)
        return float(np.interp(np.log(per_hour), np.log(LOCKOUTS), self.suspicion)) + beyond

    def only(self, which: Truths) -> Calibration:
        """The calibration for some of the numbers of keys."""
        some = {name: getattr(self, name)[which].copy() for name in TENSORS if name != "suspicion"}
        return replace(self, **some)

    def towards(self, other: Calibration, share: float) -> Calibration:
        """Interpolate between this calibration and another of the same lengths, which counts for `share`."""
        if not np.array_equal(self.lengths, other.lengths):
            raise ValueError("there is no calibration between two for different numbers of keys")
        between: Tensors = {"lengths": self.lengths.copy()}
        for name in TENSORS.keys() - between:
            here, there = getattr(self, name), getattr(other, name)
            # A rate that one of them cannot state cannot be stated in between, either.
            known = np.isfinite(here) & np.isfinite(there)
            between[name] = np.full(here.shape, np.inf)
            between[name][known] = (1.0 - share) * here[known] + share * there[known]
        return Calibration(n_people=self.n_people, hours=min(self.hours, other.hours), **between)

    def moved(self, shift: float, unsure: float) -> Calibration:
        """The calibration for strangers who score higher by `shift`, known with deviation `unsure`.

        Both are in units of the score. Other people, keyboards or recorders shift the scores of strangers;
        the uncertainty of that shift widens the intervals.
        """
        if shift == 0.0 and unsure == 0.0:
            return self
        impostor = self.impostor + shift
        low, high = self.low.copy(), self.high.copy()
        for g, (scores, logs) in enumerate(zip(self.tables.scores[0], self.tables.logs[0], strict=True)):
            known = np.isfinite(self.impostor[g])
            at = self.impostor[g, known]
            for bounds, side in ((low, 1.0), (high, -1.0)):
                # The two sources of uncertainty are independent: their distances add up like deviations.
                place = np.interp(at + side * DEVIATIONS * unsure, scores, logs) - np.log(RATES[known])
                # If no stranger of a resample reached the score, the resamples tell nothing about this side.
                outer = np.minimum if side > 0.0 else np.maximum
                people = np.log(np.maximum(outer(bounds[g, known], RATES[known]), NOTHING) / RATES[known])
                bounds[g, known] = RATES[known] * np.exp(-side * np.hypot(place, people))
        return replace(
            self,
            impostor=impostor,
            low=np.minimum(low, 1.0),
            high=np.minimum(high, 1.0),
            intercept=self.intercept - self.slope * shift,
        )

    @property
    def supported_lockouts(self) -> float:
        """The lowest rate of lock-outs per hour that the data support: 3 in all hours, the rule of three."""
        return OF_THREE / self.hours

    @cached_property
    def tables(self) -> CalibrationTables:
        """The calibration in the form that the compiled loop takes."""
        rates = np.broadcast_to(RATES, self.impostor.shape)
        value, low, high = (_table(self.impostor, each) for each in (rates, self.low, self.high))
        below = _table(self.genuine, rates)
        return CalibrationTables(
            np.log(self.lengths.astype(np.float64)),
            np.log1p(-self.lapse) + self.intercept,
            self.slope.copy(),
            np.log(self.lapse),
            np.stack([value[0], below[0]]),
            np.stack([value[1], low[1], high[1], below[1]]),
        )


@compiled
def fill_meanings(scores: Floats, keys: Integers, tables: CalibrationTables, found: Floats) -> None:
    """Fill in the `Meanings`, (5, n), of scores (n,) of samples with these numbers of keys (n,)."""
    last = len(tables.places) - 1
    for n in range(len(scores)):
        if np.isnan(scores[n]):
            found[:, n] = np.nan
            continue
        found[0, n] = ratio_of(scores[n], keys[n], tables)
        g, share = _place(math.log(max(keys[n], 1)), tables.places)
        later = min(g + 1, last)
        for k in range(4):
            before = _between(scores[n], tables.scores[k // 3, g], tables.logs[k, g])
            after = _between(scores[n], tables.scores[k // 3, later], tables.logs[k, later])
            rate = math.exp((1.0 - share) * before + share * after)
            found[1 + k, n] = rate if rate > 2.0 * NOTHING else 0.0
        found[2, n], found[3, n] = min(found[1, n], found[2, n]), max(found[1, n], found[3, n])


@inner
def ratio_of(score: float, keys: int, tables: CalibrationTables) -> float:
    """The natural-log likelihood ratio of a score of a sample with this number of keys."""
    g, share = _place(math.log(max(keys, 1)), tables.places)
    later = min(g + 1, len(tables.places) - 1)
    before = _log_of_sum(tables.intercept[g] + tables.slope[g] * score, tables.lapse[g])
    after = _log_of_sum(tables.intercept[later] + tables.slope[later] * score, tables.lapse[later])
    return (1.0 - share) * before + share * after


@inner
def _place(x: float, at: Floats) -> tuple[int, float]:
    """Locate x among rising numbers: the index of the last one not above x, and the share of the way on."""
    low, high = 0, len(at)
    while low < high:
        middle = (low + high) // 2
        if at[middle] <= x:
            low = middle + 1
        else:
            high = middle
    if low == 0 or low == len(at):
        return max(low - 1, 0), 0.0
    return low - 1, (x - at[low - 1]) / (at[low] - at[low - 1])


@inner
def _between(x: float, at: Floats, values: Floats) -> float:
    """Interpolate linearly, as `np.interp` does."""
    place, share = _place(x, at)
    found: float = values[place]
    if share > 0.0:
        found += share * (values[place + 1] - values[place])
    return found


@inner
def _log_of_sum(a: float, b: float) -> float:
    """ln(eᵃ + eᵇ)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _table(scores: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """(G, L) scores, rising, and the logarithms of their rates; the last known score fills up each row."""
    at, logs = np.empty(scores.shape), np.empty(scores.shape)
    for g in range(len(scores)):
        known = np.flatnonzero(np.isfinite(scores[g]))
        order = known[np.argsort(scores[g, known], kind="stable")]
        filled = np.append(order, np.full(scores.shape[1] - len(order), order[-1]))
        at[g], logs[g] = scores[g, filled], np.log(np.maximum(rates[g, filled], NOTHING))
    return at, logs


def open_set_scores(
    claimed: Floats, cohort: Floats, keys: Integers | Floats, left_out: Truths | None = None
) -> Floats:
    """(n, U) lead of each claimed template over the cohort's best, in units of the cohort's spread.

    `claimed` (n, U) and `cohort` (n, C) have the log-likelihoods of the same samples, of `keys` (n,)
    keystrokes. The best are the tenth of the cohort with the highest log-likelihoods, at least three. The
    spread is the root mean square distance of the upper half from the median, drawn towards its usual value
    after that many keys. Strangers reach nearly the same scores after few keys and after many, whatever their
    keyboard, because all of that affects the cohort's log-likelihoods too. `left_out` (n, C) marks the
    members of the cohort who do not count for a sample; one must remain.
    """
    if cohort.shape[1] == 0:
        raise ValueError("there is nobody in the cohort")
    if left_out is None:
        left_out = np.zeros((0, 0), dtype=bool)
    elif left_out.all(axis=1).any():
        raise ValueError("everybody in the cohort is left out")
    scores, ordered = np.empty(claimed.shape), np.empty(cohort.shape[1])
    numbers = np.asarray(keys, dtype=np.float64)
    if len(cohort) != len(claimed) or numbers.shape != (len(claimed),):
        raise ValueError("claims, cohort and keys are those of the same samples")
    both = np.array(claimed, order="C"), np.array(cohort, order="C")
    fill_open_set(*both, numbers, left_out, ordered, scores)
    return scores


@compiled
def fill_open_set(
    claimed: Floats, cohort: Floats, keys: Floats, left_out: Truths, ordered: Floats, scores: Floats
) -> None:
    """Fill in `open_set_scores`; `ordered` (C,) is scratch space; an empty `left_out` leaves no one out."""
    for q in range(len(claimed)):
        n = 0
        for c in range(cohort.shape[1]):
            if len(left_out) == 0 or not left_out[q, c]:
                insert(cohort[q, c], ordered, n)
                n += 1
        for u in range(claimed.shape[1]):
            scores[q, u] = open_set_score(claimed[q, u], ordered, n, keys[q])


@inner
def insert(value: float, ordered: Floats, n: int) -> None:
    """Insert a log-likelihood into n others, sorted with the highest first."""
    value = min(max(value, LOWEST), HIGHEST) if value == value else LOWEST
    place = n
    while place > 0 and ordered[place - 1] < value:
        ordered[place] = ordered[place - 1]
        place -= 1
    ordered[place] = value


@inner
def open_set_score(claimed: float, ordered: Floats, n: int, keys: float) -> float:
    """The score of one claim against the log-likelihoods of n others, sorted with the highest first."""
    if not claimed > LOWEST:
        # The claimed person does not explain the sample at all: nothing speaks for the claim.
        return LOWEST
    best, upper = max(round(NEAREST * n), min(LEAST_NEAREST, n)), (n + 1) // 2
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0
    highest, squares = 0.0, 0.0
    for k in range(best):
        highest += ordered[k]
    for k in range(upper):
        squares += (ordered[k] - median) ** 2
    spread = math.sqrt((squares + SPREAD_LEANS * max(keys, 1.0)) / (upper + SPREAD_LEANS))
    return min(max((min(claimed, HIGHEST) - highest / best) / spread, LOWEST), HIGHEST)
