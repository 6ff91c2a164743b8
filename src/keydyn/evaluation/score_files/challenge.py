"""The Keystroke Verification Challenge's two lists: which sessions are compared, and what was predicted.

A comparison is two sessions, the enrolled one first. A session's name begins with its user's, up to the last
underscore: `12_3` is session 3 of user 12. The names of the challenge's own sessions do not say whose they
are; a third column then says whether both are of one user (1) or not (0). Either list has one entry per line,
or all in one line between brackets, as Python and JSON write it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from keydyn.evaluation.score_files.score_columns import COMMA, SPACE, first_line, number_of, read_numbers
from keydyn.evaluation.scored_claims import ScoredClaims

LABELS = {"0": False, "1": True}


def challenge_claims(predictions: Path, comparisons: Path) -> ScoredClaims:
    """The claims of a list of comparisons with their predictions."""
    pairs = _comparisons(comparisons)
    scores = (
        np.array([number_of(str(one), predictions, 1) for one in _bracketed(predictions)], dtype=np.float64)
        if first_line(predictions).lstrip().startswith("[")
        else read_numbers(predictions)
    )
    if len(scores) != len(pairs):
        raise ValueError(
            f"{predictions} has {len(scores):,} predictions, but {comparisons} has {len(pairs):,} comparisons"
        )
    if pairs.shape[1] > 2:
        wrong = ~pairs[2].isin(LABELS).to_numpy()
        if wrong.any():
            raise ValueError(f"{comparisons}, line {int(np.argmax(wrong)) + 1}: the label must be 0 or 1")
        genuine = pairs[2].map(LABELS).to_numpy(dtype=bool)
        return ScoredClaims.without_people(scores[genuine], scores[~genuine])
    parts = [pairs[column].str.rpartition("_") for column in (0, 1)]
    for part in parts:
        nameless = (part[1] == "").to_numpy()
        if nameless.any():
            row = int(np.argmax(nameless))
            raise ValueError(
                f"{comparisons}, line {row + 1}: {part[2].iloc[row]!r} does not say whose session it is; "
                "sessions are called USER_SESSION, or a third column is 1 for one user and 0 for two"
            )
    claimed, real = parts
    frame = pd.DataFrame(
        {"claimed": claimed[0], "template": claimed[2], "real": real[0], "sample": real[2], "score": scores}
    )
    twice = frame.duplicated(["claimed", "template", "real", "sample"]).to_numpy()
    if twice.any():
        raise ValueError(f"{comparisons}, line {int(np.argmax(twice)) + 1}: this comparison occurs twice")
    return ScoredClaims.of(frame)


def _comparisons(path: Path) -> pd.DataFrame:
    """Two or three columns of text."""
    first = first_line(path)
    if first.lstrip().startswith("["):
        rows = [list(row) if isinstance(row, list) else [row] for row in _bracketed(path)]
    else:
        text = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [list(line.replace(COMMA, SPACE).split()) for line in text if line.strip()]
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]) or len(row) not in (2, 3):
            raise ValueError(f"{path}, line {line}: a comparison is two sessions, and perhaps a label")
    return pd.DataFrame([[str(cell) for cell in row] for row in rows])


def _bracketed(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8-sig")
    for written, read in (("(", "["), (")", "]"), ("'", '"')):
        text = text.replace(written, read)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a list: {error}") from None
    if not isinstance(found, list) or not found:
        raise ValueError(f"{path} has no entries between its brackets")
    return found
