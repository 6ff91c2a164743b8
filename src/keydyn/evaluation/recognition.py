"""Identification accuracy and equal error rate of each user, as in the paper's recognition tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.evaluation.rates import equal_error_rate
from keydyn.evaluation.scores import Scores
from keydyn.model.arrays import Floats


def recognition(scores: Scores) -> pd.DataFrame:
    """Accuracy and equal error rate of each user, the latter with three normalisations.

    A query is identified if its owner's template scores highest; templates that tie for it share it. `eer`
    pools all trials against the user's template as the protocol normalises them; `eer_open` leaves an
    impostor's own template out of the cohort; `eer_raw` takes the scores as they are.
    """
    right = identified_first(scores)
    ways = {"eer": scores.normalised, "eer_open": scores.open_set, "eer_raw": scores.raw}
    rows = []
    for u, user in enumerate(scores.users):
        own = (scores.owners == user) & scores.identified
        rates = [equal_error_rate(*scores.trials_of(u, values)) for values in ways.values()]
        rows.append((user, float(right[own].mean()), *rates))
    return pd.DataFrame(rows, columns=["user", "acc", *ways]).set_index("user")


def identified_first(scores: Scores) -> Floats:
    """1 where the owner's template is the best, a share where others tie with it, otherwise 0, (Q,)."""
    best = scores.raw == np.nanmax(scores.raw, axis=1, keepdims=True)
    shares: Floats = (best & scores.own).sum(axis=1) / best.sum(axis=1)
    return shares
