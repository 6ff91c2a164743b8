"""Figures of continuous verification: how soon impostors are noticed, and how often owners are locked out.

The *rejection time* of a query under another user's template is the index, from 0, of its first event above
the threshold, or its length if there is none. There are three kinds of threshold:

- published: the owner's largest level on the same query. The owner is never rejected, and the mean over
  templates is the query's maximum rejection time. No real system can use these thresholds.
- transferable: the largest level of the claimed user's other samples, which a real system can have. By
  construction about one of a user's n samples is above the others, so that about 1 in n genuine samples is
  rejected, whatever the detector: compare detectors by their figures for impostors.
- shared: the level that 95 % of other users' genuine samples stay below. It needs no sample of the user
  beyond those enrolled, and detectors can be compared by genuine samples and by impostors.

ANGA and ANIA are the average numbers of genuine and impostor actions between lock-outs (P. Bours and
S. Mondal, Performance evaluation of continuous authentication systems, *IET Biometrics* 4 (2015)), all
actions divided by all lock-outs. A session starts afresh after each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.continuous.lockout import RankPenalty, WayToWatch, first_times
from keydyn.evaluation.rates.confidence import (
    CONFIDENCE,
    REPLICATES,
    Rate,
    mean_rate,
    unsupported,
    user_weights,
)
from keydyn.evaluation.scores import Mask
from keydyn.short_repr import short_repr

PUBLISHED, TRANSFERABLE, SHARED = "published", "transferable", "shared"
# Descriptions of the kinds of threshold, for reports.
THRESHOLDS = {
    PUBLISHED: "the owner's largest level on the query itself",
    TRANSFERABLE: "the largest level of the claimed user's other samples",
    SHARED: "the level that 95 % of other users' genuine samples stay below",
}
GENUINE_SHARE = 0.95


@dataclass(frozen=True)
class Times:
    """Rejection times: mean and standard deviation (divisor S − 1) over samples, 95 % interval over users."""

    mean: float
    std: float | None
    low: float | None
    high: float | None
    samples: int

    __repr__ = short_repr

    def text(self, digits: int = 2) -> str:
        """The mean and standard deviation for tables, such as "20.79 (9.04)"."""
        return f"{self.mean:.{digits}f}" + ("" if self.std is None else f" ({self.std:.{digits}f})")


@dataclass(frozen=True)
class Actions:
    """Actions between lock-outs.

    Attributes
    ----------
    actions, lockouts : their numbers
    low, high : the 95 % interval over users of their quotient; None for one user or an infinite end
    """

    actions: int
    lockouts: int
    low: float | None
    high: float | None

    @property
    def value(self) -> float | None:
        """Actions per lock-out; None if there was no lock-out."""
        return self.actions / self.lockouts if self.lockouts else None

    @property
    def above(self) -> float | None:
        """A lower bound without lock-outs, actions / 3 by the rule of three; None if there were any."""
        return None if self.lockouts else self.actions / 3.0

    def text(self, digits: int = 0) -> str:
        """The figure for tables: "212", or "> 1,000" if there was no lock-out in 3,000 actions."""
        if self.value is None:
            return f"> {self.actions // 3:,}"
        return f"{self.value:,.{digits}f}"


@dataclass(frozen=True, eq=False)
class Continuous:
    """Figures of continuous verification of a detector under a protocol.

    With published thresholds `anga`, `locked_out` and `locked_samples` are None, because by construction
    owners are never locked out.

    Attributes
    ----------
    watching : "rank penalty" or "penalty and reward"
    thresholds : "published", "transferable" or "shared"
    rejection : rejection times of impostors; with published thresholds the average maximum one, AMRT
    ania, anga : impostor and genuine actions between lock-outs, all users together
    locked_out : the share of users who were ever locked out under their own template
    locked_samples : the share of genuine samples with a lock-out, mean over users
    unnoticed : the share of impostors' queries that were never locked out, mean over claimed users
    per_user : actions and lock-outs, genuine and impostor, under each user's template
    per_sample : user, session, fold and mean rejection time of each query
    left_out : the number of queries without a rejection time, because templates or thresholds are missing
    """

    watching: str
    thresholds: str
    rejection: Times
    ania: Actions
    unnoticed: Rate
    anga: Actions | None
    locked_out: Rate | None
    locked_samples: Rate | None
    per_user: pd.DataFrame
    per_sample: pd.DataFrame
    left_out: int

    __repr__ = short_repr


def continuous(
    queries: EventRanks,
    watching: WayToWatch | None = None,
    thresholds: str = PUBLISHED,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Continuous:
    """Compute all figures of continuous verification, by default for the rank penalty.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, PenaltyAndReward, RankPenalty, enrolments, ranks_of
    >>> from keydyn.evaluation.continuous import continuous
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(4, 6))
    >>> queries = ranks_of(enrolments(Enrolment(samples=4), "hmm", samples), samples)
    >>> ways = [RankPenalty(window=5), PenaltyAndReward()]
    >>> found = [continuous(queries, way) for way in ways]
    >>> [(one.watching, one.thresholds, 0.0 < one.rejection.mean <= 11.0) for one in found]
    [('rank penalty', 'published', True), ('penalty and reward', 'published', True)]
    """
    if thresholds not in THRESHOLDS:
        raise ValueError(f"thresholds must be one of {', '.join(THRESHOLDS)}, not {thresholds!r}")
    way = watching or RankPenalty()
    levels = way.levels(queries)
    peaks = np.maximum.reduceat(levels, queries.offsets[:-1], axis=0)
    limits = LIMITS[thresholds](queries, peaks)
    counted = queries.trials & ~np.isnan(limits)
    genuine, impostor = counted & queries.own, counted & ~queries.own
    if not impostor.any():
        raise ValueError(
            "there are no impostors: continuous verification needs two users or more, each with a template "
            f"and a sample ({thresholds} thresholds)"
        )
    times = rejection_times(levels, queries.offsets, limits)
    per_sample, rejection = _rejection(queries, times, impostor, replicates, seed)
    lockouts = way.lockouts(queries, limits)
    lengths = np.broadcast_to(queries.lengths[:, None], lockouts.shape)
    per_user = pd.DataFrame(
        {
            "user": queries.users,
            "genuine_actions": np.where(genuine, lengths, 0).sum(axis=0),
            "genuine_lockouts": np.where(genuine, lockouts, 0).sum(axis=0),
            "impostor_actions": np.where(impostor, lengths, 0).sum(axis=0),
            "impostor_lockouts": np.where(impostor, lockouts, 0).sum(axis=0),
        }
    ).set_index("user")
    locked = _shares((lockouts > 0) & genuine, genuine)
    known = thresholds != PUBLISHED
    return Continuous(
        way.name,
        thresholds,
        rejection,
        _actions(per_user, "impostor", replicates, seed),
        _rate(_shares((lockouts == 0) & impostor, impostor), impostor.any(axis=1).sum(), replicates, seed),
        _actions(per_user, "genuine", replicates, seed) if known else None,
        _rate((locked > 0).astype(np.float64), len(locked), replicates, seed) if known else None,
        _rate(locked, genuine.sum(), replicates, seed) if known else None,
        per_user,
        per_sample,
        int(per_sample["rejection_time"].isna().sum()),
    )


def has_published_thresholds(queries: EventRanks) -> bool:
    """Whether some query is tried against its owner's template and others, as published thresholds require.

    There is no such query in an open set, where the impostor has no template.
    """
    genuine, impostor = queries.trials & queries.own, queries.trials & ~queries.own
    return bool((genuine.any(axis=1) & impostor.any(axis=1)).any())


def published_thresholds(queries: EventRanks, peaks: Floats) -> Floats:
    """The owner's largest level on the query, for all users claimed, (S, U); NaN without a genuine trial."""
    genuine = queries.own & queries.trials
    level = np.where(genuine.any(axis=1), peaks[np.arange(len(peaks)), np.argmax(genuine, axis=1)], np.nan)
    return np.repeat(level[:, None], peaks.shape[1], axis=1)


def transferable_thresholds(queries: EventRanks, peaks: Floats) -> Floats:
    """The largest level of the claimed user's samples other than the query, (S, U); NaN if there is none."""
    limits = np.full(peaks.shape, np.nan)
    genuine = queries.own & queries.trials
    for u in range(peaks.shape[1]):
        samples = np.flatnonzero(genuine[:, u])
        if len(samples) == 0:
            continue
        limits[:, u] = peaks[samples, u].max()
        for s in samples:
            others = samples[queries.sessions[samples] != queries.sessions[s]]
            limits[s, u] = peaks[others, u].max() if len(others) else np.nan
    return limits


def shared_thresholds(queries: EventRanks, peaks: Floats, share: float = GENUINE_SHARE) -> Floats:
    """The level that this share of the other users' genuine samples do not exceed, (S, U).

    NaN if there is no other user. The claimed user's samples are left out: only the template is known.
    """
    genuine = queries.own & queries.trials
    levels, owner = peaks[genuine], np.nonzero(genuine)[1]
    limits = np.full(peaks.shape, np.nan)
    for u in range(peaks.shape[1]):
        others = levels[owner != u]
        if len(others):
            limits[:, u] = np.quantile(others, share, method="inverted_cdf")
    return limits


LIMITS = {PUBLISHED: published_thresholds, TRANSFERABLE: transferable_thresholds, SHARED: shared_thresholds}


def rejection_times(levels: Floats, offsets: Integers, thresholds: Floats) -> Integers:
    """The index of the first event above the threshold, or the query's length, per template, (S, U)."""
    times = np.empty(thresholds.shape, dtype=np.int64)
    first_times(levels, offsets, thresholds, times)
    return times


def _rejection(
    queries: EventRanks, times: Integers, impostor: Mask, replicates: int, seed: int
) -> tuple[pd.DataFrame, Times]:
    """Each query's mean rejection time over other users' templates, and the mean of these over queries."""
    n_impostors = impostor.sum(axis=1)
    summed = np.where(impostor, times, 0).sum(axis=1)
    tried = n_impostors > 0
    mean = np.divide(summed, n_impostors, out=np.full(len(summed), np.nan), where=tried)
    table = pd.DataFrame(
        {"user": queries.owners, "session": queries.sessions, "fold": queries.folds, "rejection_time": mean}
    )
    values, owners = mean[tried], pd.factorize(queries.owners[tried])[0]
    totals, counts = np.bincount(owners, values), np.bincount(owners)
    low, high = _quotient_interval(totals.astype(np.float64), counts.astype(np.float64), replicates, seed)
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    return table, Times(float(values.mean()), std, low, high, len(values))


def _shares(some: Mask, whole: Mask) -> Floats:
    """The share of `some` in `whole`, both (S, U), for each template that has any queries."""
    asked = whole.any(axis=0)
    shares: Floats = some.sum(axis=0)[asked] / whole.sum(axis=0)[asked]
    return shares


def _rate(values: Floats, trials: int, replicates: int, seed: int) -> Rate:
    return mean_rate(values, int(trials), replicates, seed) if len(values) else unsupported(0, 1)


def _actions(per_user: pd.DataFrame, kind: str, replicates: int, seed: int) -> Actions:
    actions, lockouts = (per_user[f"{kind}_{what}"].to_numpy() for what in ("actions", "lockouts"))
    asked = actions > 0
    low, high = _quotient_interval(
        actions[asked].astype(np.float64), lockouts[asked].astype(np.float64), replicates, seed
    )
    return Actions(int(actions.sum()), int(lockouts.sum()), low, high)


def _quotient_interval(
    above: Floats, below: Floats, replicates: int, seed: int
) -> tuple[float | None, float | None]:
    """The interval over users of Σ above / Σ below, both (U,); None for an end that would be infinite."""
    if len(above) < 2:
        return None, None
    weights = user_weights(len(above), replicates, seed)
    top, bottom = weights @ above, weights @ below
    # Replicates without any lock-out rank last; an end of the interval among them is None.
    quotient = np.divide(top, bottom, out=np.full(len(top), np.inf), where=bottom > 0)
    tail = int(np.ceil((1.0 - CONFIDENCE) / 2.0 * len(quotient)))
    ordered = np.sort(quotient)
    low, high = (float(ordered[place]) for place in (tail - 1, len(ordered) - tail))
    return (low if low < np.inf else None), (high if high < np.inf else None)
