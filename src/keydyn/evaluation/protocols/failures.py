"""Failure to acquire and failure to enrol (ISO/IEC 19795-1), counted and named.

A sample that cannot be used is a failure to acquire; a user without enough usable samples is a failure to
enrol. The error rates of comparisons, FMR and FNMR, cover only the rest, so that a system that left out
everything difficult would look good. Therefore FTA and FTE are reported with them, and
`Failures.of_transactions` and `Failures.generalised` compute the rates with failures counted as rejections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.confidence import REPLICATES, Rate, mean_rate
from keydyn.evaluation.scores import Mask
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

MIN_KEYS = 2


@dataclass(frozen=True, eq=False)
class Failures:
    """Samples and users that cannot take part in an evaluation.

    Attributes
    ----------
    to_acquire : user, session and reason of each sample that cannot be used
    to_enrol : user, number of usable samples and reason of each user with too few
    kept : (n,) a mask of the usable samples of users who can be enrolled
    fta : failure-to-acquire rate, all samples together; fte : failure-to-enrol rate, a share of users
    """

    to_acquire: pd.DataFrame
    to_enrol: pd.DataFrame
    kept: Mask
    fta: Rate
    fte: Rate

    __repr__ = short_repr

    def of_transactions(self, fmr: float, fnmr: float) -> tuple[float, float]:
        """False acceptance and rejection rates of single attempts: a failure to acquire is a rejection."""
        fta = self.fta.value or 0.0
        return fmr * (1.0 - fta), fta + fnmr * (1.0 - fta)

    def generalised(self, fmr: float, fnmr: float) -> tuple[float, float]:
        """Generalised false acceptance and rejection rates: a failure to enrol is a rejection too."""
        accepted, rejected = self.of_transactions(fmr, fnmr)
        fte = self.fte.value or 0.0
        return accepted * (1.0 - fte), fte + rejected * (1.0 - fte)

    def text(self) -> str:
        """A summary line for a report; the tables name those that failed."""
        n_samples, n_users = len(self.kept), self.fte.trials
        return (
            f"failure to acquire: {len(self.to_acquire)} of {n_samples} samples; "
            f"failure to enrol: {len(self.to_enrol)} of {n_users} users"
        )


def find_failures(
    samples: Samples,
    needed: int = 2,
    min_keys: int = MIN_KEYS,
    vectors: bool = True,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Failures:
    """Find the samples and users that a protocol cannot use.

    `needed` is the number of samples that a user must have: those that enrol and one query. `vectors` tells
    whether detectors of feature vectors take part, which need every value; models of sequences do not.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import find_failures
    >>> from keydyn.keystrokes import Samples
    >>> failures = find_failures(Samples.of(make_typists(4, 5)), needed=6)
    >>> int(failures.kept.sum()), len(failures.to_enrol)
    (0, 4)
    """
    if len(samples) == 0:
        raise ValueError("there are no samples")
    for name, value in (("needed", needed), ("min_keys", min_keys)):
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, not {value}")
    reasons = _reasons(samples, min_keys, vectors)
    usable = np.array([reason == "" for reason in reasons])
    codes, users = samples.people
    n_usable = np.bincount(codes, usable, minlength=len(users)).astype(np.int64)
    few = n_usable < needed
    to_enrol = pd.DataFrame(
        {
            "user": users[few],
            "samples": n_usable[few],
            "reason": [
                f"{n} usable sample{'' if n == 1 else 's'}; at least {needed} are required"
                for n in n_usable[few]
            ],
        }
    )
    to_acquire = pd.DataFrame(
        {
            "user": samples.users[~usable],
            "session": samples.index.get_level_values("session").to_numpy()[~usable],
            "reason": [reason for reason in reasons if reason],
        }
    )
    fte = mean_rate(few.astype(np.float64), len(users), replicates, seed)
    per_user = 1.0 - n_usable / np.bincount(codes)
    over_users = mean_rate(per_user, len(samples), replicates, seed)
    fta = Rate(float(1.0 - usable.mean()), over_users.low, over_users.high, len(samples))
    return Failures(to_acquire, to_enrol, usable & ~few[codes], fta, fte)


def _reasons(samples: Samples, min_keys: int, vectors: bool) -> list[str]:
    """The reason why each sample cannot be used; empty if it can."""
    sequences = samples.sequences
    reasons = np.full(len(samples), "", dtype=object)
    if vectors:
        holes = ~np.isfinite(samples.table.to_numpy(dtype=np.float64))
        for s in np.flatnonzero(holes.any(axis=1)):
            reasons[s] = f"{samples.table.columns[int(np.argmax(holes[s]))]} is missing or infinite"
        if samples.kind == "fixed text":
            reasons[holes.all(axis=1)] = "other keys than those of the fixed text"
    times = np.array(samples.emission) == "lognormal"
    zero = np.logical_or.reduceat((sequences.X[:, times] <= 0.0).any(axis=1), sequences.offsets[:-1])
    reasons[zero] = "a time of 0 ms or less, which has no logarithm"
    for s in np.flatnonzero(sequences.lengths < min_keys):
        n = sequences.lengths[s]
        reasons[s] = f"{n} key{'' if n == 1 else 's'}; at least {min_keys} are required"
    return [str(reason) for reason in reasons]
