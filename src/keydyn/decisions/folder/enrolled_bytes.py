"""Enrolled people and backgrounds as bytes, for those who keep them in a database rather than in a folder.

Each is a safetensors file whose tensors are the contents of other files: those that the folder has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration_file import packed_calibration, parsed_calibration
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.manifest import LARGEST_COUNT
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.detectors import Detector, PopulationDetector
from keydyn.model.data.settings import is_whole
from keydyn.model.files import storage
from keydyn.model.files.restoring import Tensors
from keydyn.population import PopulationModel

PERSON, BACKGROUND = "EnrolledPerson", "Background"
FIELDS = {"format", "version", "class", "sha256"}
TEMPLATES = ("template", "enrolment", "previous")
OF_BACKGROUND = ("population", "calibration")
# Bytes of the largest contents that are read.
LARGEST = 1 << 28


def template_bytes(one: Enrolled) -> bytes:
    """Somebody's templates and how much they were learnt from; the fingerprints are not among them.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier, template_bytes
    >>> enrolled = Verifier.shipped().enrolled(make_typists(1, 5, "free", 80))
    >>> type(template_bytes(enrolled))
    <class 'bytes'>
    """
    templates = {name: getattr(one, name) for name in TEMPLATES}
    files = {name: each.packed_template() for name, each in templates.items() if each is not None}
    about = {"detector": one.template.name, "samples": one.samples, "keys": one.keys}
    return _packed(PERSON, about, files)


def enrolled_of(
    contents: bytes, pattern: Detector, fingerprints: Fingerprints, sensors: tuple[str, ...] = ()
) -> Enrolled:
    """Who `template_bytes` was given, with these fingerprints.

    `pattern` is the background's, by which the person was enrolled. A `ValueError` says what is wrong with
    the contents, or that they belong to another population.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier, enrolled_of, template_bytes
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrolled(make_typists(1, 5, "free", 80))
    >>> again = enrolled_of(template_bytes(enrolled), verifier.background.pattern, enrolled.fingerprints)
    >>> again.samples == enrolled.samples
    True
    """
    parts = _parsed(contents, PERSON)
    detector = parts.about.get("detector")
    if detector != pattern.name:
        raise ValueError(f"the template is of the detector {detector!r}, not of {pattern.name}")
    features = sorted(["duration", "tau", *sensors])
    templates = {
        name: pattern.with_template(file, f"the {name}", features) for name, file in parts.files.items()
    }
    return Enrolled(
        samples=parts.about["samples"], keys=parts.about["keys"], fingerprints=fingerprints, **templates
    )


def background_bytes(background: Background) -> bytes:
    """A population with its calibration; nobody of the cohort is among them.

    Examples
    --------
    >>> from keydyn.decisions import background_bytes, shipped_background
    >>> type(background_bytes(shipped_background()))
    <class 'bytes'>
    """
    calibration = background.own_calibration
    files = {"population": background.population.packed(), "calibration": packed_calibration(calibration)}
    return _packed(BACKGROUND, {}, files)


def background_of(contents: bytes) -> Background:
    """What `background_bytes` was given, without a cohort; a `ValueError` says what is wrong.

    Examples
    --------
    >>> from keydyn.decisions import background_bytes, background_of, shipped_background
    >>> background = shipped_background()
    >>> background_of(background_bytes(background)).population.sha256 == background.population.sha256
    True
    """
    files = _parsed(contents, BACKGROUND).files
    people = PopulationModel.parsed(files["population"], "the population")
    calibration = parsed_calibration(files["calibration"], "the calibration")
    if calibration.population != people.sha256:
        raise ValueError("the calibration is that of another population")
    return Background(PopulationDetector(population=people), (), calibration)


@dataclass(frozen=True)
class _Parts:
    """The contents of files by name, and what is said about them."""

    kind: str
    about: dict[str, Any]
    files: dict[str, bytes]


def _packed(kind: str, about: dict[str, Any], files: dict[str, bytes]) -> bytes:
    header = {"format": storage.FORMAT, "version": storage.VERSION, "class": kind, **about}
    return storage.packed(header, {name: np.frombuffer(file, dtype=np.uint8) for name, file in files.items()})


def _parsed(contents: bytes, kind: str) -> _Parts:
    if len(contents) > LARGEST:
        raise ValueError(f"there are {len(contents):,} bytes, more than {LARGEST:,}")
    parts = storage.parsed(contents, "what is stored")
    if not isinstance(parts, _Parts) or parts.kind != kind:
        raise storage.ModelFileError(f"what is stored is not a {kind}")
    return parts


def _files(tensors: Tensors, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The contents of files among tensors, which hold nothing else."""
    strange = set(tensors) - {*needed, *optional}
    if strange:
        raise ValueError(f"there are files that do not belong here: {', '.join(sorted(strange))}")
    for name, values in tensors.items():
        if values.dtype != np.uint8 or values.ndim != 1:
            raise ValueError(f"{name} is not a list of bytes")
    there = [*needed, *(name for name in optional if name in tensors)]
    return {name: tensors[name].tobytes() for name in there}


def _person(header: dict[str, Any], tensors: Tensors) -> _Parts:
    about = _about(header, {"detector", "samples", "keys"})
    for name in ("samples", "keys"):
        if not (is_whole(about[name]) and 1 <= about[name] <= LARGEST_COUNT):
            raise ValueError(f"{name} is {about[name]!r}")
    return _Parts(PERSON, about, _files(tensors, TEMPLATES[:1], TEMPLATES[1:]))


def _background(header: dict[str, Any], tensors: Tensors) -> _Parts:
    return _Parts(BACKGROUND, _about(header, set()), _files(tensors, OF_BACKGROUND))


def _about(header: dict[str, Any], names: set[str]) -> dict[str, Any]:
    strange = set(header) - FIELDS - names
    if strange:
        raise ValueError(f"the header has fields that do not belong here: {', '.join(sorted(strange))}")
    return {name: header[name] for name in names}


storage.READERS |= {PERSON: _person, BACKGROUND: _background}
