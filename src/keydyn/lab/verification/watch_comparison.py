"""Compares ways to watch a session at equal rates of false lock-outs.

Each way gives every key a level; the higher it is, the less credible the claim. Its limit is chosen on people
of the other folds, so that they are locked out at a given rate per hour of typing. The limit is then applied
to people on whom nothing was chosen. The results are how often they are locked out themselves, and how soon
another person is noticed, who types from the first key or takes over in mid-session.
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
    """The number of keys until an impostor is noticed.

    Attributes
    ----------
    median : keys until half of the impostors are noticed; infinite if fewer ever are
    mean : mean number of keys, counted up to the horizon
    unnoticed : share of impostors not noticed by the horizon
    sessions : number of sessions
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
    """Summarise sessions (n,) by the number of keys until the impostor was noticed.

    `keys` are counted to the end of a session if the impostor was not `noticed`. `people` are numbers from 0,
    of the person that each session is counted for.
    """
    if len(keys) == 0:
        raise ValueError("there are no sessions")
    if horizon < 1 or (keys < 1).any():
        raise ValueError("the horizon and all keys must be 1 or more")
    n_people = int(people.max()) + 1
    # For each person, the number of sessions in which key k brings the notice, and of those that last until
    # key k.
    at, lasting = np.zeros((n_people, horizon)), np.zeros((n_people, horizon))
    seen = noticed & (keys <= horizon)
    np.add.at(at, (people[seen], keys[seen] - 1), 1.0)
    np.add.at(lasting, (people, np.minimum(keys, horizon) - 1), 1.0)
    lasting = lasting[:, ::-1].cumsum(axis=1)[:, ::-1]
    weights = np.vstack([np.ones(n_people), user_weights(n_people, replicates, seed)])
    left = unnoticed_after(weights @ at, weights @ lasting)
    below = left <= 0.5
    median = np.where(below.any(axis=1), np.argmax(below, axis=1).astype(np.float64), np.inf)
    # After k keys, k from 0, the next key is typed only by impostors not yet noticed.
    mean = left[:, :-1].sum(axis=1)
    return NoticeTimes(estimate(median), estimate(mean), estimate(left[:, -1]), len(keys))


def unnoticed_after(at: Floats, lasting: Floats) -> Floats:
    """The Kaplan–Meier estimate (R, H + 1) of the share not noticed after 0 … H keys, from counts (R, H)."""
    hazard = np.divide(at, lasting, out=np.zeros_like(at), where=lasting > 0)
    return np.concatenate([np.ones((len(at), 1)), np.cumprod(1.0 - hazard, axis=1)], axis=1)


def estimate(values: Floats) -> Estimate:
    """The first value as an estimate, with the percentile interval of the others, which may be infinite."""
    ordered = np.sort(values[1:])
    tail = (1.0 - CONFIDENCE) / 2.0
    places = np.clip(np.round(np.array([tail, 1.0 - tail]) * (len(ordered) - 1)).astype(int), 0, None)
    low, high = ordered[places].tolist()
    return Estimate(float(values[0]), low, high)


def quotient(
    above: Floats, below: Floats, people: Integers, replicates: int = REPLICATES, seed: int = 0
) -> Estimate:
    """Σ above / Σ below over sessions (n,), with an interval over people, who are numbered from 0."""
    n = int(people.max()) + 1
    weights = np.vstack([np.ones(n), user_weights(n, replicates, seed)])
    tops, bottoms = (weights @ np.bincount(people, part, n) for part in (above, below))
    return estimate(np.divide(tops, bottoms, out=np.zeros_like(tops), where=bottoms > 0))


@dataclass(frozen=True, eq=False)
class TriedSessions:
    """Watched sessions, with the people who typed them.

    Attributes
    ----------
    offsets : (n + 1,) where each session begins
    hours : (N,) hours of typing since the beginning of the session, at each key
    claimed : (n,) the person in whose name the session is
    changed : (n,) the first key typed by another person: 0 for the whole session, its length if there is none
    folds : (n,) the fold of the people in the session, from 0; no person is in two folds
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
        """Whether the claimed person types to the end, (n,)."""
        genuine: Truths = self.changed == self.lengths
        return genuine

    @property
    def from_start(self) -> Truths:
        strange: Truths = self.changed == 0
        return strange


@dataclass(frozen=True)
class Compared:
    """The performance of one way to watch, with a limit chosen on other people.

    Attributes
    ----------
    way : name of the way
    choices : the variant and the limit for each fold
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
    """Compare ways at the same rate of false lock-outs per hour; a way is the level (N,) at every key.

    If a way has several variants, the one that notices a change soonest among the people of the other folds
    is used. Keys are counted up to the horizon.
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
    """The key at which each session is locked, (n,), and each fold's choice of variant and limit."""
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
    """The effect of locking sessions at these keys on genuine people, and on impostors of either kind."""
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
    """The number of the impostor's keys until the lock-out or the end, and whether there was one, (n,) each.

    The level of a key is known when the next one is pressed.
    """
    noticed, typed = at < lengths, lengths - changed
    return np.maximum(np.where(noticed, np.minimum(at - changed + 2, typed), typed), 1), noticed
