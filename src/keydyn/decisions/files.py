"""Calibrations and fingerprints in files: safetensors with a checked header, as models are."""

from __future__ import annotations

import re
from os import PathLike
from typing import Any, TypeVar

from keydyn.decisions.calibration import Calibration
from keydyn.decisions.copies import Fingerprints
from keydyn.model.files import storage
from keydyn.model.files.restoring import MOST_COUNTED, Tensors

CALIBRATION, FINGERPRINTS = "Calibration", "Fingerprints"
Held = TypeVar("Held")
FIELDS = {"format", "version", "class", "sha256"}
OF_CALIBRATION = ("lengths", "intercept", "slope", "lapse", "impostor", "low", "high", "genuine", "suspicion")
ABOUT_CALIBRATION = ("n_people", "hours", "population")
OF_FINGERPRINTS = ("hashes", "offsets")


def write_calibration(path: str | PathLike[str], calibration: Calibration) -> None:
    """Write a calibration; the file is there in full or not at all."""
    about = {name: getattr(calibration, name) for name in ABOUT_CALIBRATION}
    _write(path, CALIBRATION, calibration, OF_CALIBRATION, about)


def write_fingerprints(path: str | PathLike[str], fingerprints: Fingerprints) -> None:
    """The same for what is kept of samples."""
    _write(path, FINGERPRINTS, fingerprints, OF_FINGERPRINTS, {})


def parsed_calibration(contents: bytes, path: str | PathLike[str]) -> Calibration:
    """What `write_calibration` wrote, or a `ModelFileError`; `path` is for messages."""
    return _parsed(contents, path, Calibration)


def parsed_fingerprints(contents: bytes, path: str | PathLike[str]) -> Fingerprints:
    """The same for `write_fingerprints`."""
    return _parsed(contents, path, Fingerprints)


def _write(
    path: str | PathLike[str], kind: str, held: object, names: tuple[str, ...], about: dict[str, Any]
) -> None:
    header = {"format": storage.FORMAT, "version": storage.VERSION, "class": kind, **about}
    storage.write(path, header, {name: getattr(held, name) for name in names})


def _parsed(contents: bytes, path: str | PathLike[str], kind: type[Held]) -> Held:
    held = storage.parsed(contents, path)
    if not isinstance(held, kind):
        raise storage.ModelFileError(f"{path} holds a {type(held).__name__}, not a {kind.__name__}")
    return held


def _calibration(header: dict[str, Any], tensors: Tensors) -> Calibration:
    _only(header, tensors, set(ABOUT_CALIBRATION), OF_CALIBRATION)
    n_people = header["n_people"]
    if type(n_people) is not int or not 0 < n_people <= MOST_COUNTED:
        raise ValueError(f"n_people is {n_people!r}")
    hours = header["hours"]
    if type(hours) is not float:
        raise ValueError(f"hours is {hours!r}")
    population = header["population"]
    if not isinstance(population, str) or not re.fullmatch("([0-9a-f]{64})?", population):
        raise ValueError(f"population is {population!r}, not a SHA-256")
    arrays = {name: tensors[name] for name in OF_CALIBRATION}
    return Calibration(**arrays, n_people=n_people, hours=hours, population=population)


def _fingerprints(header: dict[str, Any], tensors: Tensors) -> Fingerprints:
    _only(header, tensors, set(), OF_FINGERPRINTS)
    return Fingerprints(**{name: tensors[name] for name in OF_FINGERPRINTS})


def _only(header: dict[str, Any], tensors: Tensors, fields: set[str], names: tuple[str, ...]) -> None:
    strange = (set(header) - FIELDS - fields) | (set(tensors) - set(names))
    if strange:
        raise ValueError(f"there are fields that do not belong here: {', '.join(sorted(strange))}")


storage.READERS |= {CALIBRATION: _calibration, FINGERPRINTS: _fingerprints}
