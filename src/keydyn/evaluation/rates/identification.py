"""Identification: the rank of the owner's template among all templates (closed set).

Templates that tie share their ranks. With b templates above the owner's and t tied, including the owner's,
the owner is among the first n in a share (n − b)/t of all ways to break the tie, limited to 0 … 1. So a
detector gains nothing from scores that are all equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import REPLICATES, Rate, bootstrap_mean, mean_rate
from keydyn.evaluation.scores import Scores
from keydyn.short_repr import short_repr

RANKS = (1, 5, 10)


@dataclass(frozen=True, eq=False)
class IdentificationRates:
    """Identification rates: the share of samples whose owner is among the first n.

    Attributes
    ----------
    per_user : one row per user: queries, and acc, the share at rank 1
    cmc : (U,) the cumulative match characteristic, mean over users; low, high : its 95 % band
    accuracy : the mean over users of the share at rank 1
    overall : (U,) the rate at rank 1 … U over all queries together
    left_out : the number of queries without a template of their owner, or whose comparison is not a trial
    """

    per_user: pd.DataFrame
    cmc: Floats
    low: Floats
    high: Floats
    accuracy: Rate
    overall: Floats
    left_out: int

    __repr__ = short_repr

    def rate(self, n: int) -> float:
        """The mean over users of the rank-n identification rate; 1 if n covers all templates."""
        if n < 1:
            raise ValueError(f"ranks begin at 1, not {n}")
        return float(self.cmc[min(n, len(self.cmc)) - 1])

    def to_frame(self) -> pd.DataFrame:
        """One row per rank: rank, rate, low, high, overall."""
        ranks = np.arange(1, len(self.cmc) + 1)
        return pd.DataFrame(
            {"rank": ranks, "rate": self.cmc, "low": self.low, "high": self.high, "overall": self.overall}
        )


def identification(scores: Scores, replicates: int = REPLICATES, seed: int = 0) -> IdentificationRates:
    """Compute rank-n identification rates with a 95 % band by bootstrap over users.

    A query counts if its owner has a template and their comparison is a genuine trial. Normalisation does not
    change the order of templates, so raw scores are used.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, identification, score_protocol
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> found = identification(scores)
    >>> 0.0 <= found.accuracy.value <= 1.0, found.rate(4)
    (True, 1.0)
    """
    own_trial = scores.own & scores.trials
    counted = own_trial.any(axis=1)
    if not counted.any():
        raise ValueError("no query has its owner among the templates, so no sample can be identified")
    owner = np.argmax(own_trial[counted], axis=1)
    raw = scores.raw[counted]
    genuine = raw[np.arange(len(raw)), owner][:, None]
    # A user who is not enrolled has NaN, for which every comparison is false, and so is not a candidate.
    above, tied = (raw > genuine).sum(axis=1), (raw == genuine).sum(axis=1)
    ranks = np.arange(1, len(scores.users) + 1)
    within = np.clip((ranks[None, :] - above[:, None]) / tied[:, None], 0.0, 1.0)
    queries = np.bincount(owner, minlength=len(scores.users))
    asked = np.flatnonzero(queries)
    each = np.stack([np.bincount(owner, column, minlength=len(queries)) for column in within.T], axis=1)
    per_user_cmc = each[asked] / queries[asked, None]
    low, high = bootstrap_mean(per_user_cmc, replicates, seed)
    names = scores.users.tolist()
    per_user = pd.DataFrame(
        {"user": [names[u] for u in asked], "queries": queries[asked], "acc": per_user_cmc[:, 0]}
    )
    return IdentificationRates(
        per_user.set_index("user"),
        per_user_cmc.mean(axis=0),
        low,
        high,
        mean_rate(per_user_cmc[:, 0], int(queries.sum()), replicates, seed),
        within.mean(axis=0),
        int((~counted).sum()),
    )
