"""The data of the studies of fit: press-press intervals of each user."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from keydyn.keystrokes.schema import check_keystrokes
from keydyn.keystrokes.timing import timing_features
from keydyn.model import Sequences


def intervals_by_user(keystrokes: pd.DataFrame) -> dict[Any, Sequences]:
    """τ of every sample of each user, without the first keystroke of a sample, which has none.

    A sample of a single keystroke has no interval and is left out, and so is a user without intervals.
    The one feature has no name, because every fit would check the name again.
    """
    keystrokes = check_keystrokes(keystrokes)
    table = keystrokes[["user", "session", "keyname"]].assign(
        tau=timing_features(keystrokes, first="missing")["tau"]
    )
    table = table[table["tau"].notna()]
    return {
        user: replace(
            Sequences.from_frame(user_rows, ["tau"], event="keyname", sequence="session"), feature_names=None
        )
        for user, user_rows in table.groupby("user", sort=False)
    }


def stream(seed: int, *names: object) -> np.random.Generator:
    """The random stream of one piece of work, the same whatever was done before it.

    A study that was interrupted and resumed therefore gives the same result.
    """
    return np.random.default_rng([seed, *(zlib.crc32(str(name).encode()) for name in names)])
