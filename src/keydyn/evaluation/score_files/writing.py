"""Writing scores in the formats that other tools read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.atomic import replacing
from keydyn.evaluation.scored_claims import ScoredClaims

# Enough digits to read every number back unchanged.
DIGITS = "%.17g"


def write_scores(claims: ScoredClaims, folder: str | Path, name: str, layout: str) -> list[Path]:
    """Write the claims in one of the formats of `EXPORTS`; return the files, whose names begin with `name`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from keydyn.evaluation import ScoredClaims, write_scores
    >>> claims = ScoredClaims.without_people(np.array([2.0, 3.0]), np.array([0.5]))
    >>> [path.name for path in write_scores(claims, mkdtemp(), "svm", "pyeer")]
    ['svm_genuine.txt', 'svm_impostor.txt']
    """
    if layout not in EXPORTS:
        raise ValueError(f"there is no form {layout!r} of score files; there are {', '.join(EXPORTS)}")
    if layout != "pyeer" and not claims.people:
        raise ValueError(f"{layout} needs names of people, which these scores do not have; pyeer needs none")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return EXPORTS[layout](claims, place / re.sub(r"[^\w.+-]+", "-", name))


def _bob(claims: ScoredClaims, stem: Path) -> list[Path]:
    names = _words(claims)
    columns = [names[claims.claimed], names[claims.typist], claims.sample, claims.score]
    return [_lines(stem.with_name(stem.name + ".txt"), pd.DataFrame(dict(enumerate(columns))), separator=" ")]


def _bob_csv(claims: ScoredClaims, stem: Path) -> list[Path]:
    names = np.array(claims.people, dtype=object)
    frame = pd.DataFrame(
        {
            "probe_template_id": claims.sample,
            "probe_subject_id": names[claims.typist],
            "bio_ref_subject_id": names[claims.claimed],
        }
    )
    if claims.attack is not None:
        frame["probe_attack_type"] = np.array([*claims.attacks, ""], dtype=object)[claims.attack]
    frame["score"] = claims.score
    return [_lines(stem.with_name(stem.name + ".csv"), frame, header=True)]


def _pyeer(claims: ScoredClaims, stem: Path) -> list[Path]:
    kinds = zip(("genuine", "impostor"), claims.scores, strict=True)
    return [_lines(stem.with_name(f"{stem.name}_{kind}.txt"), pd.DataFrame(scores)) for kind, scores in kinds]


def _challenge(claims: ScoredClaims, stem: Path) -> list[Path]:
    plain = claims.plain
    names = _words(plain)
    enrolled = pd.Series(names[plain.claimed]) + "_enrolled"
    typed = pd.Series(names[plain.typist]) + "_" + pd.Series(plain.sample.astype(str))
    comparisons = pd.DataFrame({"enrolled": enrolled, "typed": typed})
    return [
        _lines(stem.with_name(f"{stem.name}_comparisons.txt"), comparisons, separator=" "),
        _lines(stem.with_name(f"{stem.name}_predictions.txt"), pd.DataFrame(plain.score)),
    ]


def _lines(path: Path, frame: pd.DataFrame, separator: str = ",", header: bool = False) -> Path:
    with replacing(path) as temporary:
        frame.to_csv(
            temporary, sep=separator, header=header, index=False, float_format=DIGITS, lineterminator="\n"
        )
    return path


def _words(claims: ScoredClaims) -> NDArray[np.object_]:
    """The names without white space, which separates the columns of these files."""
    names = [re.sub(r"\s+", "-", name) or "-" for name in claims.people]
    if len(set(names)) < len(names):
        raise ValueError("two people have the same name without white space; bob-csv distinguishes them")
    return np.array(names, dtype=object)


#: The functions that write scores, by the name of the format.
EXPORTS: dict[str, Callable[[ScoredClaims, Path], list[Path]]] = {
    "bob": _bob,
    "bob-csv": _bob_csv,
    "pyeer": _pyeer,
    "kvc": _challenge,
}
