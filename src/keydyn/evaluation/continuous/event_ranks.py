"""The rank of every template at every event of every query; the input of continuous verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.continuous.penalty import ranks
from keydyn.evaluation.scores import Mask, Queries, queries_of
from keydyn.short_repr import short_repr

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EventRanks(Queries):
    """The ranks of templates at every event of queries; rank 0 is best.

    Attributes
    ----------
    owners, sessions, folds, users : as in `Queries`
    offsets : (S + 1,) where each query's events begin
    ranks : (N, U), whole numbers and halves; NaN if the user is not enrolled in that fold
    trials : (S, U) a mask of the comparisons that are trials, genuine or impostor: ranks are among all
        templates, but a protocol need not try every query against every template
    """

    offsets: Integers
    ranks: Singles
    trials: Mask

    __repr__ = short_repr

    def __post_init__(self) -> None:
        shape = (int(self.offsets[-1]), len(self.users))
        if self.ranks.shape != shape:
            raise ValueError(f"ranks must have the shape {shape}, not {self.ranks.shape}")
        parts = (self.owners, self.sessions, self.folds)
        if len(self.owners) == 0 or any(len(part) != len(self.offsets) - 1 for part in parts):
            raise ValueError("there must be a query or more, each with an owner, a session and a fold")
        shape = (len(self.owners), len(self.users))
        if self.trials.shape != shape:
            raise ValueError(f"trials must have the shape {shape}, not {self.trials.shape}")
        if (self.lengths < 1).any():
            raise ValueError(f"{self.name(int(np.argmin(self.lengths)))} has no events")
        partly = np.isnan(self.ranks) != np.repeat(~self.enrolled, self.lengths, axis=0)
        if partly.any():
            n, u = (int(place) for place in np.argwhere(partly)[0])
            s = int(np.searchsorted(self.offsets, n, side="right")) - 1
            raise ValueError(
                f"{self.name(s)}, event {n - int(self.offsets[s])}: the rank of the template of user "
                f"{self.users[u]} is NaN, though others of the query are not"
            )
        if (self.trials & ~self.enrolled).any():
            s, u = (int(place) for place in np.argwhere(self.trials & ~self.enrolled)[0])
            raise ValueError(f"{self.name(s)}: a trial, but user {self.users[u]} has no template")

    @classmethod
    def of_scores(
        cls, queries: Queries, offsets: Integers, event_scores: Floats, trials: Mask | None = None
    ) -> EventRanks:
        """Rank the event scores (N, U) of queries of one fold; a column of NaN is a user without a template.

        Without `trials` (S, U) every query is tried against every template.
        """
        enrolled = np.asarray(~np.isnan(event_scores).all(axis=0))
        ranked = ranks(event_scores, enrolled).astype(np.float32)
        tried = np.tile(enrolled, (len(queries.owners), 1)) if trials is None else trials
        parts = queries.owners, queries.sessions, queries.folds, queries.users
        return cls(*parts, offsets, ranked, tried)

    @classmethod
    def joined(cls, parts: Sequence[EventRanks]) -> EventRanks:
        """Join the queries of several folds, which must have the same users in the same order."""
        if not parts:
            raise ValueError("there are no queries")
        if any(part.users.tolist() != parts[0].users.tolist() for part in parts):
            raise ValueError("the parts have different users, or in another order")
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(
            np.concatenate([part.owners for part in parts]),
            np.concatenate([part.sessions for part in parts]),
            np.concatenate([part.folds for part in parts]),
            parts[0].users,
            _offsets(lengths),
            np.concatenate([part.ranks for part in parts]),
            np.concatenate([part.trials for part in parts]),
        )

    @property
    def lengths(self) -> Integers:
        """The number of events of each query, (S,)."""
        return np.diff(self.offsets)

    @property
    def enrolled(self) -> Mask:
        """A mask of the users who have a template in each query's fold, (S, U)."""
        return np.asarray(~np.isnan(self.ranks[self.offsets[:-1]]))

    def to_frame(self) -> pd.DataFrame:
        """One row per query and template: fold, user, session, reference, trial, ranks (one per event)."""
        enrolled = self.enrolled
        s, u = np.nonzero(enrolled)
        rows: list[Singles] = []
        for query in range(len(self.owners)):
            block = self.ranks[self.offsets[query] : self.offsets[query + 1]]
            rows.extend(np.ascontiguousarray(block[:, enrolled[query]].T))
        of_ranks = {"trial": self.trials[s, u], "ranks": pd.Series(rows, dtype=object)}
        return pd.DataFrame(self.labels(s, u) | of_ranks)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> EventRanks:
        """Read a frame made by `to_frame`, or its Parquet file; queries and templates keep their order."""
        if len(frame) == 0:
            raise ValueError("there are no queries")
        query, labels = queries_of(frame)
        template, users = pd.factorize(np.asarray(frame["reference"]))
        first = np.unique(query, return_index=True)[1]
        column = frame["ranks"].to_numpy()
        row_lengths = np.fromiter(map(len, column), dtype=np.int64, count=len(column))
        if (row_lengths != row_lengths[first][query]).any():
            row = int(np.argmax(row_lengths != row_lengths[first][query]))
            raise ValueError(f"row {row} has {row_lengths[row]} ranks, unlike another template of the query")
        offsets = _offsets(row_lengths[first])
        event_ranks = np.full((offsets[-1], len(users)), np.nan, dtype=np.float32)
        starts = np.cumsum(row_lengths) - row_lengths
        event = np.arange(row_lengths.sum()) + np.repeat(offsets[query] - starts, row_lengths)
        event_ranks[event, np.repeat(template, row_lengths)] = np.concatenate(column)
        trials = np.zeros((len(first), len(users)), dtype=bool)
        trials[query, template] = frame["trial"]
        return cls(*labels, users, offsets, event_ranks, trials)


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
