"""Reading the scores of any system: files of bob, of PyEER and of the challenge, and our own.

The format of a text file is recognised by its layout:

- bob's four columns: the person claimed, the real person, the sample, the score; or five, with the
  template's name after the person claimed;
- bob's CSV (bob.bio.base 5 and later): a header with `bio_ref_subject_id`, `probe_subject_id` and `score`;
- PyEER's two lists of one score per line, given as the names of the genuine and the impostor list, separated
  by a comma;
- the Keystroke Verification Challenge's list of comparisons with its predictions, one entry per line, or all
  in brackets, as Python and JSON write it. A comparison is two sessions, the enrolled one first. A session's
  name begins with its user's, up to the last underscore: `12_3` is session 3 of user 12. The names of the
  challenge's own sessions do not contain the user; a third column then is 1 if both sessions are of one user,
  else 0;
- our own `scores.parquet`, recognised by the suffix of its name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from keydyn.evaluation.score_files.score_columns import (
    COMMA,
    SPACE,
    first_line,
    line_of,
    number_of,
    read_columns,
    read_numbers,
)
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.evaluation.scores import Scores

# The names of bob's columns; the first of `SAMPLES` or `TEMPLATES` that a file has is used.
CLAIMED, REAL = "bio_ref_subject_id", "probe_subject_id"
SAMPLES = ("probe_template_id", "probe_key", "probe_reference_id", "key")
TEMPLATES = ("bio_ref_template_id", "bio_ref_reference_id")
ATTACK = "probe_attack_type"
# The third column of a comparison: whether both sessions are of one user.
LABELS = {"0": False, "1": True}
FOUR = ("claimed", "real", "sample", "score")
FIVE = ("claimed", "template", "real", "sample", "score")
OURS = ("dataset", "detector", "normalisation", "fold", "user", "session", "reference", "score", "trial")
LAYOUTS = (
    "four columns (claimed, real, sample, score), a CSV file of bob, GENUINE,IMPOSTOR of PyEER, predictions "
    "with a list of comparisons, or our own scores.parquet"
)


def read_scores(
    source: str | Path, comparisons: str | Path | None = None, distances: bool = False
) -> dict[str, ScoredClaims]:
    """Read the claims of each system in a file, by the file's name or, in our own files, the detector's.

    `source` is a path, or two separated by a comma: PyEER's lists of genuine and impostor scores.
    `comparisons` is the challenge's list of comparisons that the predictions in `source` belong to. With
    `distances`, lower numbers in the file are more genuine; in the result higher scores always are. A
    `ValueError` names the file and the line that cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from keydyn.evaluation import read_scores
    >>> path = Path(mkdtemp()) / "svm.txt"
    >>> _ = path.write_text("ann ann one 2.5\\nann bob two 0.1\\nbob bob two 1.5\\nbob ann one 0.4\\n")
    >>> systems = read_scores(path)
    >>> list(systems), systems["svm.txt"].scores[0].tolist()
    (['svm.txt'], [2.5, 1.5])
    """
    systems = _read(str(source), None if comparisons is None else Path(comparisons))
    for name, claims in systems.items():
        for kind, scores in zip(("genuine", "impostor"), claims.scores, strict=True):
            if len(scores) == 0:
                other = {"genuine": "impostor", "impostor": "genuine"}[kind]
                raise ValueError(f"{source}: {name} has {other} scores only; error rates need both")
    if distances:
        return {name: replace(claims, score=-claims.score) for name, claims in systems.items()}
    return systems


def _read(source: str, comparisons: Path | None) -> dict[str, ScoredClaims]:
    path = Path(source)
    if comparisons is not None:
        return {path.name: _challenge(path, comparisons)}
    if not path.exists() and source.count(COMMA) == 1:
        genuine, impostor = (Path(part) for part in source.split(COMMA))
        scores = [read_numbers(_present(one)) for one in (genuine, impostor)]
        return {genuine.name: ScoredClaims.without_people(*scores)}
    if _present(path).suffix == ".parquet":
        return _own(path)
    line = first_line(path)
    names = [name.strip().strip('"') for name in line.split(COMMA)]
    if "score" in names:
        return {path.name: _bob_csv(path, names)}
    n = len(line.split())
    if n in (len(FOUR), len(FIVE)) and _is_number(line.split()[-1]):
        columns = FOUR if n == len(FOUR) else FIVE
        return {path.name: _claims(path, read_columns(path, columns, SPACE), header=False)}
    if n == 1 and _is_number(line):
        raise ValueError(
            f"{path} has scores alone: name both lists of PyEER as GENUINE,IMPOSTOR, or the list of "
            "comparisons that these predictions belong to"
        )
    raise ValueError(f"{path}, line 1: {line[:60]!r} is not in a known layout: {LAYOUTS}")


def _bob_csv(path: Path, names: list[str]) -> ScoredClaims:
    absent = [name for name in (CLAIMED, REAL) if name not in names]
    if absent:
        raise ValueError(f"{path}, line 1: there is no column {', '.join(absent)}, as bob's CSV files have")
    frame = read_columns(path, names, COMMA, header=True)
    sample = next((name for name in SAMPLES if name in names), None)
    template = next((name for name in TEMPLATES if name in names), None)
    chosen = pd.DataFrame(
        {
            "claimed": frame[CLAIMED],
            "real": frame[REAL],
            "sample": np.arange(len(frame)) if sample is None else frame[sample],
            "score": frame["score"],
        }
    )
    if template is not None:
        chosen["template"] = frame[template]
    if ATTACK in names:
        chosen["attack"] = frame[ATTACK]
    return _claims(path, chosen, header=True)


def _claims(path: Path, frame: pd.DataFrame, header: bool) -> ScoredClaims:
    """Make claims from a frame, after a check that no comparison occurs twice."""
    what = [name for name in ("claimed", "template", "real", "sample") if name in frame]
    codes = [pd.factorize(frame[name])[0] for name in what]
    key = np.zeros(len(frame), dtype=np.int64)
    for code in codes:
        key = pd.factorize(key * (int(code.max()) + 1) + code)[0]
    twice = pd.Series(key).duplicated().to_numpy()
    if twice.any():
        row = int(np.argmax(twice))
        before = int(np.argmax(key == key[row]))
        first, again = (line_of(path, one, header) for one in (before, row))
        words = ", ".join(f"{name} {frame[name].iloc[row]}" for name in what)
        raise ValueError(f"{path}, line {again}: this comparison is in line {first} too ({words})")
    return ScoredClaims.of(frame)


def _challenge(predictions: Path, comparisons: Path) -> ScoredClaims:
    """Read the claims of a list of comparisons with their predictions."""
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
                f"{comparisons}, line {row + 1}: {part[2].iloc[row]!r} does not name its user; "
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
    """Read a list of comparisons as two or three columns of text."""
    first = first_line(path)
    if first.lstrip().startswith("["):
        rows = [list(row) if isinstance(row, list) else [row] for row in _bracketed(path)]
    else:
        text = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [list(line.replace(COMMA, SPACE).split()) for line in text if line.strip()]
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]) or len(row) not in (2, 3):
            raise ValueError(f"{path}, line {line}: a comparison needs two sessions, and optionally a label")
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


def _own(path: Path) -> dict[str, ScoredClaims]:
    try:
        frame = pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    absent = [name for name in OURS if name not in frame]
    if absent or len(frame) == 0:
        raise ValueError(f"{path} has no {f'column {absent[0]}' if absent else 'rows'}")
    return own_systems(frame)


def own_systems(frame: pd.DataFrame) -> dict[str, ScoredClaims]:
    """The claims of each detector and dataset in our own table of scores, by name."""
    systems = {}
    parts = frame.groupby(["dataset", "detector"], sort=False, observed=True)
    one_dataset = len(frame["dataset"].unique()) == 1
    for (dataset, detector), part in parts:
        name = str(detector) if one_dataset else f"{detector}, {dataset}"
        systems[name] = _own_claims(part)
    return systems


def _own_claims(part: pd.DataFrame) -> ScoredClaims:
    normalisation = str(part["normalisation"].iloc[0])
    score = part["score"].to_numpy(dtype=np.float64)
    if normalisation != "none":
        whole = Scores.from_frame(part, normalisation)
        query, template = np.nonzero(~np.isnan(whole.raw))
        frame = pd.DataFrame(whole.labels(query, template))
        score, trial = whole.normalised[query, template], whole.trials[query, template]
    else:
        frame, trial = part, part["trial"].to_numpy(dtype=bool)
    chosen = pd.DataFrame(
        {
            "claimed": frame["reference"].astype(str),
            "real": frame["user"].astype(str),
            "sample": frame["fold"].astype(str) + " " + frame["session"].astype(str),
            "score": score,
        }
    )[trial]
    if "attack" in frame:
        chosen["attack"] = frame["attack"].astype(str)[trial]
    if (chosen["real"] == "").all():
        return ScoredClaims.without_people(
            *(chosen["score"][(chosen["claimed"] == "") == own].to_numpy() for own in (True, False))
        )
    return ScoredClaims.of(chosen.reset_index(drop=True))


def _present(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return path


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
