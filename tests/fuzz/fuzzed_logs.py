"""Raw logs: data frames of events with cells, columns and types changed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from keydyn.datasets import make_typists
from keydyn.keystrokes import check_keystrokes, events_of, pair_events
from tests.fuzz.changes import VALUES, pick
from tests.fuzz.targets import Generator, Target

CELLS = (*VALUES, 1j, (1, 2), b"a", np.int64(2**62), np.datetime64("NaT"), pd.NA, pd.Timestamp(0), [1], {1})
TYPES = (
    "object",
    "float32",
    "complex128",
    "Int64",
    "Float64",
    "string",
    "category",
    "int8",
    "uint64",
    "bool",
)


@cache
def log() -> pd.DataFrame:
    """Presses and releases of two simulated people."""
    events = events_of(make_typists(2, 2))
    events["time"] = events["time"].round().astype(np.int64)
    return events


def frames() -> Target:
    """A log that is taken becomes keystrokes in the schema, as many as the report counts."""

    def case(generator: Generator) -> tuple[pd.DataFrame, dict]:
        frame = log().copy()
        for _ in range(int(generator.integers(1, 4))):
            frame = _changed(generator, frame)
        options = {"unit": pick(generator, ("ms", "s", "us", "ns")), "relative": generator.random() < 0.5}
        return frame, options if generator.random() < 0.5 else {}

    def judge(case: tuple[pd.DataFrame, dict], folder: object) -> str:
        frame, options = case
        before = frame.copy(deep=True)
        try:
            with np.errstate(all="ignore"):
                keystrokes, report = pair_events(frame, **options)
        except ValueError:
            return "refused"
        assert frame.equals(before), "the log was changed"
        check_keystrokes(keystrokes)
        assert report.counts["keystrokes"] == len(keystrokes)
        str(report)
        report.to_dict()
        return "paired"

    return Target("raw logs", case, judge)


def _changed(generator: Generator, frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame.columns) == 0 or len(frame) == 0:
        return frame
    column, place = int(generator.integers(len(frame.columns))), int(generator.integers(len(frame)))
    name = frame.columns[column]
    match int(generator.integers(8)):
        case 0:
            return frame.drop(columns=name)
        case 1:
            return pd.concat([frame, frame[[name]]], axis=1)
        case 2:
            order = generator.permutation(len(frame))
            return frame.iloc[order]
        case 3:
            return frame.iloc[: int(generator.integers(len(frame)))]
        case 4:
            try:
                return frame.assign(**{str(name): frame.iloc[:, column].astype(pick(generator, TYPES))})
            except (TypeError, ValueError, OverflowError):
                return frame
        case 5:
            ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0])
            return frame.assign(time=generator.choice(ends, len(frame)))
        case _:
            cells = frame.iloc[:, column].astype(object).tolist()
            cells[place] = pick(generator, CELLS)
            changed = np.empty(len(cells), dtype=object)
            changed[:] = cells
            return frame.assign(**{str(name): changed})
