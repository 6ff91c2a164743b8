"""Scored claims of any system: the person claimed, the person who typed, and how well they matched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.evaluation.scores import Scores
from keydyn.short_repr import short_repr

# The largest matrix of samples by templates that is built for identification: 400 MB.
MOST_COMPARISONS = 50_000_000


@dataclass(frozen=True, eq=False)
class ScoredClaims:
    """Claims with their scores; a higher score is more genuine.

    Attributes
    ----------
    score : (n,)
    genuine : (n,) whether the person claimed is the one who typed
    claimed, typist : (n,) indices of the two in `people`; all 0 if the people are not known
    sample : (n,) the number of the sample that was typed; one sample may be compared with several people
    people : names; empty if the people are not known
    attack : (n,) the index of the kind of attack in `attacks`, −1 for a claim that is not an attack; or None

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.evaluation import ScoredClaims
    >>> rows = [("ann", "ann", 1, 2.5), ("ann", "bob", 2, 0.1), ("bob", "bob", 2, 1.5)]
    >>> rows += [("bob", "ann", 1, 0.4)]
    >>> claims = ScoredClaims.of(pd.DataFrame(rows, columns=["claimed", "real", "sample", "score"]))
    >>> claims.genuine.tolist(), claims.people, claims.trials
    ([True, False, True, False], ('ann', 'bob'), (2, 2))
    """

    score: Floats
    genuine: Truths
    claimed: Integers
    typist: Integers
    sample: Integers
    people: tuple[str, ...] = ()
    attack: Integers | None = None
    attacks: tuple[str, ...] = ()

    __repr__ = short_repr

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ScoredClaims:
        """Make claims from a frame with the columns claimed, real, sample, score and, optionally, attack.

        A person's name is any text; `attack` is empty for a claim that is not an attack.
        """
        both = pd.concat([frame["claimed"], frame["real"]], ignore_index=True)
        place, people = pd.factorize(both)
        claimed, typist = place[: len(frame)].astype(np.int64), place[len(frame) :].astype(np.int64)
        # Samples of different people may have the same name.
        sample = pd.factorize(typist * (len(frame) + 1) + pd.factorize(frame["sample"])[0])[0]
        made = cls(
            frame["score"].to_numpy(dtype=np.float64),
            claimed == typist,
            claimed,
            typist,
            sample.astype(np.int64),
            tuple(map(str, people)),
        )
        if "attack" not in frame:
            return made
        kind, kinds = pd.factorize(frame["attack"].astype("str").replace("", None))
        return replace(made, attack=kind.astype(np.int64), attacks=tuple(map(str, kinds)))

    @classmethod
    def without_people(cls, genuine: Floats, impostor: Floats) -> ScoredClaims:
        """Make claims from genuine (G,) and impostor (I,) scores, if the people are not known."""
        n = len(genuine) + len(impostor)
        is_genuine = np.arange(n) < len(genuine)
        nobody = np.zeros(n, dtype=np.int64)
        return cls(np.concatenate([genuine, impostor]), is_genuine, nobody, nobody, np.arange(n))

    def __len__(self) -> int:
        return len(self.score)

    def where(self, which: Truths) -> ScoredClaims:
        """The claims selected by a mask (n,)."""
        return replace(
            self,
            score=self.score[which],
            genuine=self.genuine[which],
            claimed=self.claimed[which],
            typist=self.typist[which],
            sample=self.sample[which],
            attack=None if self.attack is None else self.attack[which],
        )

    @cached_property
    def plain(self) -> ScoredClaims:
        """The claims that are not attacks."""
        return self if self.attack is None else self.where(self.attack < 0)

    @property
    def scores(self) -> tuple[Floats, Floats]:
        """The scores of genuine and of impostor claims, without attacks."""
        return self.plain.score[self.plain.genuine], self.plain.score[~self.plain.genuine]

    @property
    def trials(self) -> tuple[int, int]:
        """The numbers of samples in genuine and in impostor claims, each sample counted once."""
        sample, genuine = self.plain.sample, self.plain.genuine
        return len(np.unique(sample[genuine])), len(np.unique(sample[~genuine]))

    @cached_property
    def by_user(self) -> tuple[Integers, list[Floats], list[Floats]]:
        """The people claimed, and the sorted genuine and impostor scores of each; attacks are left out."""
        claims = self.plain
        order = np.lexsort((claims.score, claims.genuine, claims.claimed))
        score, user = claims.score[order], claims.claimed[order]
        group = 2 * user + claims.genuine[order]
        who = np.unique(user)
        edges = np.searchsorted(group, np.concatenate([2 * who, 2 * who + 1, 2 * who + 2]))
        first, second, end = edges.reshape(3, -1)
        impostor = [score[a:b] for a, b in zip(first, second, strict=True)]
        return who, [score[a:b] for a, b in zip(second, end, strict=True)], impostor

    @property
    def has_people(self) -> bool:
        """Whether there are several people, so that an interval over people can be given."""
        return len(self.people) > 1 and len(self.by_user[0]) > 1

    @cached_property
    def matrix(self) -> Scores | None:
        """Scores by sample and template, for identification; None unless all samples met all templates."""
        claims = self.plain
        samples, first, query = np.unique(claims.sample, return_index=True, return_inverse=True)
        users, template = np.unique(claims.claimed, return_inverse=True)
        shape = (len(samples), len(users))
        if not self.people or len(users) < 2 or shape[0] * shape[1] != len(claims):
            return None
        raw = np.full(shape, np.nan)
        raw[query, template] = claims.score
        if len(claims) > MOST_COMPARISONS or np.isnan(raw).any():
            return None
        names, fold = np.array(self.people, dtype=object), np.zeros(len(samples), dtype=np.int64)
        owners, whole = names[claims.typist[first]], np.ones(shape, dtype=bool)
        return Scores(owners, samples, fold, names[users], raw, whole, "none")
