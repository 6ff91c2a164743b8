"""Identification accuracy and equal error rate of each user, as in the paper's recognition tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.evaluation.identification import identification
from keydyn.evaluation.rates import equal_error_rate
from keydyn.evaluation.scores import Scores


def recognition(scores: Scores) -> pd.DataFrame:
    """Accuracy and equal error rate of each user, the latter with three normalisations.

    `eer` pools all trials against the user's template as the protocol normalises them; `eer_open` leaves an
    impostor's own template out of the cohort, NaN where that leaves a single template, which nothing can be
    scaled over; `eer_raw` takes the scores as they are.
    """
    found = identification(scores, replicates=1).per_user[["acc"]].copy()
    ways = {"eer": scores.normalised, "eer_open": scores.open_set, "eer_raw": scores.raw}
    for name, values in ways.items():
        if name == "eer_open" and not scores.has_open_set:
            found[name] = np.nan
            continue
        found[name] = [
            equal_error_rate(*scores.trials_of(u, values))
            for u, user in enumerate(scores.users.tolist())
            if user in found.index
        ]
    return found
