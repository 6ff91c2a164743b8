"""Identification accuracy and equal error rate of each user, as in the paper's recognition tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.identification import identification
from keydyn.evaluation.scores import Scores


def recognition(scores: Scores) -> pd.DataFrame:
    """Accuracy and equal error rate of each user, the latter with three normalisations.

    `eer` pools all trials against the user's template as the protocol normalises them. `eer_open` leaves an
    impostor's own template out of the cohort; it is NaN where that leaves a single template, over which no
    score can be scaled. `eer_raw` takes the scores as they are.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation.protocols.protocol import LeaveOneOut
    >>> from keydyn.evaluation.rates.recognition import recognition
    >>> from keydyn.evaluation.protocols.running import score_protocol
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> table = recognition(scores)
    >>> table.shape[0], table.columns.tolist()
    (4, ['acc', 'eer', 'eer_open', 'eer_raw'])
    """
    users = identification(scores, replicates=1).per_user[["acc"]].copy()
    normalisations = {"eer": scores.normalised, "eer_open": scores.open_set, "eer_raw": scores.raw}
    for name, values in normalisations.items():
        if name == "eer_open" and not scores.has_open_set:
            users[name] = np.nan
            continue
        users[name] = [
            equal_error_rate(*scores.trials_of(u, values))
            for u, user in enumerate(scores.users.tolist())
            if user in users.index
        ]
    return users
