"""Finished parts of a study, so that interrupted work resumes; what is missing is made, several at a time.

A part is one Parquet file that carries the inputs it was made from. It is used again only if these are the
same; it is written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from keydyn import __version__
from keydyn.atomic import replacing
from keydyn.detectors import Detector, Markov
from keydyn.lab.frame.json_and_parquet import plain
from keydyn.lab.frame.long_texts import LongText
from keydyn.parallel import each

# Called with what is being worked on, and the share of all work that is done.
ShowProgress = Callable[[str, float], object]
INPUTS = b"keydyn.inputs"
# Increased when the same inputs give other results: older parts are then made again.
FORMAT = 1


class Parts:
    """The finished parts in a folder, and how missing ones are made.

    With `fresh` all are made again. `n_jobs` is the number of processes or threads that make parts, and
    `show_progress` is called while they do.
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
        """The parts in a folder of this name within the folder."""
        return Parts(self.folder / name, self.fresh, self.n_jobs, self.show_progress)

    def any(self) -> bool:
        """Whether an earlier run has left any that may be used."""
        return not self.fresh and any(self.folder.glob("*.parquet"))

    def has(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Whether the part is there, made from these inputs."""
        return not self.fresh and self._read_inputs(name) == _recorded(inputs)

    def get(self, name: str, inputs: Mapping[str, Any], make: Callable[[], pa.Table]) -> pa.Table:
        """The part: read if it was made from these inputs, otherwise made and kept."""
        if self.has(name, inputs):
            try:
                return pq.read_table(self._path(name))
            except (OSError, pa.ArrowException):
                pass  # damaged beyond its header: made again
        table = make()
        metadata = {**(table.schema.metadata or {}), INPUTS: _recorded(inputs)}
        with replacing(self._path(name)) as temporary:
            pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="zstd")
        return table

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def _read_inputs(self, name: str) -> bytes | None:
        try:
            recorded = (pq.read_schema(self._path(name)).metadata or {}).get(INPUTS)
        except (OSError, pa.ArrowException):
            return None
        return None if recorded is None else bytes(recorded)


def detector_settings(detector: Detector) -> dict[str, Any]:
    """Everything that a detector's result depends on, apart from the data."""
    settings = {"name": detector.name, **detector.get_params(deep=False)}
    if isinstance(detector, Markov):
        settings["model"] = (detector.model or detector.pattern()).get_params(deep=False)
    return {key: _text(value) for key, value in settings.items()}


def _text(value: Any) -> Any:
    """Settings in a form that JSON takes; other values by their representation."""
    if isinstance(value, Mapping):
        return {key: _text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def _recorded(inputs: Mapping[str, Any]) -> bytes:
    everything = {"keydyn": __version__, "format": FORMAT, **inputs}
    return json.dumps(plain(everything), sort_keys=True, ensure_ascii=False).encode()


Result = TypeVar("Result")


def in_processes(
    function: Callable[..., Result], pieces: Iterable[dict[str, Any]], n_jobs: int | None = None
) -> Iterator[Result]:
    """The function's result for the arguments of each piece, in order, as soon as they are done.

    The pieces run in processes, or on the cluster that `keydyn.parallel.using` names. Threads would wait for
    one another, because much of the work around the compiled fits is done by the interpreter.
    """
    yield from each(partial(_called, function), pieces, n_jobs=n_jobs, threads=False)


def _called(function: Callable[..., Result], piece: dict[str, Any]) -> Result:
    return function(**piece)


Made = dict[str, pa.Table]


@dataclass(frozen=True)
class Piece:
    """Some parts that are made together: their names, inputs, what makes them, and how long that takes."""

    names: tuple[str, ...]
    inputs: Mapping[str, Any]
    make: partial[Made]
    what: str
    cost: float


def run_pieces(pieces: Sequence[Piece], parts: Parts) -> Made:
    """All parts by name; missing ones are made, several at a time, and kept as soon as they are done."""
    waiting = [p for p in pieces if not all(parts.has(name, p.inputs) for name in p.names)]
    total, done, made = max(sum(piece.cost for piece in waiting), 1.0), 0.0, {}
    finished = in_processes(_make, [{"piece": piece} for piece in waiting], parts.n_jobs)
    for piece in waiting:
        parts.show_progress(piece.what, done / total)
        for name, table in next(finished).items():
            made[name] = parts.get(name, piece.inputs, partial(_given, table))
        done += piece.cost
    for piece in pieces:
        for name in piece.names:
            if name not in made:
                made[name] = parts.get(name, piece.inputs, partial(_gone, name))
    return made


def _make(piece: Piece) -> Made:
    return piece.make()


def _given(table: pa.Table) -> pa.Table:
    return table


def _gone(name: str) -> pa.Table:
    raise ValueError(f"the part {name} vanished while the study ran; run it again")


@dataclass(frozen=True)
class Part:
    """A part: its name, what it depends on, how many rows it will have, and how they are made."""

    name: str
    inputs: Mapping[str, Any]
    n_rows: int
    make: Callable[[], Iterator[dict[str, Any]]]


def collect(wanted: list[Part], parts: Parts) -> pd.DataFrame:
    """The rows of all parts; parts that were made from the same inputs are read."""
    todo = [part for part in wanted if not parts.has(part.name, part.inputs)]
    total, done = max(sum(part.n_rows for part in todo), 1), 0
    frames = []
    for part in wanted:

        def make(part: Part = part) -> pa.Table:
            nonlocal done
            rows = []
            for row in part.make():
                rows.append(row)
                done += 1
                parts.show_progress(part.name, done / total)
            # Users are numbers in one dataset and names in another.
            frame = pd.DataFrame(rows)
            return pa.Table.from_pandas(frame.assign(user=frame["user"].astype(str)), preserve_index=False)

        frames.append(parts.get(part.name, part.inputs, make).to_pandas())
    together: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return together


def text_inputs(text: LongText, **settings: Any) -> dict[str, Any]:
    """What a part on a text depends on."""
    return {"dataset": text.name, "data": text.checksums, **settings}
