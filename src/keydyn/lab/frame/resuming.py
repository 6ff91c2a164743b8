"""Keeps finished parts of a study so that interrupted work resumes, and makes missing parts in parallel.

A part is one Parquet file that also records the inputs it was made from. It is reused only if they are
unchanged, and is written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from keydyn import __version__
from keydyn.atomic import replacing
from keydyn.detectors import Detector, Markov
from keydyn.lab.frame.json_and_parquet import plain
from keydyn.lab.frame.study_data import LongText
from keydyn.parallel import each
from keydyn.population import PopulationModel

# Called with the name of the current work and the share of all work that is done.
ShowProgress = Callable[[str, float], object]
INPUTS = b"keydyn.inputs"
# Increased when the same inputs give different results, so that older parts are made again.
FORMAT = 1


class Parts:
    """The finished parts in a folder, and the options for making missing ones.

    With `fresh`, all parts are made again. `n_jobs` is the number of processes or threads that make parts,
    and `show_progress` is called meanwhile.
    """

    def __init__(
        self,
        folder: str | Path,
        fresh: bool = False,
        n_jobs: int | None = None,
        show_progress: ShowProgress | None = None,
    ) -> None:
        self.folder, self.fresh, self.n_jobs = Path(folder), fresh, n_jobs
        self.show_progress: ShowProgress = show_progress or (lambda what, share: None)

    def below(self, name: str) -> Parts:
        """The parts in the subfolder of this name."""
        return Parts(self.folder / name, self.fresh, self.n_jobs, self.show_progress)

    def any(self) -> bool:
        """Whether an earlier run has left parts that may be reused."""
        return not self.fresh and any(self.folder.glob("*.parquet"))

    def read(self, name: str, inputs: Mapping[str, Any]) -> pa.Table | None:
        """The part, or None if it is missing, damaged or was made from other inputs."""
        if self.fresh:
            return None
        try:
            if (pq.read_schema(self._path(name)).metadata or {}).get(INPUTS) == _recorded(inputs):
                return pq.read_table(self._path(name))
        except (OSError, pa.ArrowException):
            pass
        return None

    def keep(self, name: str, inputs: Mapping[str, Any], table: pa.Table) -> pa.Table:
        """Write a part, and return it as the next run will read it: Parquet renames the fields of lists."""
        metadata = {**(table.schema.metadata or {}), INPUTS: _recorded(inputs)}
        with replacing(self._path(name)) as temporary:
            pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="zstd")
        return pq.read_table(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


def detector_settings(detector: Detector) -> dict[str, Any]:
    """All settings that a detector's result depends on, apart from the data."""
    settings = {"name": detector.name, **detector.get_params(deep=False)}
    if isinstance(detector, Markov):
        settings["model"] = (detector.model or detector.pattern()).get_params(deep=False)
    return {key: _text(value) for key, value in settings.items()}


def _text(value: Any) -> Any:
    """Settings converted to types of JSON; other values are replaced by their representation."""
    if isinstance(value, Mapping):
        return {key: _text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text(item) for item in value]
    if isinstance(value, PopulationModel):
        # Its representation shows only the beginning of the digest.
        return {"people": value.parameters.n_people, "sha256": value.sha256}
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def _recorded(inputs: Mapping[str, Any]) -> bytes:
    everything = {"keydyn": __version__, "format": FORMAT, **inputs}
    return json.dumps(plain(everything), sort_keys=True, ensure_ascii=False).encode()


# The result of a call for one part: a table, a frame, a list of rows, or a single row.
Found: TypeAlias = Any


@dataclass(frozen=True)
class Piece:
    """Several parts that are made together.

    Attributes
    ----------
    names : names of the parts
    inputs : the values that the parts depend on
    calls : functions that each make some rows of every part: a tuple in the order of `names`, or one result
        if there is only one part
    what : the name shown as progress
    cost : expected duration, in any unit
    """

    names: tuple[str, ...]
    inputs: Mapping[str, Any]
    calls: Sequence[partial[Any]]
    what: str
    cost: float


def run_pieces(pieces: Sequence[Piece], parts: Parts) -> dict[str, pa.Table]:
    """Return all parts by name. Missing ones are made, the longest first, and kept as soon as they are done.

    Calls run in processes, or on the cluster that `keydyn.parallel.using` names. Threads would wait for one
    another, because much of the work around the compiled fits is done by the interpreter.
    """
    made = {name: parts.read(name, piece.inputs) for piece in pieces for name in piece.names}
    waiting = [piece for piece in pieces if any(made[name] is None for name in piece.names)]
    waiting.sort(key=lambda piece: -piece.cost)
    calls = [call for piece in waiting for call in piece.calls]
    finished = each(_make, calls, n_jobs=parts.n_jobs, threads=False)
    total, done = sum(piece.cost for piece in waiting) or 1.0, 0.0
    for piece in waiting:
        found = []
        for _ in piece.calls:
            parts.show_progress(piece.what, done / total)
            found.append(next(finished))
            done += piece.cost / len(piece.calls)
        for name, tables in zip(piece.names, zip(*found, strict=True), strict=True):
            table = pa.concat_tables(tables) if len(tables) > 1 else tables[0]
            made[name] = parts.keep(name, piece.inputs, table)
    return made


def _make(call: partial[Any]) -> list[pa.Table]:
    found = call()
    return [table_of(one) for one in (found if isinstance(found, tuple) else (found,))]


def table_of(found: Found) -> pa.Table:
    """Convert the result of a call to the table that is kept."""
    if isinstance(found, pa.Table):
        return found
    if isinstance(found, pd.DataFrame):
        return pa.Table.from_pandas(found, preserve_index=False)
    frame = pd.DataFrame(found if isinstance(found, list) else [found])
    # Users are numbers in one dataset and names in another.
    return pa.Table.from_pandas(frame.assign(user=frame["user"].astype(str)), preserve_index=False)


def frame_of(made: Mapping[str, pa.Table], pieces: Iterable[Piece], place: int = 0) -> pd.DataFrame:
    """The rows of the part at `place` of each piece, concatenated; empty if there are no pieces."""
    frames = [made[piece.names[place]].to_pandas() for piece in pieces]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def text_piece(name: str, text: LongText, calls: Sequence[partial[Any]], **settings: Any) -> Piece:
    """A piece with one part about a text; it depends on the text and the given settings."""
    inputs = {"dataset": text.name, "data": text.checksums, **settings}
    return Piece((name,), inputs, calls, name, float(len(calls)))
