"""How often fresh samples are called copies or too regular, and how often copies and robots are noticed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.decisions.liveness.copies import Fingerprints, copy_evidence
from keydyn.decisions.liveness.not_typed import COPY_LIMIT, spreads, times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.user_intervals import stream
from keydyn.lab.verification.attack_measurements import SECRET
from keydyn.lab.verification.attacks import replayed, robot

FRESH, COPY, ROBOT = "fresh", "copy", "robot"
JITTERS = (0.0, 1.0, 5.0, 10.0)
# Fresh samples of each user, and copies and robots of each jitter, evenly spread.
MOST_FRESH, MOST_MADE = 50, 10


def copy_rates(samples: Samples, n_known: int, seed: int = 0) -> pd.DataFrame:
    """kind, jitter, user, tries, and how many were called `copies` and `regular`.

    The first `n_known` samples of each user are known, the later ones are fresh. Copies are of known samples;
    robots type the fresh ones' keys in the user's median times. Either is displaced by the jitter, in ms.
    """
    rows = []
    for user in dict.fromkeys(samples.users.tolist()):
        own = samples[samples.users == user]
        if len(own) <= n_known:
            continue
        known, fresh = own[:n_known], own[n_known:]
        fingerprints = Fingerprints.of(known, SECRET)
        copied, typed = (some[_spread(len(some), MOST_MADE)] for some in (known, fresh))
        interval, hold = np.nanmedian(times_of(known), axis=0).tolist()
        random = stream(seed, "copies", user)
        sent = [(FRESH, 0.0, fresh[_spread(len(fresh), MOST_FRESH)])]
        for jitter in JITTERS:
            sent.append((COPY, jitter, replayed(copied, jitter, random)))
            sent.append((ROBOT, jitter, replayed(robot(typed, interval, hold), jitter, random)))
        for kind, jitter, some in sent:
            copies = int((copy_evidence(some, fingerprints, SECRET) > COPY_LIMIT).sum())
            rows.append((kind, jitter, user, len(some), copies, int((spreads(some) < 1).any(axis=1).sum())))
    return pd.DataFrame(rows, columns=["kind", "jitter", "user", "tries", "copies", "regular"])


def _spread(n: int, most: int) -> Integers:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
