"""Levels of continuous verification: the rank penalty in a sliding window (Section 5.3), and trust."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, compiled

WINDOW = 25
# Scores that round to the same multiple of this are ties: their difference is rounding.
TIE = 1e-9
# Ranks are whole numbers and halves, which single precision holds exactly.
Ranks = NDArray[np.floating]


def ranks(event_scores: Floats, enrolled: NDArray[np.bool_] | None = None) -> Floats:
    """The rank of every template at every event, (N, U): 0 is best, ties share their mean rank.

    `enrolled` (U,) marks the columns that are templates; the others get NaN and are left out of the ranking.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import ranks
    >>> ranks(np.array([[-1.0, -3.0, -2.0], [-2.0, -2.0, -9.0]])).tolist()
    [[0.0, 2.0, 1.0], [0.5, 0.5, 2.0]]
    """
    columns = np.ones(event_scores.shape[1], dtype=bool) if enrolled is None else enrolled
    scores = np.ascontiguousarray(event_scores[:, columns], dtype=np.float64)
    if np.isnan(scores).any():
        row = int(np.argwhere(np.isnan(scores))[0][0])
        raise ValueError(f"event {row} has a score that is NaN")
    ranked = np.empty_like(scores)
    mean_ranks(scores, ranked)
    if columns.all():
        return ranked
    with_gaps = np.full(event_scores.shape, np.nan)
    with_gaps[:, columns] = ranked
    return with_gaps


def window_penalty(event_ranks: Ranks, offsets: Integers, window: int = WINDOW) -> Floats:
    """The sum of ranks over the last `window` events of the same sample, (N, U); NaN if the rank is NaN."""
    check_window(window)
    penalty = np.empty(event_ranks.shape)
    window_sums(event_ranks, offsets, window, penalty)
    return penalty


def first_above(penalty: Floats, threshold: float) -> int:
    """The index of the first event whose penalty is above the threshold, or the number of events."""
    above = penalty > threshold
    return int(np.argmax(above)) if above.any() else len(penalty)


def check_window(window: int) -> None:
    """Raise a `ValueError` if the window holds no event."""
    if window < 1:
        raise ValueError(f"window must be 1 or more, not {window}")


@compiled
def mean_ranks(scores: Floats, ranked: Floats) -> None:
    """Write the ranks of each row's scores, largest first, into `ranked`."""
    n_events, n_templates = scores.shape
    rounded = np.empty(n_templates)
    for n in range(n_events):
        for u in range(n_templates):
            rounded[u] = -np.round(scores[n, u] / TIE)
        order = np.argsort(rounded)
        begin = 0
        while begin < n_templates:
            end = begin + 1
            while end < n_templates and rounded[order[end]] == rounded[order[begin]]:
                end += 1
            for place in range(begin, end):
                ranked[n, order[place]] = 0.5 * (begin + end - 1)
            begin = end


@compiled
def window_sums(event_ranks: Ranks, offsets: Integers, window: int, sums: Floats) -> None:
    """Sum the last `window` rows of a sample; sums of halves are exact, so the oldest row is subtracted."""
    n_templates = event_ranks.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for u in range(n_templates):
                total = float(event_ranks[n, u])
                if n > offsets[s]:
                    total += sums[n - 1, u]
                if n - window >= offsets[s]:
                    total -= event_ranks[n - window, u]
                sums[n, u] = total


HIGHEST = 100.0


@dataclass(frozen=True)
class TrustSettings:
    """The parameters of Δ, the change of trust; the defaults are round numbers, not tuned on any samples.

    Attributes
    ----------
    turning : A, the score that leaves trust unchanged; it is above ½, the average score of a claim that
        carries no information, so that trust in a stranger falls
    width : B, the width of the transition from penalty to reward around A
    reward : C, the largest increase by one event
    penalty : D, the largest decrease by one event

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import TrustSettings
    >>> settings = TrustSettings(turning=0.6)
    >>> change = settings.change(np.array([0.0, 0.6, 1.0]))  # of the worst, a neutral and the best score
    >>> np.sign(change.round(6)).astype(int).tolist()
    [-1, 0, 1]
    """

    turning: float = 0.6
    width: float = 0.1
    reward: float = 1.0
    penalty: float = 1.0

    def __post_init__(self) -> None:
        for name in ("width", "reward", "penalty"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a number above 0, not {getattr(self, name)}")
        if not 0.0 < self.turning < 1.0:
            raise ValueError(f"turning must lie between 0 and 1, not {self.turning}")

    def change(self, scores: Floats) -> Floats:
        """Δ, the change of trust, for each score; NaN for NaN."""
        inverse = 1.0 / self.reward
        change: Floats = (self.turning - np.ascontiguousarray(scores)) / self.width
        # exp would overflow above 709; the penalty reaches its limit long before. The array is large, so all
        # steps work in place.
        np.exp(np.minimum(change, 700.0, out=change), out=change)
        change += inverse
        np.divide(self.penalty * (1.0 + inverse), change, out=change)
        change -= self.penalty
        return np.minimum(change, self.reward, out=change)


def beaten(event_ranks: Ranks) -> Floats:
    """The share of the other templates that each template beats at each event, (N, U); ties count half."""
    n_templates = (~np.isnan(event_ranks)).sum(axis=1, keepdims=True)
    if (n_templates < 2).any():
        raise ValueError("trust by rank needs two templates or more, which are compared")
    share: Floats = 1.0 - np.asarray(event_ranks, dtype=np.float64) / (n_templates - 1)
    return share


def trust(event_ranks: Ranks, offsets: Integers, settings: TrustSettings | None = None) -> Floats:
    """The trust in each template's claim after every event, (N, U); every sample begins with full trust."""
    changes = (settings or TrustSettings()).change(beaten(event_ranks))
    level = np.empty_like(changes)
    trust_walk(changes, offsets, level)
    return level


@compiled
def moved(level: float, change: float) -> float:
    """Trust after a change, kept between 0 and 100."""
    return min(max(level + change, 0.0), HIGHEST)


@compiled
def trust_walk(changes: Floats, offsets: Integers, level: Floats) -> None:
    """Write the trust after every event of every sample into `level`."""
    n_templates = changes.shape[1]
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            for u in range(n_templates):
                before = HIGHEST if n == offsets[s] else level[n - 1, u]
                change = changes[n, u]
                # min and max would turn NaN, a missing score, into a number.
                level[n, u] = change if np.isnan(change) else moved(before, change)
