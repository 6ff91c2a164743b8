"""Calibrations in files: safetensors with a checked header, as models are."""

from __future__ import annotations

import re
from os import PathLike
from typing import Any

from keydyn.decisions.calibration.calibration import Calibration
from keydyn.model.files import storage
from keydyn.model.files.restoring import MOST_COUNTED, Tensors

CLASS = "Calibration"
FIELDS = {"format", "version", "class", "sha256"}
TENSORS = ("lengths", "intercept", "slope", "lapse", "impostor", "low", "high", "genuine", "suspicion")
ABOUT = ("n_people", "hours", "population")


def packed_calibration(calibration: Calibration) -> bytes:
    """The contents of a file with a calibration."""
    return storage.packed(*_parts(calibration))


def calibration_digest(calibration: Calibration) -> str:
    """SHA-256 of what a calibration says."""
    return storage.digest(*_parts(calibration))


def write_calibration(path: str | PathLike[str], calibration: Calibration) -> None:
    """Write a calibration; the file is there in full or not at all."""
    storage.write_packed(path, packed_calibration(calibration))


def parsed_calibration(contents: bytes, path: str | PathLike[str]) -> Calibration:
    """What `packed_calibration` gave, or a `ModelFileError`; `path` is for messages."""
    held = storage.parsed(contents, path)
    if not isinstance(held, Calibration):
        raise storage.ModelFileError(f"{path} holds a {type(held).__name__}, not a {CLASS}")
    return held


def _parts(calibration: Calibration) -> tuple[dict[str, Any], Tensors]:
    about = {name: getattr(calibration, name) for name in ABOUT}
    header = {"format": storage.FORMAT, "version": storage.VERSION, "class": CLASS, **about}
    return header, {name: getattr(calibration, name) for name in TENSORS}


def _restored(header: dict[str, Any], tensors: Tensors) -> Calibration:
    strange = (set(header) - FIELDS - set(ABOUT)) | (set(tensors) - set(TENSORS))
    if strange:
        raise ValueError(f"there are fields that do not belong here: {', '.join(sorted(strange))}")
    n_people = header["n_people"]
    if type(n_people) is not int or not 0 < n_people <= MOST_COUNTED:
        raise ValueError(f"n_people is {n_people!r}")
    hours = header["hours"]
    if type(hours) is not float:
        raise ValueError(f"hours is {hours!r}")
    population = header["population"]
    if not isinstance(population, str) or not re.fullmatch("([0-9a-f]{64})?", population):
        raise ValueError(f"population is {population!r}, not a SHA-256")
    arrays = {name: tensors[name] for name in TENSORS}
    return Calibration(**arrays, n_people=n_people, hours=hours, population=population)


storage.READERS |= {CLASS: _restored}
