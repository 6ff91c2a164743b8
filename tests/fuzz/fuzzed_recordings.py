"""Recordings: CSV, gzipped CSV and Parquet with bytes changed."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from keydyn.datasets import load_recordings, make_typists, save_recordings
from keydyn.keystrokes import Samples, check_keystrokes, quality_of
from tests.fuzz.changes import changed_bytes, pick
from tests.fuzz.targets import Generator, Target

OPTIONS = ({}, {"sort": True}, {"unit": "s"}, {"decimal": ","}, {"separator": ";"}, {"encoding": "latin-1"})


@cache
def recordings() -> list[tuple[str, bytes]]:
    """The same few keystrokes in every format, and with a further column."""
    frame = make_typists(2, 2)
    frame["pressure"] = np.linspace(0.1, 0.9, len(frame))
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("typing.csv", "typing.csv.gz", "typing.parquet"):
            save_recordings(frame, Path(folder) / name)
            made.append((name, (Path(folder) / name).read_bytes()))
    return made


def files() -> Target:
    """A file that is read is in the schema, and everything that takes keystrokes takes it."""
    contents = [contents for _, contents in recordings()]

    def case(generator: Generator) -> tuple[str, bytes, dict]:
        name, original = pick(generator, recordings())
        options = pick(generator, OPTIONS) if generator.random() < 0.3 else {}
        return name, changed_bytes(generator, original, contents), options

    def judge(case: tuple[str, bytes, dict], folder: Path) -> str:
        name, changed, options = case
        (folder / name).write_bytes(changed)
        try:
            frame = load_recordings(folder / name, **options)
        except ValueError:
            return "refused"
        check_keystrokes(frame)
        str(quality_of(frame))
        try:
            Samples.of(frame)
        except ValueError:
            return "read, but no samples"
        return "read"

    return Target("recordings", case, judge)
