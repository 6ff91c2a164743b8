"""Calibrations in files, declared as models are."""

from __future__ import annotations

from os import PathLike

import numpy as np

from keydyn import files
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.files import Kind, Tensor, Tensors, Values, declared, or_empty, unbounded, whole

_FIELDS = {"n_people": whole(1), "hours": files.number, "population": or_empty(files.sha256)}
# G numbers of keys, L rates; which values are right `Calibration` says.
_TENSORS = {
    "lengths": Tensor(("G",), unbounded, np.int64),
    **{name: Tensor(("G",), unbounded) for name in ("intercept", "slope", "lapse")},
    **{name: Tensor(("G", "L"), unbounded) for name in ("impostor", "low", "high", "genuine")},
    "suspicion": Tensor((None,), unbounded),
}


def _built(values: Values, tensors: Tensors) -> Calibration:
    about = {name: values[name] for name in _FIELDS}
    return Calibration(**(about | tensors))


CALIBRATION = declared(Kind("Calibration", _FIELDS, lambda values: _TENSORS, _built))


def packed_calibration(calibration: Calibration) -> bytes:
    """The contents of a file with a calibration."""
    return CALIBRATION.packed(*_parts(calibration))


def calibration_digest(calibration: Calibration) -> str:
    """SHA-256 of what a calibration says."""
    return CALIBRATION.digest(*_parts(calibration))


def write_calibration(path: str | PathLike[str], calibration: Calibration) -> None:
    """Write a calibration; the file is there in full or not at all."""
    files.write(path, packed_calibration(calibration))


def parsed_calibration(contents: bytes, path: str | PathLike[str]) -> Calibration:
    """What `packed_calibration` gave, or a `ModelFileError`; `path` is for messages."""
    return CALIBRATION.parsed(contents, path)


def _parts(calibration: Calibration) -> tuple[Values, Tensors]:
    values = {name: getattr(calibration, name) for name in _FIELDS}
    return values, {name: getattr(calibration, name) for name in _TENSORS}
