"""The sessions of the parts when a sample has to be divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from keydyn.arrays import Integers


def name_parts(users: pd.Series[Any], sessions: pd.Series[Any], parts: Integers) -> pd.Series[Any]:
    """The session of each part, given the sample it is a part of and its number within that, from 0.

    The first part keeps its sample's session. The others get the user's next free numbers or, where
    sessions are not numbers, the sample's name followed by the part's number.
    """
    later = parts > 0
    if not later.any():
        return sessions
    if is_numeric_dtype(sessions) and not is_bool_dtype(sessions):
        by_user = sessions.groupby(users.to_numpy(), sort=False, observed=True)
        largest = np.floor(by_user.transform("max")).to_numpy()
        new = pd.Series(later.astype(np.int64)).groupby(users.to_numpy(), sort=False, observed=True).cumsum()
        numbers = np.where(later, largest + new.to_numpy(), sessions.to_numpy())
        # Small whole numbers are not cast back: session 255 of 8 bits would be followed by 0.
        whole = sessions.dtype.kind in "iu" and sessions.dtype != np.uint64
        return pd.Series(numbers, index=sessions.index).astype(np.int64 if whole else sessions.dtype)
    names = sessions.astype(object).copy()
    taken = set(zip(users, names, strict=True))
    for n in np.flatnonzero(later).tolist():
        name = f"{names.iloc[n]} part {parts[n] + 1}"
        while (users.iloc[n], name) in taken:
            name += "'"
        taken.add((users.iloc[n], name))
        names.iloc[n] = name
    return names.infer_objects()
