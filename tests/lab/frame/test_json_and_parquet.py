"""JSON is strict, and what cannot be written leaves the old file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from keydyn.lab.frame.json_and_parquet import write_json, write_parquet


def test_a_frame_that_parquet_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "scores.parquet"
    frame = pd.DataFrame({"user": ["a", "b"], "score": [0.5, np.nan]})
    write_parquet(path, frame)
    with pytest.raises(pa.ArrowException):
        write_parquet(path, pd.DataFrame({"user": [object(), 1.0]}))
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame)
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_strict_and_plain(tmp_path):
    path = tmp_path / "run.json"
    value = {
        "seed": np.int64(3),
        "rate": np.float64("nan"),
        "far": float("inf"),
        "grid": np.array([1.0, 2.5]),
        "pair": (1, None),
        "names": {"b", "a"},
        "folder": Path("x"),
        "time": datetime(2024, 1, 2, tzinfo=UTC),
        "true": np.bool_(True),
        7: "Zoë",
    }
    write_json(path, value)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not strict JSON")

    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse) == {
        "seed": 3,
        "rate": None,
        "far": None,
        "grid": [1.0, 2.5],
        "pair": [1, None],
        "names": ["a", "b"],
        "folder": "x",
        "time": "2024-01-02T00:00:00+00:00",
        "true": True,
        "7": "Zoë",
    }


def test_what_json_cannot_say_is_refused_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "run.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError, match="object has no form in JSON"):
        write_json(path, {"a": object()})
    with pytest.raises(ValueError, match="the same as text"):
        write_json(path, {1: "a", "1": "b"})
    assert json.loads(path.read_text()) == {"a": 1}
