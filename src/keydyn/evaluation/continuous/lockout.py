"""Two ways to watch a session, and the lock-outs that follow from each.

Both give every event a level, which rises with doubt in the claim, and lock the session when the level is
above a threshold. After a lock-out the session starts afresh, with an empty window or full trust.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.continuous.penalty import (
    HIGHEST,
    WINDOW,
    Ranks,
    TrustSettings,
    beaten,
    check_window,
    moved,
    trust,
    window_penalty,
)


class WayToWatch(Protocol):
    """A way to watch a session."""

    name: ClassVar[str]

    def levels(self, queries: EventRanks) -> Floats:
        """The level of each template after every event, (N, U), if the session is never locked."""
        ...

    def lockouts(self, queries: EventRanks, thresholds: Floats) -> Integers:
        """The number of lock-outs of each query under each template, (S, U), at these thresholds (S, U)."""
        ...


@dataclass(frozen=True)
class RankPenalty:
    """The published way to watch, whose level is the sum of the last ranks."""

    name: ClassVar[str] = "rank penalty"
    window: int = WINDOW

    def __post_init__(self) -> None:
        check_window(self.window)

    def levels(self, queries: EventRanks) -> Floats:
        return window_penalty(queries.ranks, queries.offsets, self.window)

    def lockouts(self, queries: EventRanks, thresholds: Floats) -> Integers:
        counts = np.zeros(thresholds.shape, dtype=np.int64)
        count_by_penalty(queries.ranks, queries.offsets, self.window, thresholds, counts)
        return counts


@dataclass(frozen=True)
class PenaltyAndReward:
    """Watching by a trust that falls and rises; the level is 100 minus the trust."""

    name: ClassVar[str] = "penalty and reward"
    settings: TrustSettings = field(default_factory=TrustSettings)

    def levels(self, queries: EventRanks) -> Floats:
        return HIGHEST - trust(queries.ranks, queries.offsets, self.settings)

    def lockouts(self, queries: EventRanks, thresholds: Floats) -> Integers:
        counts = np.zeros(thresholds.shape, dtype=np.int64)
        changes = self.settings.change(beaten(queries.ranks))
        count_by_trust(changes, queries.offsets, thresholds, counts)
        return counts


@compiled
def first_times(levels: Floats, offsets: Integers, thresholds: Floats, times: Integers) -> None:
    """Find the first event, from 0, whose level is above the threshold, else the number of events, (S, U)."""
    for s in range(len(offsets) - 1):
        times[s] = offsets[s + 1] - offsets[s]
        for n in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            for u in range(levels.shape[1]):
                if levels[n, u] > thresholds[s, u]:
                    times[s, u] = n - offsets[s]


@compiled
def count_by_penalty(
    event_ranks: Ranks, offsets: Integers, window: int, thresholds: Floats, counts: Integers
) -> None:
    """Count the lock-outs of each sample under each template; the window is empty after each."""
    n_templates = event_ranks.shape[1]
    total, begin = np.empty(n_templates), np.empty(n_templates, dtype=np.int64)
    for s in range(len(offsets) - 1):
        total[:], begin[:] = 0.0, offsets[s]
        for n in range(offsets[s], offsets[s + 1]):
            for u in range(n_templates):
                total[u] += event_ranks[n, u]
                if n - window >= begin[u]:
                    total[u] -= event_ranks[n - window, u]
                if total[u] > thresholds[s, u]:
                    counts[s, u] += 1
                    total[u], begin[u] = 0.0, n + 1


@compiled
def count_by_trust(changes: Floats, offsets: Integers, thresholds: Floats, counts: Integers) -> None:
    """Count the lock-outs of each sample under each template; trust is full after each."""
    n_templates = changes.shape[1]
    level = np.empty(n_templates)
    for s in range(len(offsets) - 1):
        level[:] = HIGHEST
        for n in range(offsets[s], offsets[s + 1]):
            for u in range(n_templates):
                level[u] = moved(level[u], changes[n, u])
                if HIGHEST - level[u] > thresholds[s, u]:
                    counts[s, u] += 1
                    level[u] = HIGHEST
