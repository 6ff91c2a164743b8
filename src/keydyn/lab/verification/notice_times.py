"""How many keys it takes until an impostor is noticed, where not every session lasts until then.

A session that ends before says only that it would have taken longer. The share of impostors not yet noticed
after so many keys is estimated from all who typed that many (E. L. Kaplan and P. Meier, Nonparametric
estimation from incomplete observations, *JASA* 53 (1958)), and intervals come from drawing people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.evaluation.rates.confidence import CONFIDENCE, REPLICATES, Estimate, user_weights


@dataclass(frozen=True)
class NoticeTimes:
    """Keys until an impostor is noticed.

    Attributes
    ----------
    median : keys until half of them are; infinite if that many never are
    mean : mean keys, those beyond the horizon counted as the horizon
    unnoticed : share not noticed by the horizon
    sessions : how many there were
    """

    median: Estimate
    mean: Estimate
    unnoticed: Estimate
    sessions: int


def notice_times(
    keys: Integers,
    noticed: Truths,
    people: Integers,
    horizon: int,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> NoticeTimes:
    """Of sessions (n,): keys until the impostor was noticed, or until the end where not; `people` are numbers
    from 0, each that of the person whom the session is counted for.
    """
    if len(keys) == 0:
        raise ValueError("there are no sessions")
    if horizon < 1 or (keys < 1).any():
        raise ValueError("the horizon and all keys must be 1 or more")
    n_people = int(people.max()) + 1
    # Of each person, how many sessions end with a notice at key k, and how many last until key k.
    at, lasting = np.zeros((n_people, horizon)), np.zeros((n_people, horizon))
    seen = noticed & (keys <= horizon)
    np.add.at(at, (people[seen], keys[seen] - 1), 1.0)
    np.add.at(lasting, (people, np.minimum(keys, horizon) - 1), 1.0)
    lasting = lasting[:, ::-1].cumsum(axis=1)[:, ::-1]
    weights = np.vstack([np.ones(n_people), user_weights(n_people, replicates, seed)])
    left = unnoticed_after(weights @ at, weights @ lasting)
    below = left <= 0.5
    median = np.where(below.any(axis=1), np.argmax(below, axis=1).astype(np.float64), np.inf)
    # After k keys, k from 0, the next key is typed by those not yet noticed.
    mean = left[:, :-1].sum(axis=1)
    return NoticeTimes(estimate(median), estimate(mean), estimate(left[:, -1]), len(keys))


def unnoticed_after(at: Floats, lasting: Floats) -> Floats:
    """(R, H + 1) Kaplan and Meier's share not noticed after 0 … H keys, from counts (R, H)."""
    hazard = np.divide(at, lasting, out=np.zeros_like(at), where=lasting > 0)
    return np.concatenate([np.ones((len(at), 1)), np.cumprod(1.0 - hazard, axis=1)], axis=1)


def estimate(values: Floats) -> Estimate:
    """The first value, and the percentile interval of the others, which may be infinite."""
    ordered = np.sort(values[1:])
    tail = (1.0 - CONFIDENCE) / 2.0
    places = np.clip(np.round(np.array([tail, 1.0 - tail]) * (len(ordered) - 1)).astype(int), 0, None)
    low, high = ordered[places].tolist()
    return Estimate(float(values[0]), low, high)
