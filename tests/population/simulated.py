"""People drawn from the model itself, whose parameters are therefore known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.keystrokes.samples import Samples

KEYS = list("abcdefgh")


def people(
    n_people=12,
    n_samples=4,
    n_keys=20,
    seed=0,
    cell=0.2,
    key=0.05,
    tempo=0.05,
    noise=0.3,
    rank=1,
    text=None,
    spread=0.4,
):
    """Keystrokes of people with effects by factor, key and pair, and samples with a tempo of their own.

    Residuals are normal, in units of the logarithm of times; `spread` is the size of the loadings. `text` is
    typed by all, otherwise every sample has random keys.
    """
    random = np.random.default_rng(seed)
    m = len(KEYS)
    loadings = random.normal(0.0, spread, (2, m, m, rank))
    rows = []
    for user in range(n_people):
        z = random.normal(size=rank)
        effect = loadings @ z
        effect += random.normal(0.0, np.sqrt(key), (2, m, 1)) + random.normal(0.0, np.sqrt(cell), (2, m, m))
        for session in range(n_samples):
            typed = random.integers(0, m, n_keys) if text is None else np.array([KEYS.index(k) for k in text])
            d = random.normal(0.0, np.sqrt(tempo), 2)
            press = 0.0
            for n, k in enumerate(typed):
                before = typed[n - 1] if n else k
                after = typed[n + 1] if n + 1 < len(typed) else k
                r = random.normal(0.0, np.sqrt(noise), 2)
                tau = np.exp(5.0 + 0.5 * (effect[0, k, before] + d[0] + r[0]))
                hold = np.exp(4.5 + 0.3 * (effect[1, k, after] + d[1] + r[1]))
                press += tau if n else 0.0
                rows.append((user, session, KEYS[k], press, press + hold))
    return pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])


def samples_of_people(**settings):
    """Samples of such people."""
    return Samples.of(people(**settings))
