"""The scores of a detector under a protocol, a matrix of queries by templates; the input of all metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data.vocabulary import Types
from keydyn.short_repr import short_repr

Mask = NDArray[np.bool_]
NORMALISATIONS = ("min-max", "none")


@dataclass(frozen=True, eq=False)
class Queries:
    """Samples to compare with templates.

    Attributes
    ----------
    owners : (Q,) the user who typed each query; sessions : (Q,) its session, unique among that user's samples
    folds : (Q,) the number of the split whose templates it is scored against
    users : (U,) the users of the templates
    """

    owners: Types
    sessions: Types
    folds: Integers
    users: Types

    @property
    def own(self) -> Mask:
        """A mask of each query's own template, (Q, U): the template of the user who typed it."""
        own: Mask = self.owners[:, None] == self.users[None, :]
        return own

    def name(self, q: int) -> str:
        """A description of a query, for messages."""
        return f"user {self.owners[q]}, session {self.sessions[q]}"

    def labels(self, q: Integers, u: Integers) -> dict[str, Types | Integers]:
        """The columns that identify comparisons: fold, user, session and reference, (n,) each."""
        return {
            "fold": self.folds[q],
            "user": self.owners[q],
            "session": self.sessions[q],
            "reference": self.users[u],
        }


@dataclass(frozen=True, eq=False)
class Scores(Queries):
    """Queries scored against templates; a higher score is more genuine.

    Attributes
    ----------
    owners, sessions, folds, users : as in `Queries`
    raw : (Q, U) the detector's scores; NaN if the user is not enrolled in that fold
    trials : (Q, U) a mask of the comparisons that are verification trials, genuine or impostor
    normalisation : "min-max" scales each query's scores to 0 … 1 over the templates, "none" keeps them

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, score_protocol
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 5)))
    >>> scores.raw.shape, scores.users.tolist()
    ((20, 4), [0, 1, 2, 3])
    >>> genuine, impostor = scores.trials_of(0)
    >>> len(genuine), len(impostor)
    (5, 15)
    """

    raw: Floats
    trials: Mask
    normalisation: str = "min-max"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.normalisation not in NORMALISATIONS:
            raise ValueError(
                f"normalisation must be one of {', '.join(NORMALISATIONS)}, not {self.normalisation!r}"
            )
        shape = (len(self.owners), len(self.users))
        if self.raw.shape != shape or self.trials.shape != shape:
            raise ValueError(f"scores must have the shape {shape}, not {self.raw.shape}")
        wrong = self.trials & (np.isnan(self.raw) | np.isposinf(self.raw))
        if wrong.any():
            q, u = (int(place) for place in np.argwhere(wrong)[0])
            problem = "NaN" if np.isnan(self.raw[q, u]) else "+∞"
            raise ValueError(
                f"the score of {self.name(q)} against the template of user {self.users[u]} is {problem}"
            )

    @property
    def normalised(self) -> Floats:
        """The scores, normalised as the protocol requires."""
        return self.raw if self.normalisation == "none" else min_max(self.raw)

    @property
    def open_set(self) -> Floats:
        """The scores, normalised as if each impostor were unknown: without the impostor's own template.

        Genuine comparisons are normalised over the whole cohort.
        """
        if self.normalisation == "none":
            return self.raw
        own = self.own
        return np.where(own, min_max(self.raw), min_max(np.where(own, np.nan, self.raw)))

    @property
    def has_open_set(self) -> bool:
        """Whether all impostors' cohorts have two or more templates of others, or nothing is normalised."""
        own = self.own
        cohort = (~np.isnan(self.raw) & ~own).sum(axis=1)
        tried = (self.trials & ~own).any(axis=1)
        return self.normalisation == "none" or bool((cohort[tried] > 1).all())

    @property
    def identified(self) -> Mask:
        """A mask of the queries that can be identified because their owner is enrolled, (Q,)."""
        return np.asarray((self.own & ~np.isnan(self.raw)).any(axis=1))

    def trials_of(self, u: int, values: Floats | None = None) -> tuple[Floats, Floats]:
        """Genuine and impostor scores against template `u`, normalised or from `values` (Q, U)."""
        column = (self.normalised if values is None else values)[:, u]
        trial, own = self.trials[:, u], self.owners == self.users[u]
        return column[trial & own], column[trial & ~own]

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison: fold, user, session, reference, score, trial."""
        q, u = np.nonzero(~np.isnan(self.raw))
        return pd.DataFrame(self.labels(q, u) | {"score": self.raw[q, u], "trial": self.trials[q, u]})

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, normalisation: str = "min-max") -> Scores:
        """Read a frame made by `to_frame`; queries keep their order, users are in order of appearance."""
        query, labels = queries_of(frame)
        # The first fold of an open set lacks some templates, so references alone would be out of order.
        owners, references = pd.unique(frame["user"]), pd.unique(frame["reference"])
        seen = pd.unique(np.concatenate([np.asarray(owners), np.asarray(references)]))
        users = seen[np.isin(seen, np.asarray(references))]
        reference = frame["reference"].astype("category").cat.remove_unused_categories()
        template = reference.cat.set_categories(users).cat.codes.to_numpy()
        raw = np.full((query.max() + 1, len(users)), np.nan)
        trials = np.zeros(raw.shape, dtype=bool)
        raw[query, template] = frame["score"]
        trials[query, template] = frame["trial"]
        return cls(*labels, users, raw, trials, normalisation)


def queries_of(frame: pd.DataFrame) -> tuple[Integers, tuple[Types, Types, Integers]]:
    """The number of each row's query, in order of appearance, and each query's owner, session and fold."""
    groups = frame.groupby(["fold", "user", "session"], sort=False, observed=True)
    query: Integers = groups.ngroup().to_numpy().astype(np.int64)
    first = frame.iloc[np.unique(query, return_index=True)[1]]
    fold = np.asarray(first["fold"], dtype=np.int64)
    return query, (np.asarray(first["user"]), np.asarray(first["session"]), fold)


def min_max(raw: Floats) -> Floats:
    """Each row scaled to 0 … 1 over its finite scores; NaN stays, −∞ becomes 0, equal scores all become 0."""
    finite = np.where(np.isfinite(raw), raw, np.nan)
    scaled = np.where(np.isnan(raw), np.nan, 0.0)
    some = np.isfinite(raw).any(axis=1)
    lowest = np.nanmin(finite[some], axis=1, keepdims=True)
    width = np.nanmax(finite[some], axis=1, keepdims=True) - lowest
    part = np.zeros_like(finite[some])
    np.divide(finite[some] - lowest, width, out=part, where=width > 0)
    scaled[some] = np.where(np.isfinite(raw[some]), part, scaled[some])
    return scaled
