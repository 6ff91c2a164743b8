"""Rows that a study of fit makes one by one; those of each dataset and model are kept as a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa

from keydyn.lab.frame.long_texts import Text
from keydyn.lab.frame.saved_parts import Parts
from keydyn.lab.frame.score_datasets import ShowProgress


class MakeRows(Protocol):
    """Makes the rows of one part, as they are done."""

    def __call__(self) -> Iterator[dict[str, Any]]: ...


@dataclass(frozen=True)
class Part:
    """A part: its name, what it depends on, how many rows it will have, and how they are made."""

    name: str
    inputs: Mapping[str, Any]
    n_rows: int
    make: MakeRows


def collect(wanted: list[Part], parts: Parts, show_progress: ShowProgress | None = None) -> pd.DataFrame:
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
                if show_progress is not None:
                    show_progress(part.name, done / total)
            # Users are numbers in one dataset and names in another.
            frame = pd.DataFrame(rows)
            return pa.Table.from_pandas(frame.assign(user=frame["user"].astype(str)), preserve_index=False)

        frames.append(parts.get(part.name, part.inputs, make).to_pandas())
    together: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return together


def text_inputs(text: Text, **settings: Any) -> dict[str, Any]:
    """What a part on a text depends on."""
    return {"dataset": text.name, "data": text.checksums, **settings}
