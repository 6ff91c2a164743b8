"""Protocols: which samples enrol, which are queries, who the impostors are, and how scores are normalised.

A figure means nothing without its protocol, so a protocol is an object that describes itself in full, and
every table and report names the one that its figures come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.evaluation.scores import Mask
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

CLOSED = "closed set: every impostor is an enrolled user, and is in the cohort that normalises"
MIN_MAX = "each query's scores scaled to 0 … 1 over all enrolled templates"


@dataclass(frozen=True, eq=False)
class Split:
    """One enrolment and its queries, as masks over the samples.

    Attributes
    ----------
    train : samples that templates learn from; a user without any is not enrolled
    genuine : queries tried against their owner's template
    impostor : queries tried against other users' templates
    """

    train: Mask
    genuine: Mask
    impostor: Mask

    __repr__ = short_repr

    @property
    def query(self) -> Mask:
        return self.genuine | self.impostor


class Protocol(ABC):
    """A way to compare detectors.

    Class attributes
    ----------------
    name, title : its name on the command line, and in reports
    citation : its source; empty if it is common practice
    impostors : a description of the impostors
    normalisation : "min-max" or "none"
    prepared_on : "all samples" or "training samples": those from which a detector learns scales of features
    least : the least number of samples that a user must have

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Chronological, Enrolment, LeaveOneOut, MonacoTappert
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(4, 5))
    >>> for protocol in (LeaveOneOut(), MonacoTappert(), Chronological(share=0.6), Enrolment(samples=2)):
    ...     splits = protocol.splits(samples)
    ...     print(protocol.name, len(splits), int(splits[0].train.sum()), int(splits[0].query.sum()))
    leave-one-out 5 16 4
    published 5 16 4
    chronological 1 12 8
    enrolment 1 8 12
    >>> protocols = [LeaveOneOut(), MonacoTappert(), Chronological(), Enrolment()]
    >>> sorted(protocols[0].describe())
    ['citation', 'impostors', 'normalisation', 'protocol', 'scales', 'split', 'title']
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str] = ""
    impostors: str = CLOSED
    normalisation: str = "min-max"
    prepared_on: str = "training samples"
    least: int = 2

    @property
    @abstractmethod
    def split(self) -> str:
        """A description of the split into training samples and queries."""

    @abstractmethod
    def divided(self, samples: Samples) -> list[Split]:
        """All enrolments, without checking that each user has enough samples."""

    def splits(self, samples: Samples) -> list[Split]:
        """All enrolments; a `ValueError` names a user who has too few samples."""
        users, counts = user_counts(samples)
        if len(users) < 2:
            raise ValueError(f"{self.title} needs 2 users or more; there is {len(users)}")
        few = counts < self.least
        if few.any():
            u = int(np.argmax(few))
            raise ValueError(
                f"{self.title} needs {self.least} samples or more of each user; "
                f"user {users[u]} has {counts[u]}"
            )
        return self.divided(samples)

    def describe(self) -> dict[str, str]:
        """A full description of the protocol for readers of a report, by item."""
        normalised = MIN_MAX if self.normalisation == "min-max" else "none: scores as the detector gives them"
        prepared = self.prepared_on + (", queries included" if self.prepared_on == "all samples" else "")
        return {
            "protocol": self.name,
            "title": self.title,
            "split": self.split,
            "normalisation": normalised,
            "impostors": self.impostors,
            "scales": f"detectors that scale features take the scales from {prepared}",
            "citation": self.citation,
        }


@dataclass(frozen=True)
class LeaveOneOut(Protocol):
    """A protocol that scores each sample in turn against templates that learnt from all others."""

    name: ClassVar[str] = "leave-one-out"
    title: ClassVar[str] = "Leave one sample out"

    @property
    def split(self) -> str:
        return "each user's n-th sample is a query and all others train, for every n"

    def divided(self, samples: Samples) -> list[Split]:
        return _each_left_out(samples)


@dataclass(frozen=True)
class MonacoTappert(Protocol):
    """The protocol of the paper's recognition tables.

    It leaves one sample out unless `train` and `test` give half-open ranges of sample numbers, as for the
    password data.
    """

    train: tuple[int, int] | None = None
    test: tuple[int, int] | None = None
    prepared_on: str = "all samples"

    name: ClassVar[str] = "published"
    title: ClassVar[str] = "Monaco and Tappert's protocol"
    citation: ClassVar[str] = (
        "J. V. Monaco and C. C. Tappert, The partially observable hidden Markov model and its application to "
        "keystroke dynamics, Pattern Recognition 76 (2018)"
    )

    @classmethod
    def password(cls) -> MonacoTappert:
        """The protocol for the password data: repetitions 150–199 train, 200–399 are queries."""
        return cls((150, 200), (200, 400))

    @property
    def split(self) -> str:
        if self.train is None or self.test is None:
            return LeaveOneOut().split
        return (
            f"each user's samples {self.train[0]}–{self.train[1] - 1} (from 0) train, "
            f"{self.test[0]}–{self.test[1] - 1} are queries"
        )

    def divided(self, samples: Samples) -> list[Split]:
        if self.train is None or self.test is None:
            return _each_left_out(samples)
        number = samples.numbers
        train, queries = ((number >= first) & (number < end) for first, end in (self.train, self.test))
        return [Split(train, queries, queries)]


@dataclass(frozen=True)
class KillourhyMaxion(Protocol):
    """The protocol of Killourhy and Maxion for the CMU password data."""

    impostors: str = "the first 5 samples of every other user, all of whom are enrolled"
    normalisation: str = "none"
    least: int = 201

    name: ClassVar[str] = "killourhy-maxion"
    title: ClassVar[str] = "Killourhy and Maxion's protocol"
    citation: ClassVar[str] = (
        "K. S. Killourhy and R. A. Maxion, Comparing anomaly-detection algorithms for keystroke dynamics, "
        "DSN 2009"
    )
    training: ClassVar[int] = 200
    from_each_impostor: ClassVar[int] = 5

    @property
    def split(self) -> str:
        return "each user's first 200 samples train, the later ones are genuine"

    def divided(self, samples: Samples) -> list[Split]:
        number = samples.numbers
        late = number >= self.training
        return [Split(~late, late, number < self.from_each_impostor)]


@dataclass(frozen=True)
class Chronological(Protocol):
    """A protocol that trains on each user's earlier samples and tests on the later ones."""

    share: float = 0.5

    name: ClassVar[str] = "chronological"
    title: ClassVar[str] = "Past and future"

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"the share of samples that train must be between 0 and 1, not {self.share}")

    @property
    def split(self) -> str:
        return (
            f"the first {100 * self.share:.12g} % of each user's samples in the order given (at least one) "
            "train, later ones are queries"
        )

    def divided(self, samples: Samples) -> list[Split]:
        users, counts = user_counts(samples)
        enough = np.clip(np.floor(self.share * counts + 1e-9).astype(np.int64), 1, counts - 1)
        limit = pd.Series(enough, index=users).loc[samples.users].to_numpy()
        early = samples.numbers < limit
        return [Split(early, ~early, ~early)]


@dataclass(frozen=True)
class Enrolment(Protocol):
    """A protocol in which a few samples of each user enrol, and all later ones are queries."""

    samples: int = 5
    least: int = field(init=False, default=0)

    name: ClassVar[str] = "enrolment"
    title: ClassVar[str] = "Few samples for enrolment"

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"at least 1 sample must enrol, not {self.samples}")
        object.__setattr__(self, "least", self.samples + 1)

    @property
    def split(self) -> str:
        return f"each user's first {self.samples} samples train, the later ones are queries"

    def divided(self, samples: Samples) -> list[Split]:
        early = samples.numbers < self.samples
        return [Split(early, ~early, ~early)]


@dataclass(frozen=True)
class Across(Protocol):
    """A protocol that trains under some conditions and tests under others, such as sessions or devices.

    `enrolled` holds the user and session of each training sample, `words` describes the split.
    """

    enrolled: frozenset[tuple[Hashable, Hashable]] = frozenset()
    words: str = ""

    name: ClassVar[str] = "across"
    title: ClassVar[str] = "Across conditions"

    @property
    def split(self) -> str:
        return self.words

    def divided(self, samples: Samples) -> list[Split]:
        train = np.array([name in self.enrolled for name in samples.names], dtype=bool)
        known = np.isin(samples.users, samples.users[train])
        return [Split(train, ~train & known, ~train)]


@dataclass(frozen=True)
class OpenSet(Protocol):
    """Another protocol with the change that every impostor is unknown to the system.

    Users are dealt into groups. Each group in turn is left out of enrolment, cohorts and scales, and its
    queries are the impostors'. The genuine queries are those of the next group, which is enrolled. So each
    query is genuine once and an impostor's once, and no trial is counted twice.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, OpenSet
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(6, 5))
    >>> first = OpenSet(Enrolment(samples=3), groups=3).splits(samples)[0]
    >>> set(samples.users[first.train]) & set(samples.users[first.impostor])  # impostors are strangers
    set()
    """

    inner: Protocol = field(default_factory=LeaveOneOut)
    groups: int = 10

    name: ClassVar[str] = "open-set"
    title: ClassVar[str] = "Open set"

    def __post_init__(self) -> None:
        if self.groups < 2:
            raise ValueError(f"an open set needs 2 groups of users or more, not {self.groups}")
        if isinstance(self.inner, OpenSet):
            raise ValueError("the inner protocol is an open set already")
        object.__setattr__(self, "normalisation", self.inner.normalisation)
        object.__setattr__(self, "least", self.inner.least)
        object.__setattr__(
            self,
            "impostors",
            f"open set: users in {self.groups} groups (of one user, if they are fewer), each in turn unknown "
            "to the system: not enrolled, in no cohort, and no scale learnt from them",
        )

    @property
    def split(self) -> str:
        return self.inner.split

    def divided(self, samples: Samples) -> list[Split]:
        codes, users = samples.people
        if len(users) < 3:
            raise ValueError(f"an open set needs 3 users or more; there are {len(users)}")
        n_groups = min(self.groups, len(users))
        group = codes % n_groups
        enrolled = len(users) - int(np.bincount(np.arange(len(users)) % n_groups).max())
        if enrolled < 2:
            raise ValueError(
                f"an open set of {len(users)} users in {n_groups} groups leaves {enrolled} enrolled, which "
                "is not a cohort: more groups are needed"
            )
        splits = [
            Split(
                split.train & (group != g),
                split.genuine & (group == (g + 1) % n_groups),
                split.impostor & (group == g),
            )
            for split in self.inner.divided(samples)
            for g in range(n_groups)
        ]
        # If users have different numbers of samples, the users of these two groups may have no query.
        return [split for split in splits if split.query.any()]


def user_counts(samples: Samples) -> tuple[Integers, Integers]:
    """Users in the order of first appearance, and the number of samples of each."""
    codes, users = samples.people
    return users, np.bincount(codes, minlength=len(users))


def _each_left_out(samples: Samples) -> list[Split]:
    number = samples.numbers
    folds = range(int(number.max()) + 1)
    return [Split(number != n, number == n, number == n) for n in folds]
