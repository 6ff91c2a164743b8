"""Small recordings whose times are written down."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.keystrokes.samples import Samples


def typed(*samples):
    """Samples of one person; each is a text with a list of intervals and a list of holds, milliseconds."""
    rows = []
    for session, (text, intervals, holds) in enumerate(samples):
        press = np.cumsum([0.0, *intervals[1:]])
        rows += [(0, session, key, p, p + h) for key, p, h in zip(text, press, holds, strict=True)]
    columns = ["user", "session", "keyname", "timepress", "timerelease"]
    return Samples.without_vectors(pd.DataFrame(rows, columns=columns))


def random_recording(n_samples=6, n_keys=40, seed=0, keys="abc"):
    """Random keys at times that are all different, so that a time tells where it was recorded."""
    random = np.random.default_rng(seed)
    total = n_samples * n_keys
    intervals, holds = 100.0 + random.permutation(total), 1000.0 + random.permutation(total)
    parts = [slice(s * n_keys, (s + 1) * n_keys) for s in range(n_samples)]
    texts = [random.choice(list(keys), n_keys).tolist() for _ in parts]
    return typed(*((text, intervals[p], holds[p]) for text, p in zip(texts, parts, strict=True)))
