"""Learning a calibration from claims whose truth is known, and levels of suspicion from genuine sessions."""

from __future__ import annotations

from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.calibration import LOCKOUTS, OF_THREE, RATES
from keydyn.decisions.calibration.trials import LEAST_TRIALS, Trials
from keydyn.evaluation.rates.confidence import Claims

# No level of suspicion is lower.
LEAST_SUSPICION = 1.0
# Replaces 0 hours of typing in divisions.
LEAST_HOURS = 1.0 / 3600.0
# Bounds of the share of genuine samples that are typed as a stranger would.
LAPSES = (1e-4, 0.2)
# Pulls the slope towards 0 where genuine and impostor scores do not overlap at all.
RIDGE = 1e-4
REPLICATES = 400


def learnt(trials: Trials) -> dict[str, Any]:
    """The fields of a `Calibration` except the number of people; a `ValueError` if trials are too few."""
    genuine = trials.genuine
    enough, rows = [], []
    for g in range(len(trials.lengths)):
        here = np.isfinite(trials.scores[:, g])
        own, others = trials.scores[here & genuine, g], trials.scores[here & ~genuine, g]
        if min(len(own), len(others)) < LEAST_TRIALS:
            continue
        enough.append(g)
        reached = _reached(others)
        low, high = _intervals(trials, here & ~genuine, g, reached)
        rows.append((*_logistic(own, others), reached, low, high, np.quantile(own, RATES)))
    if not rows:
        raise ValueError(
            f"a calibration needs {LEAST_TRIALS} genuine and {LEAST_TRIALS} false claims or more"
        )
    intercept, slope, lapse, impostor, low, high, below = (np.array(each) for each in zip(*rows, strict=True))
    lengths = trials.lengths[enough]
    hours = max(float(trials.hours[trials.offsets[1:] - 1].sum()), LEAST_HOURS)
    suspicion = _levels(trials, hours)
    return {
        "lengths": lengths,
        "intercept": intercept,
        "slope": slope,
        "lapse": lapse,
        "impostor": impostor,
        "low": low,
        "high": high,
        "genuine": below,
        "suspicion": suspicion,
        "hours": hours,
    }


def _levels(trials: Trials, hours: float) -> Floats:
    """The level for each rate of LOCKOUTS, measured or, where the hours do not support it, extrapolated."""
    every_session = np.ones(len(trials.offsets) - 1, dtype=bool)
    highest = float(trials.suspicion.max())
    levels = [
        lockout_level(trials.suspicion, trials.offsets, trials.hours, every_session, rate)
        if rate * hours >= OF_THREE
        else highest + np.log(OF_THREE / (rate * hours))
        for rate in LOCKOUTS
    ]
    found: Floats = np.maximum(np.array(levels), LEAST_SUSPICION)
    return found


def _with_lapses(ratio: Floats, lapse: Floats | float) -> Floats:
    """The log-likelihood ratio if a share `lapse` of genuine samples is typed as a stranger would."""
    found: Floats = np.logaddexp(np.log1p(-lapse) + ratio, np.log(lapse))
    return found


def _logistic(genuine: Floats, impostor: Floats) -> tuple[float, float, float]:
    """Fit intercept, positive slope and lapse by logistic regression, with equal weight for both kinds."""
    # Imported here because only calibrating needs it.
    from scipy.optimize import minimize
    from scipy.special import expit

    # Without lapses, a few samples that are unlike the others of their typist would make all ratios small.
    scores = np.concatenate([genuine, impostor])
    centre, width = float(np.median(scores)), float(scores.std()) or 1.0
    x = (scores - centre) / width
    sign = np.repeat([1.0, -1.0], [len(genuine), len(impostor)])
    weight = np.repeat([0.5 / len(genuine), 0.5 / len(impostor)], [len(genuine), len(impostor)])
    low, high = LAPSES

    def cost(values: Floats) -> float:
        slope, lapse = np.exp(values[1]), low + (high - low) * expit(values[2])
        margin = sign * _with_lapses(values[0] + slope * x, lapse)
        return float((weight * np.logaddexp(0.0, -margin)).sum() + RIDGE * slope**2)

    start = np.array([0.0, 0.0, -2.0])
    a, log_slope, share = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 2000}).x
    slope = float(np.exp(log_slope)) / width
    return float(a) - slope * centre, slope, float(low + (high - low) * expit(share))


def _reached(impostor: Floats) -> Floats:
    """The lowest scores that at most a share RATES of strangers reaches, counting one extra stranger."""
    ordered = np.sort(impostor)[::-1]
    allowed = np.floor(RATES * (len(ordered) + 1) + 1e-9).astype(np.int64) - 1
    # Just above the score of the next stranger, only `allowed` strangers and the extra one remain.
    padded = np.append(ordered, ordered[-1])
    reached = np.where(allowed >= 0, np.nextafter(padded[np.clip(allowed, 0, len(ordered))], np.inf), np.inf)
    reached[allowed >= len(ordered)] = ordered[-1]
    return reached


def _intervals(trials: Trials, which: Truths, g: int, reached: Floats) -> tuple[Floats, Floats]:
    """Intervals of the share of strangers who reach each score, over both claimed people and typists."""
    claims = Claims(trials.claimed[which], trials.typist[which], REPLICATES)
    scores = trials.scores[which, g]
    low, high = np.array([claims.interval(scores >= score) for score in reached]).T
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def locked_at(levels: Floats, offsets: Integers, limits: Floats) -> Integers:
    """(n,) the first key, from 0, whose level (N,) is above the session's limit (n,); its length if none."""
    from keydyn.evaluation.continuous.rejection import rejection_times

    return rejection_times(levels[:, None], offsets, limits[:, None])[:, 0]


def watched_hours(hours: Floats, offsets: Integers, at: Integers) -> Floats:
    """(n,) hours of typing up to the lock-out, or to the end; `hours` (N,) are since the session's start."""
    ends = np.minimum(offsets[:-1] + at, offsets[1:] - 1)
    watched: Floats = hours[ends]
    return watched


def lockout_level(
    levels: Floats, offsets: Integers, hours: Floats, sessions: Truths, per_hour: float
) -> float:
    """The lowest level that locks these sessions (n,), all together, at most `per_hour` times per hour."""
    if not per_hour > 0.0:
        raise ValueError(f"per_hour must be above 0, not {per_hour}")
    if not sessions.any():
        raise ValueError("there are no sessions to find a level for")
    highest = np.unique(np.maximum.reduceat(levels, offsets[:-1])[sessions])

    def too_many(limit: float) -> bool:
        at = locked_at(levels, offsets, np.full(len(sessions), limit))
        locked = at < np.diff(offsets)
        return bool(locked[sessions].sum() > per_hour * watched_hours(hours, offsets, at)[sessions].sum())

    # The higher the level, the fewer lock-outs: with the highest there are none.
    low, high = 0, len(highest) - 1
    while low < high:
        middle = (low + high) // 2
        if too_many(float(highest[middle])):
            low = middle + 1
        else:
            high = middle
    return float(highest[low])
