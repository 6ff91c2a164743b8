"""Finished pieces of a study, so that interrupted work resumes.

A part is one Parquet file that carries the inputs it was made from. It is used again only if these are the
same; it is written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from keydyn import __version__
from keydyn.atomic import replacing
from keydyn.detectors import Detector, Markov
from keydyn.lab.frame.json_and_parquet import plain

INPUTS = b"keydyn.inputs"
# Increased when the same inputs give other results: older parts are then made again.
FORMAT = 1


class Parts:
    """The finished parts in a folder; with `fresh` all are made again."""

    def __init__(self, folder: str | Path, fresh: bool = False) -> None:
        self.folder, self.fresh = Path(folder), fresh

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
