"""Typing whose law is known, for tests of decisions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.keystrokes.samples import Samples

TEXT = ("period", "t", "i", "e", "five", "shift", "o", "a", "n", "l", "return")


def keystrokes(tau, hold, keys=TEXT, user="ann", first_session=0):
    """Keystrokes of samples of the same keys, from times, (n, len(keys)); first intervals are not used."""
    n, m = np.shape(tau)
    press = np.cumsum(np.concatenate([np.zeros((n, 1)), np.asarray(tau)[:, 1:]], axis=1), axis=1)
    return pd.DataFrame(
        {
            "user": user,
            "session": np.repeat(np.arange(n) + first_session, m),
            "keyname": np.tile(keys, n),
            "timepress": press.ravel(),
            "timerelease": (press + hold).ravel(),
        }
    )


def samples(tau, hold, keys=TEXT, user="ann", first_session=0):
    """The same as samples."""
    frame = keystrokes(tau, hold, keys, user, first_session)
    return Samples.of(frame, kind="long text", first="missing")


def times(n, random, spread=(0.2, 0.15), degrees=2, usual=0):
    """(n, keys) intervals and holds of one person: Student t about what is usual for each key."""
    own, n_keys = np.random.default_rng(usual), len(TEXT)
    tau, hold = own.uniform(120.0, 350.0, n_keys), own.uniform(60.0, 120.0, n_keys)
    return (
        tau * np.exp(np.clip(spread[0] * random.standard_t(degrees, (n, n_keys)), -3, 3)),
        hold * np.exp(np.clip(spread[1] * random.standard_t(degrees, (n, n_keys)), -3, 3)),
    )
