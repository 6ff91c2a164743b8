"""Writes JSON and Parquet files of a study; each file is complete or does not exist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from keydyn.atomic import replacing, write_text


def write_json(path: str | Path, value: Any) -> None:
    """Write strict JSON: values that are not finite become null, and keys keep their order.

    Arrays become lists; paths and dates become text. A value without a form in JSON is a `TypeError`.
    """
    text = json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_parquet(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame to a Parquet file, without its index."""
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)


def plain(value: Any) -> Any:
    """Convert a value to the types of JSON: dict, list, text, number, true, false and null."""
    if isinstance(value, Mapping):
        keys = [str(plain(key)) for key in value]
        if len(set(keys)) < len(keys):
            raise ValueError(f"two keys are the same as text: {', '.join(keys)}")
        return dict(zip(keys, map(plain, value.values()), strict=True))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (Path, date)):  # a datetime is a date
        return str(value) if isinstance(value, Path) else value.isoformat()
    if value is None or value is pd.NA or (isinstance(value, float) and not np.isfinite(value)):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON: {value!r}")
