"""What a score means: a likelihood ratio, and how often strangers score as high.

Both depend on how much was typed, so they are learnt after several numbers of keys and interpolated between
them, on a logarithmic scale of keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.trials import Trials
from keydyn.evaluation.confidence import interval, user_weights

# Rates for which the score is known: ten per factor of ten.
RATES: Floats = np.logspace(0.0, -4.0, 41)
# Pulls the slope towards 0 where genuine and impostor scores do not overlap at all.
RIDGE = 1e-4
REPLICATES = 400
# Stands for a rate of 0 where logarithms are taken.
NOTHING = 1e-9
# After fewer trials of either kind a number of keys is left out.
LEAST_TRIALS = 20


@dataclass(frozen=True)
class MatchRate:
    """A share of strangers, with its 95 % interval over people."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Learnt from trials; immutable.

    Attributes
    ----------
    lengths : (G,) numbers of keys, rising
    intercept, slope : (G,) of the logistic regression of genuine against impostor scores; slopes are positive
    impostor : (G, L) the score that a share RATES of strangers reaches; ∞ where too few were asked to say
    low, high : (G, L) interval of that share, over people
    genuine : (G, L) the score below which a share RATES of genuine samples lies
    n_people : how many were asked
    """

    lengths: Integers
    intercept: Floats
    slope: Floats
    impostor: Floats
    low: Floats
    high: Floats
    genuine: Floats
    n_people: int

    def __post_init__(self) -> None:
        """Nobody can change the arrays; a `ValueError` says what makes no calibration."""
        G, L = len(self.lengths), len(RATES)
        shapes: dict[str, tuple[int, ...]] = {"lengths": (G,), "intercept": (G,), "slope": (G,)}
        shapes |= dict.fromkeys(("impostor", "low", "high", "genuine"), (G, L))
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape or np.isnan(array).any():
                raise ValueError(f"{name} of a calibration must be numbers of shape {shape}")
            array.flags.writeable = False
        if G == 0 or (np.diff(self.lengths) <= 0).any() or self.lengths[0] < 1:
            raise ValueError("the numbers of keys of a calibration must rise")
        if not np.isfinite(self.intercept).all() or not (np.isfinite(self.slope) & (self.slope > 0)).all():
            raise ValueError("the slopes of a calibration must be positive")
        falling = (self.impostor[:, 1:] < self.impostor[:, :-1]).any()
        if falling or (self.genuine[:, 1:] > self.genuine[:, :-1]).any():
            raise ValueError("scores of a calibration must rise as fewer strangers reach them")

    @classmethod
    def learn(cls, trials: Trials) -> Calibration:
        """From claims whose truth is known; a `ValueError` if there are too few."""
        genuine = trials.genuine
        enough, rows = [], []
        for g in range(len(trials.lengths)):
            here = np.isfinite(trials.scores[:, g])
            own, others = trials.scores[here & genuine, g], trials.scores[here & ~genuine, g]
            if min(len(own), len(others)) < LEAST_TRIALS:
                continue
            enough.append(g)
            reached = _reached(others)
            low, high = _shares(trials, here & ~genuine, g, reached)
            rows.append((*_logistic(own, others), reached, low, high, np.quantile(own, RATES)))
        if not rows:
            raise ValueError(
                f"a calibration needs {LEAST_TRIALS} genuine and {LEAST_TRIALS} false claims or more"
            )
        intercept, slope, impostor, low, high, below = (np.array(each) for each in zip(*rows, strict=True))
        lengths = trials.lengths[enough]
        return cls(lengths, intercept, slope, impostor, low, high, below, trials.n_people)

    def llr(self, scores: Floats, keys: Integers) -> Floats:
        """Natural-log likelihood ratio of each score, of samples with so many keys; shapes broadcast."""
        before, after, share = self._between(keys)
        ratios = [self.intercept[g] + self.slope[g] * scores for g in (before, after)]
        llr: Floats = (1.0 - share) * ratios[0] + share * ratios[1]
        return llr

    def ratio(self, score: float, keys: int) -> float:
        """The same of one score."""
        return float(self.llr(np.array([score]), np.array([keys]))[0])

    def false_match_rate(self, score: float, keys: int) -> MatchRate:
        """How many strangers reach this score with so many keys, and the interval of that share."""
        value, low, high = (
            self._share(score, keys, self.impostor, rates) for rates in (None, self.low, self.high)
        )
        return MatchRate(value, min(value, low), max(value, high))

    def false_non_match_rate(self, score: float, keys: int) -> float:
        """How many genuine samples with so many keys lie below this score."""
        return self._share(score, keys, self.genuine, None)

    def _share(self, score: float, keys: int, table: Floats, rates: Floats | None) -> float:
        """The rate of a score in a table of scores at RATES, between two numbers of keys."""
        before, after, share = self._between(np.array([keys]))
        logs = []
        for g in (int(before[0]), int(after[0])):
            known = np.isfinite(table[g])
            scores, of = table[g, known], RATES[known] if rates is None else rates[g, known]
            order = np.argsort(scores, kind="stable")
            logs.append(np.interp(score, scores[order], np.log(np.maximum(of, NOTHING))[order]))
        found = float(np.exp((1.0 - share[0]) * logs[0] + share[0] * logs[1]))
        return found if found > 2.0 * NOTHING else 0.0

    def _between(self, keys: Integers) -> tuple[Integers, Integers, Floats]:
        """The neighbours of so many keys among `lengths`, and the share of the later one."""
        places = np.log(self.lengths.astype(np.float64))
        at = np.interp(np.log(np.maximum(keys, 1)), places, np.arange(len(places)))
        before = np.minimum(at.astype(np.int64), len(places) - 1)
        after = np.minimum(before + 1, len(places) - 1)
        return before, after, at - before


def _logistic(genuine: Floats, impostor: Floats) -> tuple[float, float]:
    """Intercept and positive slope of the logistic regression, both kinds with equal weight."""
    scores = np.concatenate([genuine, impostor])
    centre, width = float(np.median(scores)), float(scores.std()) or 1.0
    x = (scores - centre) / width
    sign = np.repeat([1.0, -1.0], [len(genuine), len(impostor)])
    weight = np.repeat([0.5 / len(genuine), 0.5 / len(impostor)], [len(genuine), len(impostor)])

    def cost(values: Floats) -> tuple[float, Floats]:
        a, slope = values[0], np.exp(values[1])
        margin = sign * (a + slope * x)
        pull = -sign * weight / (1.0 + np.exp(np.clip(margin, -500.0, 500.0)))
        gradient = np.array([pull.sum(), slope * ((pull * x).sum() + 2.0 * RIDGE * slope)])
        return float((weight * np.logaddexp(0.0, -margin)).sum() + RIDGE * slope**2), gradient

    a, log_slope = minimize(cost, np.zeros(2), jac=True, method="BFGS").x
    slope = float(np.exp(log_slope)) / width
    return float(a) - slope * centre, slope


def _reached(impostor: Floats) -> Floats:
    """The least score that at most a share RATES of strangers reaches, one more stranger counted as if above.

    So a new stranger reaches it with that probability at most, as the scores are exchangeable.
    """
    ordered = np.sort(impostor)[::-1]
    allowed = np.floor(RATES * (len(ordered) + 1) + 1e-9).astype(np.int64) - 1
    # A rate of `allowed` strangers and one lies just above the score of the next.
    padded = np.append(ordered, ordered[-1])
    reached = np.where(allowed >= 0, np.nextafter(padded[np.clip(allowed, 0, len(ordered))], np.inf), np.inf)
    reached[allowed >= len(ordered)] = ordered[-1]
    return reached


def _shares(trials: Trials, which: Truths, g: int, reached: Floats) -> tuple[Floats, Floats]:
    """Interval of the share of strangers who reach each score, over claimed people and typists alike."""
    people = np.unique(np.concatenate([trials.claimed[which], trials.typist[which]]))
    U = len(people)
    pairs = np.searchsorted(people, trials.claimed[which]) * U + np.searchsorted(people, trials.typist[which])
    scores = trials.scores[which, g]
    weights = user_weights(U, REPLICATES)
    totals = _drawn(weights, np.bincount(pairs, minlength=U * U).reshape(U, U))
    low, high = np.empty(len(RATES)), np.empty(len(RATES))
    for k, score in enumerate(reached):
        counts = np.bincount(pairs[scores >= score], minlength=U * U).reshape(U, U)
        low[k], high[k] = interval(_drawn(weights, counts) / np.maximum(totals, 1e-12))
    return low, high


def _drawn(weights: Floats, counts: Integers) -> Floats:
    """(R,) pairs counted as often as both of their people were drawn."""
    drawn: Floats = ((weights @ counts) * weights).sum(axis=1)
    return drawn
