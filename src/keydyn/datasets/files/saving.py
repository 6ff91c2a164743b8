"""Saving recordings so that they can be read back without loss."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from keydyn.atomic import replacing
from keydyn.datasets.files.recordings import load_recordings
from keydyn.keystrokes.reading_error import ReadingError
from keydyn.keystrokes.schema import check_keystrokes

FORMATS = (".csv", ".csv.gz", ".parquet")


def save_recordings(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write keystrokes to .csv, .csv.gz or .parquet, so that `load_recordings` returns the same frame.

    The file is read back before it is moved into place; missing folders are created. CSV has no types: users
    that are text but look like numbers would not come back as they were, and are refused; Parquet takes them.

    Examples
    --------
    >>> from keydyn.datasets import load_recordings, make_typists, save_recordings
    >>> keystrokes = make_typists(2, 3)
    >>> save_recordings(keystrokes, "typing.parquet")
    >>> load_recordings("typing.parquet").equals(keystrokes)
    True
    """
    path = Path(path)
    ending = next((ending for ending in FORMATS if path.name.endswith(ending)), None)
    if ending is None:
        raise ValueError(f"{path}: the name must end in {', '.join(FORMATS)}")
    checked = check_keystrokes(frame)
    with replacing(path) as temporary:
        if ending == ".parquet":
            checked.to_parquet(temporary, index=False)
        else:
            compression = {"method": "gzip", "compresslevel": 6, "mtime": 0} if ending == ".csv.gz" else None
            checked.to_csv(
                temporary,
                index=False,
                lineterminator="\n",
                compression=compression,
                quoting=_quoting(checked),
            )
        _compare(checked, temporary, path)


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """To CSV readers a lone carriage return ends a line, but pandas does not quote it by default."""
    texts = (frame[column].astype(str) for column in frame.columns if frame[column].dtype.kind not in "iuf")
    returns = any(text.str.contains("\r", regex=False).any() for text in texts)
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def _compare(checked: pd.DataFrame, written: Path, path: Path) -> None:
    """`ValueError` if what was written does not come back as it was."""
    instead = "" if path.suffix == ".parquet" else "; save it as .parquet"
    try:
        back = load_recordings(written)
    except ReadingError as error:
        problem = error.changed(source="")
        raise ValueError(f"{path}: could not be read back: {problem}{instead}") from None
    for column in checked.columns:
        was, is_now = checked[column], back[column]
        if was.equals(is_now):
            continue
        same = (was.astype(object) == is_now.astype(object)) | (was.isna() & is_now.isna())
        if not same.all():
            row = int(np.argmin(same.to_numpy()))
            raise ValueError(
                f"{path}: {column} {was.iloc[row]!r} would be read back as {is_now.iloc[row]!r}{instead}"
            )
