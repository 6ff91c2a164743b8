"""The order of rows that does not depend on how they were shuffled."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Integers


def in_order(frame: pd.DataFrame) -> Integers:
    """The rows by user, session, press, release and key. Numbers in names count: session 2 is before 10."""
    order: Integers = np.lexsort(
        (
            frame["keyname"].rank(method="dense").to_numpy(),
            frame["timerelease"].to_numpy(),
            frame["timepress"].to_numpy(),
            _places(frame["session"]),
            _places(frame["user"]),
        )
    )
    return order


def _places(labels: pd.Series[Any]) -> Integers:
    """The place of each label among all."""
    codes, distinct = pd.factorize(labels)
    place = np.empty(len(distinct), dtype=np.int64)
    place[sorted(range(len(distinct)), key=lambda n: _natural(distinct[n]))] = np.arange(len(distinct))
    return place[codes]


def _natural(label: Any) -> tuple[Any, ...]:
    """Numbers by their value, before any text; text with its numbers taken as such, and as it is."""
    if not isinstance(label, str):
        return (0, float(label), [], "")
    parts = re.split(r"([0-9]+)", label)
    return (1, 0.0, [(part, 0) if n % 2 == 0 else ("", int(part)) for n, part in enumerate(parts)], label)
