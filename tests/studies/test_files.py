"""Files are whole or not there; JSON is strict."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from keydyn.studies.json_and_parquet import replacing, write_bytes, write_json, write_parquet, write_text


def test_an_error_midway_leaves_what_was_there(tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_while_it_is_written_the_old_file_stands(tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_frame_that_parquet_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "scores.parquet"
    frame = pd.DataFrame({"user": ["a", "b"], "score": [0.5, np.nan]})
    write_parquet(path, frame)
    with pytest.raises(pa.ArrowException):
        write_parquet(path, pd.DataFrame({"user": [object(), 1.0]}))
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame)
    assert list(tmp_path.iterdir()) == [path]


def test_text_and_bytes_come_back_and_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "t.md", "τ\n")
    write_bytes(tmp_path / "x.png", b"\x00\r\n")
    assert (tmp_path / "a" / "b" / "t.md").read_bytes() == b"\xcf\x84\n"
    assert (tmp_path / "x.png").read_bytes() == b"\x00\r\n"


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
