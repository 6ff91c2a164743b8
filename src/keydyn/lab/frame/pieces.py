"""Pieces of a study that run side by side, each kept as soon as it is done, so that the study resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from keydyn.lab.frame import parallel
from keydyn.lab.frame.saved_parts import Parts
from keydyn.lab.frame.score_datasets import ShowProgress

Made = dict[str, pa.Table]


@dataclass(frozen=True)
class Piece:
    """Some parts that are made together: their names, inputs, what makes them, and how long that takes."""

    names: tuple[str, ...]
    inputs: Mapping[str, Any]
    make: partial[Made]
    what: str
    cost: float


def run_pieces(
    pieces: Sequence[Piece], parts: Parts, n_jobs: int | None, show_progress: ShowProgress | None
) -> Made:
    """All parts by name; missing ones are made, several at a time, and kept as soon as they are done."""
    waiting = [p for p in pieces if not all(parts.has(name, p.inputs) for name in p.names)]
    total, done, made = max(sum(piece.cost for piece in waiting), 1.0), 0.0, {}
    finished = parallel.results(_make, [{"piece": piece} for piece in waiting], n_jobs)
    for piece in waiting:
        if show_progress is not None:
            show_progress(piece.what, done / total)
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
