"""What the calls of a study find, without its processes and parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

from keydyn.lab.frame.resuming import Piece, table_of


def called(calls: Iterable[Any]) -> pd.DataFrame:
    """The rows of all calls, each of which finds one or several."""
    found = [call() for call in calls]
    return pd.DataFrame([row for one in found for row in (one if isinstance(one, list) else [one])])


def made_by(piece: Piece) -> dict[str, pa.Table]:
    """The parts of a piece of one call."""
    (call,) = piece.calls
    found = call()
    tables = map(table_of, found if isinstance(found, tuple) else (found,))
    return dict(zip(piece.names, tables, strict=True))
