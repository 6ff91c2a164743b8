"""Ways to watch a session, compared at equal false lock-outs.

Each way gives every key a level, the higher the less the claim is believed. Its limit is found on people of
the other folds, so that they are locked out a stated number of times per hour of typing. What is reported is
what that limit does to people on whom nothing was chosen: how often they are locked out themselves, and how
soon it notices another person, from the first key or after a change of person in mid-session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.learning import locked_at, lockout_level, watched_hours
from keydyn.evaluation.rates.confidence import CONFIDENCE, REPLICATES, Estimate, user_weights
from keydyn.model.data.vocabulary import Types


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


def quotient(
    above: Floats, below: Floats, people: Integers, replicates: int = REPLICATES, seed: int = 0
) -> Estimate:
    """Σ above / Σ below of sessions (n,), with its interval over people, who are numbers from 0."""
    n = int(people.max()) + 1
    weights = np.vstack([np.ones(n), user_weights(n, replicates, seed)])
    tops, bottoms = (weights @ np.bincount(people, part, n) for part in (above, below))
    return estimate(np.divide(tops, bottoms, out=np.zeros_like(tops), where=bottoms > 0))


@dataclass(frozen=True, eq=False)
class TriedSessions:
    """Watched sessions, and who typed them.

    Attributes
    ----------
    offsets : (n + 1,) where each begins
    hours : (N,) hours of typing since its beginning
    claimed : (n,) the person in whose name it is
    changed : (n,) the key from which on another person types: 0 from the start, its length if none does
    folds : (n,) the fold of the people in it, from 0; no person is in two
    """

    offsets: Integers
    hours: Floats
    claimed: Types
    changed: Integers
    folds: Integers

    @property
    def lengths(self) -> Integers:
        lengths: Integers = np.diff(self.offsets)
        return lengths

    @property
    def genuine(self) -> Truths:
        """(n,) whether the claimed person types to the end."""
        genuine: Truths = self.changed == self.lengths
        return genuine

    @property
    def from_start(self) -> Truths:
        strange: Truths = self.changed == 0
        return strange


@dataclass(frozen=True)
class Compared:
    """One way to watch, at a limit found on others.

    Attributes
    ----------
    way : its name
    choices : the variant and the limit of each fold
    per_hour : false lock-outs per hour of typing
    locked : share of genuine sessions that were locked
    from_start : impostors from the first key on
    after_change : impostors who took over, in sessions not locked before
    """

    way: str
    choices: tuple[tuple[int, float], ...]
    per_hour: Estimate
    locked: Estimate
    from_start: NoticeTimes
    after_change: NoticeTimes


def compare(
    ways: Mapping[str, Sequence[Floats]],
    sessions: TriedSessions,
    per_hour: float,
    horizon: int,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Compared]:
    """Each way at the same false lock-outs per hour of typing; a way is the level (N,) of every key.

    A way may have variants: of these the one that notices a change soonest among the people of the other
    folds is used. Keys are counted up to the horizon.
    """
    found = []
    for name, variants in ways.items():
        if not variants:
            raise ValueError(f"{name} has no variants")
        at, choices = _locked(variants, sessions, per_hour, horizon)
        found.append(Compared(name, choices, *_outcome(at, sessions, horizon, replicates, seed)))
    return found


def _locked(
    variants: Sequence[Floats], sessions: TriedSessions, per_hour: float, horizon: int
) -> tuple[Integers, tuple[tuple[int, float], ...]]:
    """(n,) the key at which each session is locked; and the variant and limit that the other folds choose."""
    changes = ~sessions.genuine & ~sessions.from_start
    at, choices = np.empty(len(sessions.lengths), dtype=np.int64), []
    for fold in np.unique(sessions.folds):
        held_out = sessions.folds == fold
        tried = []
        for number, levels in enumerate(variants):
            genuine = sessions.genuine & ~held_out
            limit = lockout_level(levels, sessions.offsets, sessions.hours, genuine, per_hour)
            found = locked_at(levels, sessions.offsets, np.full(len(at), limit))
            watched = changes & ~held_out & (found >= sessions.changed)
            keys = np.minimum(keys_until(found, sessions.lengths, sessions.changed)[0], horizon)[watched]
            tried.append((float(keys.mean()) if len(keys) else 0.0, number, limit, found))
        _, number, limit, found = min(tried, key=lambda one: one[0])
        choices.append((number, limit))
        at[held_out] = found[held_out]
    return at, tuple(choices)


def _outcome(
    at: Integers, sessions: TriedSessions, horizon: int, replicates: int, seed: int
) -> tuple[Estimate, Estimate, NoticeTimes, NoticeTimes]:
    """What locking sessions at these keys does to genuine people, and to impostors of either kind."""
    lengths, genuine = sessions.lengths, sessions.genuine
    keys, noticed = keys_until(at, lengths, sessions.changed)
    people = pd.factorize(sessions.claimed)[0].astype(np.int64)

    def of_genuine(below: Floats) -> Estimate:
        return quotient(locked[genuine], below[genuine], people[genuine], replicates, seed)

    def times(which: Truths) -> NoticeTimes:
        longest = min(horizon, int(keys[which].max(initial=1)))
        return notice_times(keys[which], noticed[which], people[which], longest, replicates, seed)

    locked = (at < lengths).astype(np.float64)
    hours = watched_hours(sessions.hours, sessions.offsets, at)
    changes = ~genuine & ~sessions.from_start
    return (
        of_genuine(hours),
        of_genuine(np.ones(len(locked))),
        times(sessions.from_start),
        times(changes & (at >= sessions.changed)),
    )


def keys_until(at: Integers, lengths: Integers, changed: Integers) -> tuple[Integers, Truths]:
    """(n,) the impostor's keys until the lock-out, or to the end, and whether there was one.

    The level of a key is known when the next one is pressed.
    """
    noticed, typed = at < lengths, lengths - changed
    return np.maximum(np.where(noticed, np.minimum(at - changed + 2, typed), typed), 1), noticed
